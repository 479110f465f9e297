package openai

import "bytes"

// likeness is what the audio events of one item have in common: all but the id of
// the event and the audio. A frame that differs from one that scanFrame was sure of
// in nothing else needs no second scan, which costs more than the base64 of a short
// piece of audio. It is owned by Recv.
type likeness struct {
	it *spokenItem // nil if there is none yet
	// head ends with the quote before the event's id, mid goes from the quote behind
	// it to the one before the audio, tail is the rest. Without an id, head is empty
	// and mid begins the frame.
	head, mid, tail []byte
}

// learn takes over the shape of a frame that scanFrame called scanAudio.
func (l *likeness) learn(it *spokenItem, frame []byte, s *scanned) {
	from := 0
	l.head = l.head[:0]
	if s.eventAt > 0 && s.eventAt < s.deltaAt {
		_, end, _ := plainString(frame, s.eventAt-1)
		l.head = append(l.head, frame[:s.eventAt]...)
		from = end - 1
	}
	l.it = it
	l.mid = append(l.mid[:0], frame[from:s.deltaAt]...)
	l.tail = append(l.tail[:0], frame[s.deltaAt+len(s.delta):]...)
}

// match returns the audio of a frame of the same shape: what is between mid and tail.
// That there is no quote in it is for the decoder to find, as with scanFrame.
func (l *likeness) match(frame []byte) (delta []byte, ok bool) {
	if l.it == nil || !bytes.HasPrefix(frame, l.head) {
		return nil, false
	}
	at := 0
	if len(l.head) > 0 {
		_, end, plain := plainString(frame, len(l.head)-1)
		if !plain {
			return nil, false
		}
		at = end - 1
	}
	if !bytes.HasPrefix(frame[at:], l.mid) {
		return nil, false
	}
	return bytes.CutSuffix(frame[at+len(l.mid):], l.tail)
}

package openai

import "bytes"

// likeness is the constant part of an item's audio events. A frame that differs only in the event's ID and the audio
// from one that scanFrame was sure of needs no second scan, which would cost more than decoding the base64 of a short
// piece of audio. It is owned by Recv.
type likeness struct {
	it *spokenItem // nil before the first item
	// head ends with the quote before the event's ID, mid with the quote before the audio, and tail is the rest.
	// Without an ID, head is empty.
	head, mid, tail []byte
}

// learn remembers the shape of a frame for which scanFrame returned scanAudio.
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

// match returns the audio of a frame of the same shape: the bytes between mid and tail.
// As with scanFrame, a quote inside the audio is found by the decoder.
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

package openai

import (
	"bytes"
	"slices"
	"strings"

	"voicegw/internal/openaiwire"
)

// The two names of the event with the model's speech: GA, and the beta name that some compatible servers still use.
const (
	typeAudioDelta     = "response.output_audio.delta"
	typeAudioDeltaBeta = "response.audio.delta"
)

// scanned is the result of scanFrame. Its slices point into the frame, with its capacity; nil for a missing member.
type scanned struct{ eventType, event, item, response, delta []byte }

// scanFrame reads an audio event without allocating, with its keys in any order: its type, id, item_id, response_id and
// delta, whose characters are not checked: decoding does that.
//
// ok is true only for an object that [openaiwire.Scanner] reads, with all needed members, for which encoding/json would
// find the same. It is false for a duplicate key, and for a key that differs only in case from a known one.
func scanFrame(frame []byte) (s scanned, ok bool) {
	m := openaiwire.Scan(frame, "delta")
	for m.Next() {
		var field *[]byte
		switch string(m.Key) {
		case "type":
			field = &s.eventType
		case "delta":
			field = &s.delta
		case "item_id":
			field = &s.item
		case "event_id":
			field = &s.event
		case "response_id":
			field = &s.response
		default:
			if slices.ContainsFunc(scannedKeys, func(known string) bool { return foldsTo(m.Key, known) }) {
				return s, false // encoding/json ignores case, so it may be the same member
			}
			continue
		}
		if *field != nil || !m.IsText {
			return s, false
		}
		*field = m.Value
		if field == &s.eventType && string(m.Value) != typeAudioDelta && string(m.Value) != typeAudioDeltaBeta {
			return s, false
		}
	}
	return s, m.Whole && s.eventType != nil && s.item != nil && s.delta != nil
}

var scannedKeys = []string{"type", "delta", "item_id", "event_id", "response_id"}

func foldsTo(key []byte, known string) bool {
	return len(key) == len(known) && strings.EqualFold(string(key), known)
}

// likeness is the constant part of a model's audio messages: one that differs only in its audio needs no second scan,
// which would cost more than decoding a short piece. It is owned by Recv.
type likeness struct {
	it *spokenItem // nil before the first item
	// head ends before the event's ID (empty without one), mid before the audio; tail is the rest.
	head, mid, tail []byte
}

func (l *likeness) learn(it *spokenItem, frame []byte, s *scanned) {
	from, delta := 0, cap(frame)-cap(s.delta) // the offset of a slice of the frame
	l.head = l.head[:0]
	if event := cap(frame) - cap(s.event); s.event != nil && event < delta {
		l.head = append(l.head, frame[:event]...)
		from = event + len(s.event)
	}
	l.it = it
	l.mid = append(l.mid[:0], frame[from:delta]...)
	l.tail = append(l.tail[:0], frame[delta+len(s.delta):]...)
}

// As with scanFrame, a quote inside the audio is found by the decoder.
func (l *likeness) match(frame []byte) (delta []byte, ok bool) {
	if l.it == nil || !bytes.HasPrefix(frame, l.head) {
		return nil, false
	}
	at := 0
	if len(l.head) > 0 {
		_, end, plain := openaiwire.PlainText(frame, len(l.head)-1)
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

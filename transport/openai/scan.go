package openai

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// The two names of the event with the model's speech: GA, and the beta name that some compatible servers still use.
const (
	typeAudioDelta     = "response.output_audio.delta"
	typeAudioDeltaBeta = "response.audio.delta"
)

// scanned is the result of scanFrame. Its slices point into the frame.
type scanned struct {
	eventType   []byte
	item        []byte
	response    []byte
	delta       []byte
	eventAt     int   // offset of the event's id; zero if the event has no id
	deltaAt     int   // offset of delta
	audioFields uint8 // the members seen, one bit each
	other       bool  // the type is not an audio type
}

const (
	sawType uint8 = 1 << iota
	sawItem
	sawResponse
	sawDelta
	sawEvent
)

// verdict is how sure scanFrame is.
type verdict uint8

const (
	// scanUnsure: something unusual; only the typed path can decode this frame.
	scanUnsure verdict = iota
	// scanAudio: a flat and well-formed audio event with all the needed members. The characters of delta are not
	// checked: decoding does that, and if it fails the typed path must decode the frame.
	scanAudio
	// scanOther: an event of the type found, which is not audio. The rest of the frame was not read.
	scanOther
)

// scanFrame reads one frame without allocating, with its keys in any order. It
// finds the type of any event, and of an audio event item_id, response_id and delta.
//
// It returns scanAudio only for an object whose members are plain strings, whole numbers or literals, and for which
// encoding/json would find the same. It returns scanUnsure for an escape, a control character, a byte outside ASCII, a
// duplicate key, a key that differs only in case from a known one, nesting, or bytes after the object.
func scanFrame(frame []byte) (s scanned, v verdict) {
	i := skipSpace(frame, 0)
	if i >= len(frame) || frame[i] != '{' {
		return s, scanUnsure
	}
	i = skipSpace(frame, i+1)
	for {
		var key []byte
		var ok bool
		if key, i, ok = plainString(frame, i); !ok {
			return s, scanUnsure
		}
		if i = skipSpace(frame, i); i >= len(frame) || frame[i] != ':' {
			return s, scanUnsure
		}
		i = skipSpace(frame, i+1)
		if i, ok = s.member(frame, key, i); !ok {
			return s, scanUnsure
		}
		if s.other {
			return s, scanOther
		}
		i = skipSpace(frame, i)
		if i >= len(frame) {
			return s, scanUnsure
		}
		if frame[i] == '}' {
			break
		}
		if frame[i] != ',' {
			return s, scanUnsure
		}
		i = skipSpace(frame, i+1)
	}
	const need = sawType | sawItem | sawDelta
	if skipSpace(frame, i+1) != len(frame) || s.audioFields&need != need {
		return s, scanUnsure
	}
	return s, scanAudio
}

func (s *scanned) member(frame, key []byte, i int) (int, bool) {
	var field *[]byte
	var bit uint8
	var name string
	switch len(key) {
	case len("type"):
		name, field, bit = "type", &s.eventType, sawType
	case len("delta"):
		name, bit = "delta", sawDelta
	case len("item_id"):
		name, field, bit = "item_id", &s.item, sawItem
	case len("event_id"):
		name, bit = "event_id", sawEvent
	case len("response_id"):
		name, field, bit = "response_id", &s.response, sawResponse
	}
	if name == "" {
		return skipScalar(frame, i)
	}
	if string(key) != name {
		// encoding/json ignores case, so a key in other letters may be the same member.
		if strings.EqualFold(string(key), name) {
			return i, false
		}
		return skipScalar(frame, i)
	}
	if s.audioFields&bit != 0 {
		return i, false
	}
	s.audioFields |= bit
	if bit == sawDelta {
		return s.audio(frame, i)
	}
	value, end, ok := plainString(frame, i)
	switch bit {
	case sawEvent:
		s.eventAt = i + 1
		return end, ok
	case sawType:
		s.other = !isAudioDelta(value)
	}
	*field = value
	return end, ok
}

// Base64 contains no quote, so the next one ends the string; the decoder finds any other wrong character.
func (s *scanned) audio(frame []byte, i int) (int, bool) {
	if i >= len(frame) || frame[i] != '"' {
		return i, false
	}
	n := bytes.IndexByte(frame[i+1:], '"')
	if n < 0 {
		return i, false
	}
	s.delta, s.deltaAt = frame[i+1:i+1+n], i+1
	return i + n + 2, true
}

func isAudioDelta(t []byte) bool {
	return string(t) == typeAudioDelta || string(t) == typeAudioDeltaBeta
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// plainString returns the string at i and its end. It refuses escapes, control characters and bytes over 0x7E.
func plainString(b []byte, i int) ([]byte, int, bool) {
	if i >= len(b) || b[i] != '"' {
		return nil, i, false
	}
	start := i + 1
	i = start
	for i+8 <= len(b) {
		special := specialBytes(binary.LittleEndian.Uint64(b[i:]))
		if special == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(special) / 8
		return b[start:i], i + 1, b[i] == '"'
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x7F {
			return b[start:i], i + 1, c == '"'
		}
	}
	return nil, i, false
}

// specialBytes marks, in the top bit of each byte of w, a quote, a backslash, a control character and a byte over 0x7E.
// Only the lowest mark is reliable: a borrow runs upwards and may set wrong marks above it.
func specialBytes(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	found := (quote - ones) &^ quote
	found |= (slash - ones) &^ slash
	found |= (w - ones*0x20) &^ w
	found |= w | (w + ones)
	return found & tops
}

func skipScalar(b []byte, i int) (int, bool) {
	if i >= len(b) {
		return i, false
	}
	switch c := b[i]; {
	case c == '"':
		_, end, ok := plainString(b, i)
		return end, ok
	case c >= '0' && c <= '9':
		end := i + 1
		for end < len(b) && b[end] >= '0' && b[end] <= '9' {
			end++
		}
		return end, c != '0' || end == i+1
	case c == 'n':
		return skipWord(b, i, "null")
	case c == 't':
		return skipWord(b, i, "true")
	case c == 'f':
		return skipWord(b, i, "false")
	}
	return i, false
}

func skipWord(b []byte, i int, word string) (int, bool) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, false
	}
	return i + len(word), true
}

// likeness is the constant part of a model's audio messages: one that differs only in its audio needs no second scan,
// which would cost more than decoding a short piece. It is owned by Recv.
type likeness struct {
	it *spokenItem // nil before the first item
	// head ends before the event's ID (empty without one), mid before the audio; tail is the rest.
	head, mid, tail []byte
}

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

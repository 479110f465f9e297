package gemini

import (
	"bytes"

	"voicegw/audio"
)

// Nearly every frame from a client is a piece of audio. scanAudio reads only that shape, without building a tree; any
// other frame takes the slow path, which also finds its errors.

type scanned struct {
	data, mime []byte
}

// scanAudio recognises {"realtimeInput":{"audio":{"data":…,"mimeType":…}}} in either spelling and order. False means
// another shape, or a string with an escape.
func scanAudio(b []byte) (scanned, bool) {
	s := scanner{b: b, ok: true}
	s.enter("realtimeInput", "realtime_input")
	s.enter("audio", "audio")
	s.punct('{')
	var m scanned
	for range 2 {
		key := s.str()
		s.punct(':')
		val := s.str()
		switch string(key) {
		case "data":
			s.ok = s.ok && m.data == nil
			m.data = val
		case "mimeType", "mime_type":
			s.ok = s.ok && m.mime == nil
			m.mime = val
		default:
			s.ok = false
		}
		if s.peek() != ',' {
			break
		}
		s.punct(',')
	}
	for range 3 {
		s.punct('}')
	}
	s.space()
	return m, s.ok && len(s.b) == 0 && m.data != nil && m.mime != nil
}

func decodeAudio(m scanned) (clientMessage, *closeError) {
	mime := string(m.mime)
	// The frame is ours and is not read again, so it is decoded in place.
	pcm, err := audio.AppendFromBase64(m.data[:0], m.data)
	if err != nil {
		return clientMessage{}, invalid("Invalid value at 'realtime_input.audio.data' (TYPE_BYTES), Base64 decoding failed")
	}
	return clientMessage{realtime: &realtimeMessage{audio: pcm, audioMIME: mime, hasAudio: true}}, nil
}

// scanner walks over JSON of an expected shape; ok becomes false permanently at the first difference.
type scanner struct {
	b  []byte
	ok bool
}

func (s *scanner) space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\n' || s.b[0] == '\r' || s.b[0] == '\t') {
		s.b = s.b[1:]
	}
}

func (s *scanner) peek() byte {
	s.space()
	if len(s.b) == 0 {
		return 0
	}
	return s.b[0]
}

func (s *scanner) punct(c byte) {
	if s.peek() != c {
		s.ok = false
		return
	}
	s.b = s.b[1:]
}

func (s *scanner) enter(camel, snake string) {
	s.punct('{')
	if key := s.str(); string(key) != camel && string(key) != snake {
		s.ok = false
	}
	s.punct(':')
}

// str reads a string without escapes and control characters.
func (s *scanner) str() []byte {
	if s.peek() != '"' {
		s.ok = false
		return nil
	}
	end := bytes.IndexByte(s.b[1:], '"')
	if end < 0 {
		s.ok = false
		return nil
	}
	val := s.b[1 : 1+end : 1+end]
	if bytes.IndexByte(val, '\\') >= 0 || hasControl(val) {
		s.ok = false
	}
	s.b = s.b[end+2:]
	return val
}

func hasControl(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x80 {
			return true
		}
	}
	return false
}

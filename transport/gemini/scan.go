package gemini

import (
	"bytes"
	"unicode/utf8"
)

// audioFrame is the result of scanAudio: slices of the message.
type audioFrame struct {
	mime, data []byte
	// text is the text of the outputTranscription in the same message; hasText if there is one.
	text    []byte
	hasText bool
}

// scanAudio reads a message that holds one piece of speech and nothing else but, perhaps, its transcript:
//
//	{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":…,"data":…}}],"role":…},
//	                  "outputTranscription":{"text":…}}}
//
// The order of keys and white space do not matter. For anything else (another key, a duplicate, a second part, an
// escape, text that is not UTF-8) it returns false: the message then takes the slow path, which alone decides whether
// it is well formed. Data and MIME type are not checked here: decoding the one and comparing the other reveals errors
// in them. The result is in s.out until the next call.
func (s *scanner) scanAudio(msg []byte) bool {
	*s = scanner{b: msg}
	ok := s.open('{') && s.key("serverContent") && s.content() && s.open('}')
	s.space()
	return ok && s.i == len(s.b)
}

// scanner walks over a message, a part of a reused frame: on the stack it would escape through fields.
type scanner struct {
	b   []byte
	i   int
	out audioFrame
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) open(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != c {
		return false
	}
	s.i++
	return true
}

// raw skips a string and returns the bytes between its quotes, unchecked.
func (s *scanner) raw() ([]byte, bool) {
	if !s.open('"') {
		return nil, false
	}
	n := bytes.IndexByte(s.b[s.i:], '"')
	if n < 0 {
		return nil, false
	}
	str := s.b[s.i : s.i+n]
	s.i += n + 1
	return str, true
}

// tail is a generous estimate of how many bytes of a message follow its audio.
const tail = 512

// payload is raw for the long string of a message. It looks for the closing quote near the message's end first: if it
// is too late, decoding fails, because base64 contains no quotes.
func (s *scanner) payload() ([]byte, bool) {
	if !s.open('"') {
		return nil, false
	}
	from := max(s.i, len(s.b)-tail)
	n := bytes.IndexByte(s.b[from:], '"')
	if n < 0 {
		return nil, false
	}
	str := s.b[s.i : from+n]
	s.i = from + n + 1
	return str, true
}

func (s *scanner) text() ([]byte, bool) {
	str, ok := s.raw()
	if !ok {
		return nil, false
	}
	ascii := true
	for _, c := range str {
		if c < ' ' || c == '\\' {
			return nil, false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return str, ascii || utf8.Valid(str)
}

func (s *scanner) key(name string) bool {
	str, ok := s.raw()
	return ok && string(str) == name && s.open(':')
}

// fields calls field for the value of each key; field reports whether it knows the key and has skipped the value.
func (s *scanner) fields(field func(*scanner, []byte) bool) bool {
	if !s.open('{') {
		return false
	}
	for {
		name, ok := s.raw()
		if !ok || !s.open(':') || !field(s, name) {
			return false
		}
		s.space()
		if s.i >= len(s.b) {
			return false
		}
		s.i++
		switch s.b[s.i-1] {
		case ',':
		case '}':
			return true
		default:
			return false
		}
	}
}

func (s *scanner) content() bool {
	return s.fields((*scanner).contentField) && s.out.data != nil
}

func (s *scanner) contentField(name []byte) bool {
	switch string(name) {
	case "modelTurn":
		return s.fields((*scanner).turnField) && s.out.data != nil
	case "outputTranscription":
		return !s.out.hasText && s.fields((*scanner).transcriptionField)
	}
	return false
}

func (s *scanner) transcriptionField(name []byte) (ok bool) {
	if string(name) != "text" || s.out.hasText {
		return false
	}
	s.out.hasText = true
	s.out.text, ok = s.text()
	return ok
}

func (s *scanner) turnField(name []byte) bool {
	switch string(name) {
	case "parts":
		return s.open('[') && s.part() && s.open(']') // a second one is refused by blobField
	case "role":
		_, ok := s.text()
		return ok
	}
	return false
}

func (s *scanner) part() bool {
	return s.open('{') && s.key("inlineData") && s.fields((*scanner).blobField) &&
		s.open('}') && s.out.data != nil && s.out.mime != nil
}

func (s *scanner) blobField(name []byte) (ok bool) {
	switch string(name) {
	case "mimeType":
		if s.out.mime != nil {
			return false
		}
		s.out.mime, ok = s.raw()
	case "data":
		if s.out.data != nil {
			return false
		}
		s.out.data, ok = s.payload()
	}
	return ok
}

// likeness is the constant part of a model's audio messages: one that differs only in its audio needs no second scan,
// which would cost more than decoding a short piece. It is owned by Recv.
type likeness struct {
	// head ends with the quote before the audio; tail begins with the quote after it.
	head, tail []byte
	rate       int // the sample rate that head or tail states, in Hz
}

func (l *likeness) learn(msg, data []byte) {
	at := cap(msg) - cap(data) // data is a slice of msg
	l.head = append(l.head[:0], msg[:at]...)
	l.tail = append(l.tail[:0], msg[at+len(data):]...)
}

// As with scanAudio, a quote inside the audio is found by the decoder.
func (l *likeness) match(msg []byte) (data []byte, ok bool) {
	if len(l.head) == 0 || !bytes.HasPrefix(msg, l.head) {
		return nil, false
	}
	return bytes.CutSuffix(msg[len(l.head):], l.tail)
}

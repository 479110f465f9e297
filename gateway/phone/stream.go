package phone

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"voicegw/audio"
)

// kind is the kind of an event of a carrier; the zero kind is of no interest.
type kind int

const (
	started kind = iota + 1
	spoke
	pressed
	marked
	stopped
)

// event is a message of a carrier, in a buffer that the next one reuses.
type event struct {
	kind       kind
	call       call
	format     format
	parameters map[string]string
	audio      []byte // encoded
	key        byte
	gen, mark  uint32
}

// format is the encoding of a call's audio, in both directions.
type format struct {
	width          int
	silence        byte
	encode, decode func(dst, src []byte) []byte
	frames         websocket.MessageType
}

func linear(dst, src []byte) []byte { return append(dst, src...) }

var (
	ulaw = format{width: 1, silence: 0xFF, encode: audio.AppendULaw, decode: audio.AppendFromULaw, frames: websocket.MessageText}
	alaw = format{width: 1, silence: 0xD5, encode: audio.AppendALaw, decode: audio.AppendFromALaw, frames: websocket.MessageText}
	l16  = format{width: audio.BytesPerSample, encode: linear, decode: linear, frames: websocket.MessageBinary}
)

var formats = map[string]format{EncodingULaw: ulaw, EncodingPCMU: ulaw, EncodingPCMA: alaw, EncodingL16: l16}

// dialect is a carrier's form of media streams.
type dialect struct {
	carrier string
	parse   func(data []byte) (*Message, error)
	binary  bool // audio is in binary messages
	// media, mark and clear begin the messages of a stream, whose id takes the place of $; media is empty with binary audio.
	media, mark, clear string
}

var dialects = map[string]dialect{
	Twilio: {carrier: Twilio, parse: Parse, media: `{"event":"media","streamSid":$,"media":{"payload":"`,
		mark: `{"event":"mark","streamSid":$,"mark":{"name":"`, clear: `{"event":"clear","streamSid":$}`},
	Telnyx: {carrier: Telnyx, parse: ParseTelnyx, media: `{"event":"media","media":{"payload":"`,
		mark: `{"event":"mark","mark":{"name":"`, clear: `{"event":"clear"}`},
	Vonage: {carrier: Vonage, parse: ParseVonage, binary: true,
		mark: `{"action":"notify","payload":{"name":"`, clear: `{"action":"clear"}`},
}

// inStream puts a stream's id into the form of its messages.
func inStream(form, id string) []byte {
	quoted, _ := json.Marshal(id) // a string always has a JSON form
	return []byte(strings.Replace(form, "$", string(quoted), 1))
}

// stream is one media stream: it reads the carrier's messages and encodes the gateway's.
type stream struct {
	dialect
	begun     bool
	id        []byte
	mediaHead []byte
	markHead  []byte
	clearText []byte
	payload   []byte
}

// read takes a message of the carrier. The error says which rule it breaks.
func (s *stream) read(typ websocket.MessageType, data []byte, e *event) error {
	e.kind = 0
	if typ == websocket.MessageBinary {
		if !s.binary || len(data)%audio.BytesPerSample != 0 || len(data) > MaxPayload*audio.BytesPerSample {
			return fmt.Errorf("a binary message of %d bytes is not audio of %s", len(data), s.carrier)
		}
		if s.begun && len(data) > 0 {
			e.kind, e.audio = spoke, data
		}
		return nil
	}
	if s.begun && !s.binary {
		if payload, ok := AppendPayload(s.payload[:0], data, s.id); ok {
			s.heard(e, payload)
			return nil
		}
	}
	m, err := s.parse(data)
	switch {
	case err != nil:
		return err
	case m.Event == EventStart && s.begun:
		return errors.New("the stream started twice")
	case m.Event == EventStart:
		return s.start(m, e)
	case !s.begun:
		return nil
	case m.StreamSID != "" && m.StreamSID != string(s.id):
		return fmt.Errorf("the message %s belongs to another stream", m.Event)
	}
	return s.other(m, e)
}

func (s *stream) start(m *Message, e *event) error {
	f, ok := formats[m.Start.MediaFormat.Encoding]
	if in := m.Start.MediaFormat; !ok || (f.frames == websocket.MessageBinary) != s.binary || in.SampleRate != Rate || in.Channels > 1 {
		return fmt.Errorf("the audio is %.40q at %d Hz with %d channels; accepted is mu-law, A-law or, of Vonage, PCM16, "+
			"at 8000 Hz with 1 channel", in.Encoding, in.SampleRate, in.Channels)
	}
	if m.Start.CallSID == "" {
		return errors.New("the stream belongs to no call")
	}
	id := m.Start.StreamSID
	s.begun, s.id = true, []byte(id)
	s.mediaHead, s.markHead, s.clearText = inStream(s.media, id), inStream(s.mark, id), inStream(s.clear, id)
	e.kind, e.format, e.parameters = started, f, m.Start.CustomParameters
	e.call = call{carrier: s.carrier, id: m.Start.CallSID, account: m.Start.AccountSID}
	return nil
}

func (s *stream) other(m *Message, e *event) error {
	switch m.Event {
	case EventMedia:
		if m.Media.Track != "" && m.Media.Track != TrackInbound {
			return nil
		}
		payload, err := base64.StdEncoding.AppendDecode(s.payload[:0], []byte(m.Media.Payload))
		if err != nil {
			return fmt.Errorf("the payload of media: %w", err)
		}
		s.heard(e, payload)
	case EventDTMF:
		e.kind, e.key = pressed, m.DTMF.Digit[0]
	case EventMark:
		// The number of a name that the gateway did not make is of no mark.
		e.kind, e.gen, e.mark = marked, 0, 0
		gen, number, _ := strings.Cut(m.Mark.Name, "-")
		g, err := strconv.ParseUint(gen, 10, 32)
		n, wrong := strconv.ParseUint(number, 10, 32)
		if err == nil && wrong == nil {
			e.gen, e.mark = uint32(g), uint32(n)
		}
	case EventStop:
		e.kind = stopped
	}
	return nil
}

func (s *stream) heard(e *event, payload []byte) {
	if s.payload = payload; len(payload) > 0 {
		e.kind, e.audio = spoke, payload
	}
}

func (s *stream) appendMedia(dst, encoded []byte) []byte {
	if s.binary {
		return append(dst, encoded...)
	}
	return AppendMedia(dst, s.mediaHead, encoded)
}

func (s *stream) appendMark(dst []byte, gen, number uint32) []byte {
	dst = append(dst, s.markHead...)
	dst = append(strconv.AppendUint(dst, uint64(gen), 10), '-')
	return append(strconv.AppendUint(dst, uint64(number), 10), `"}}`...)
}

func (s *stream) appendClear(dst []byte, _, _ uint32) []byte { return append(dst, s.clearText...) }

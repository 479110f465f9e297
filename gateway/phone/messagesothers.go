package phone

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Encodings of other carriers.
const (
	EncodingPCMU = "PCMU"
	EncodingPCMA = "PCMA"
	EncodingL16  = "audio/l16" // PCM16, little-endian
)

// telnyxMessage is a message of Telnyx: as Twilio's, with other names. See
// https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket, read 2026-11-30.
type telnyxMessage struct {
	Event          string `json:"event"`
	SequenceNumber string `json:"sequence_number"`
	StreamID       string `json:"stream_id"`
	Start          *struct {
		CallControlID    string            `json:"call_control_id"`
		CustomParameters map[string]string `json:"custom_parameters"`
		MediaFormat      struct {
			Encoding   string `json:"encoding"`
			SampleRate int    `json:"sample_rate"`
			Channels   int    `json:"channels"`
		} `json:"media_format"`
	} `json:"start"`
	Media *Media `json:"media"`
	DTMF  *DTMF  `json:"dtmf"`
	Mark  *Mark  `json:"mark"`
	Stop  *Stop  `json:"stop"`
}

// ParseTelnyx reads a message of Telnyx as Parse reads Twilio's: CallSID is the call_control_id.
func ParseTelnyx(data []byte) (*Message, error) {
	var t telnyxMessage
	if err := unmarshal(data, &t); err != nil {
		return nil, err
	}
	m := &Message{Event: t.Event, SequenceNumber: t.SequenceNumber, StreamSID: t.StreamID, Media: t.Media, DTMF: t.DTMF, Mark: t.Mark,
		Stop: t.Stop}
	if s := t.Start; s != nil {
		m.Start = &Start{CallSID: s.CallControlID, StreamSID: t.StreamID, CustomParameters: s.CustomParameters,
			MediaFormat: MediaFormat(s.MediaFormat)}
	}
	return m, m.check()
}

func unmarshal(data []byte, into any) error {
	if len(data) > MaxMessage {
		return fmt.Errorf("a message has %d bytes; at most %d are accepted", len(data), MaxMessage)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("a message is not a JSON object of a media stream: %w", err)
	}
	return nil
}

// vonageEvents translates the events of Vonage.
var vonageEvents = map[string]string{"websocket:connected": EventStart, "websocket:dtmf": EventDTMF, "websocket:notify": EventMark}

// ParseVonage reads a text message of Vonage as Parse reads Twilio's; its audio is in binary messages. The custom
// headers of the stream are the parameters of start, and "call" of them is CallSID. A notify with the payload
// {"name": …} is a mark. See https://developer.vonage.com/voice/voice-api/concepts/websockets, read 2026-11-30.
func ParseVonage(data []byte) (*Message, error) {
	fields := map[string]json.RawMessage{}
	if err := unmarshal(data, &fields); err != nil {
		return nil, err
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(fields[name], &s) // another type is not a text
		return s
	}
	m := &Message{Event: text("event")}
	m.Event = cmp.Or(vonageEvents[m.Event], m.Event)
	switch m.Event {
	case EventStart:
		encoding, rate, _ := strings.Cut(text("content-type"), ";rate=")
		hz, err := strconv.Atoi(rate)
		if err != nil {
			return nil, fmt.Errorf("websocket:connected has the content-type %.40q; it is audio/l16;rate=8000", text("content-type"))
		}
		m.Start = &Start{CallSID: text("call"), CustomParameters: map[string]string{},
			MediaFormat: MediaFormat{Encoding: encoding, SampleRate: hz, Channels: 1}}
		for name := range fields {
			m.Start.CustomParameters[name] = text(name)
		}
	case EventDTMF:
		m.DTMF = &DTMF{Digit: text("digit")}
	case EventMark:
		m.Mark = new(Mark)
		_ = json.Unmarshal(fields["payload"], m.Mark) // a notify of another form has no name
	}
	return m, m.check()
}

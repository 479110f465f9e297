package phone

// The messages of Twilio follow https://www.twilio.com/docs/voice/media-streams/websocket-messages, and its signatures
// https://www.twilio.com/docs/usage/webhooks/webhooks-security, read 2026-11-30.

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"voicegw/audio"
)

// Rate is the sample rate of phone audio in Hz. FrameMS and FrameSamples are the length of a carrier's frame.
const (
	Rate         = 8000
	FrameMS      = 20
	FrameSamples = Rate * FrameMS / 1000
)

// Limits of a carrier's message. Longer messages are refused.
const (
	MaxMessage = 16 << 10
	// MaxPayload is the longest audio in one message, in samples: 500 ms.
	MaxPayload = Rate / 2
	// MaxName limits ids, names and parameters, in bytes.
	MaxName = 256
	// MaxParams limits the custom parameters of a start.
	MaxParams = 32
)

// Values of Message.Event. Numbers in messages are decimal strings.
const (
	EventConnected = "connected"
	EventStart     = "start"
	EventMedia     = "media"
	EventDTMF      = "dtmf"
	EventMark      = "mark"
	EventStop      = "stop"
	EventClear     = "clear" // from the gateway only
)

// EncodingULaw and TrackInbound are the only encoding and track of a bidirectional Twilio stream.
const (
	EncodingULaw = "audio/x-mulaw"
	TrackInbound = "inbound"
)

// Message is a text frame of a Twilio media stream, in either direction. The field named like Event is set.
type Message struct {
	Event          string `json:"event"`
	SequenceNumber string `json:"sequenceNumber,omitempty"`
	StreamSID      string `json:"streamSid,omitempty"`
	Protocol       string `json:"protocol,omitempty"` // of connected: "Call"
	Version        string `json:"version,omitempty"`  // of connected: "1.0.0"
	Start          *Start `json:"start,omitempty"`
	Media          *Media `json:"media,omitempty"`
	DTMF           *DTMF  `json:"dtmf,omitempty"`
	Mark           *Mark  `json:"mark,omitempty"`
	Stop           *Stop  `json:"stop,omitempty"`
}

// Start describes the call, once, after connected.
type Start struct {
	AccountSID       string            `json:"accountSid"`
	CallSID          string            `json:"callSid"`
	StreamSID        string            `json:"streamSid"`
	Tracks           []string          `json:"tracks,omitempty"`
	CustomParameters map[string]string `json:"customParameters,omitempty"`
	MediaFormat      MediaFormat       `json:"mediaFormat"`
}

// MediaFormat is the encoding of the audio in both directions.
type MediaFormat struct {
	Encoding   string `json:"encoding"`
	SampleRate int    `json:"sampleRate"`
	Channels   int    `json:"channels"`
}

// Media is a piece of audio: mu-law in base64, without a header. The gateway sends only Payload.
type Media struct {
	Track     string `json:"track,omitempty"`
	Chunk     string `json:"chunk,omitempty"`
	Timestamp string `json:"timestamp,omitempty"` // ms since the start of the stream
	Payload   string `json:"payload"`
}

// DTMF is a pressed key: 0 to 9, *, # or A to D.
type DTMF struct {
	Track string `json:"track,omitempty"`
	Digit string `json:"digit"`
}

// Mark names a point in the audio for the caller. The carrier returns it once everything before it has been played, or
// cleared.
type Mark struct {
	Name string `json:"name"`
}

// Stop ends the stream: the caller hung up, or the call continues without the stream.
type Stop struct {
	AccountSID string `json:"accountSid,omitempty"`
	CallSID    string `json:"callSid,omitempty"`
}

// Parse reads a message of either side. Unknown events and fields are accepted; the error says which rule a message
// breaks.
func Parse(data []byte) (*Message, error) {
	var m Message
	if err := unmarshal(data, &m); err != nil {
		return nil, err
	}
	return &m, m.check()
}

func (m *Message) check() error {
	names := []string{m.Event, m.SequenceNumber, m.StreamSID}
	has := true
	switch m.Event {
	case "":
		return errors.New("a message has no event")
	case EventStart:
		if has = m.Start != nil; has {
			names = append(names, m.Start.AccountSID, m.Start.CallSID, m.Start.StreamSID)
			if len(m.Start.CustomParameters) > MaxParams {
				return fmt.Errorf("start has %d parameters; at most %d are accepted", len(m.Start.CustomParameters), MaxParams)
			}
			for name, value := range m.Start.CustomParameters {
				names = append(names, name, value)
			}
		}
	case EventMedia:
		if has = m.Media != nil; has && len(m.Media.Payload) > base64.StdEncoding.EncodedLen(MaxPayload) {
			return fmt.Errorf("media has %d characters; at most %d ms are accepted", len(m.Media.Payload), MaxPayload*1000/Rate)
		}
	case EventDTMF:
		if has = m.DTMF != nil; has && !IsKey(m.DTMF.Digit) {
			return fmt.Errorf("dtmf has the key %.8q; it is one of 0 to 9, *, # and A to D", m.DTMF.Digit)
		}
	case EventMark:
		if has = m.Mark != nil; has {
			names = append(names, m.Mark.Name)
		}
	}
	if !has {
		return fmt.Errorf("the message %s has no object %[1]s", m.Event)
	}
	if slices.ContainsFunc(names, func(name string) bool { return len(name) > MaxName }) {
		return fmt.Errorf("a name of the message %.40q is longer than %d bytes", m.Event, MaxName)
	}
	return nil
}

// IsKey reports whether digit is one key of a phone.
func IsKey(digit string) bool {
	return len(digit) == 1 && strings.Contains("0123456789*#ABCD", digit)
}

// Encode encodes a message of either side.
func Encode(m *Message) ([]byte, error) {
	out, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Event, err)
	}
	return out, nil
}

// The fixed parts of a media message as Twilio sends it.
var (
	mediaPrefix  = []byte(`{"event":"media",`)
	payloadField = []byte(`"payload":"`)
	inboundField = []byte(`"track":"inbound"`)
)

// AppendPayload appends the audio of an inbound media message of the stream to dst, still encoded, and reports whether
// data is one; it saves parsing and allocates nothing if dst has the capacity. For any other data, and for media in an
// unusual form, it returns false, and Parse decides.
func AppendPayload(dst, data, stream []byte) ([]byte, bool) {
	at := bytes.Index(data, payloadField)
	if at < 0 || len(data) > MaxMessage || !bytes.HasPrefix(data, mediaPrefix) || !bytes.Contains(data, inboundField) ||
		!bytes.Contains(data, stream) {
		return dst, false
	}
	rest := data[at+len(payloadField):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || end > base64.StdEncoding.EncodedLen(MaxPayload) {
		return dst, false
	}
	out, err := audio.AppendFromBase64(dst, rest[:end])
	return out, err == nil
}

// AppendMedia appends a media message of the gateway with encoded audio to dst. It allocates nothing if dst has the
// capacity. head is the beginning of the stream's media messages.
func AppendMedia(dst, head, encoded []byte) []byte {
	dst = append(dst, head...)
	dst = audio.AppendBase64(dst, encoded)
	return append(dst, `"}}`...)
}

// Sign returns the X-Twilio-Signature of a request to url, which is the exact public URL: https for a webhook, wss for
// a stream. form has the fields of a POST; nil for an upgrade.
func Sign(token, url string, form url.Values) string {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(url))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(form[name]))) {
			mac.Write([]byte(name + value))
		}
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Signed reports whether signature is that of Sign, in constant time.
func Signed(signature, token, url string, form url.Values) bool {
	return token != "" && hmac.Equal([]byte(signature), []byte(Sign(token, url, form)))
}

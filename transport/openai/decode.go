package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"voicegw/audio"
)

// The types below hold the needed parts of the provider's events in plain fields. If a compatible server sends a field
// as another JSON type, the field keeps its zero value and the rest of the event is used (see decodeEvent). So no field
// may have a type that can fail to decode, as the SDK's types can.

// event is every event except those that carry a whole response.
type event struct {
	ResponseID   string     `json:"response_id"`
	ItemID       string     `json:"item_id"`
	ContentIndex int64      `json:"content_index"`
	Delta        string     `json:"delta"`
	Transcript   string     `json:"transcript"`
	Text         string     `json:"text"`
	AudioStartMS int64      `json:"audio_start_ms"`
	AudioEndMS   int64      `json:"audio_end_ms"`
	CallID       string     `json:"call_id"`
	Name         string     `json:"name"`
	Arguments    arguments  `json:"arguments"`
	Item         outputItem `json:"item"`
	Error        errorValue `json:"error"`
}

// errorValue is the content of an error event. Some servers send only a text.
type errorValue struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"`
	EventID string `json:"event_id"`
}

// UnmarshalJSON accepts an object, or a text as the message. It never fails.
func (e *errorValue) UnmarshalJSON(b []byte) error {
	type plain errorValue
	var p plain
	if _, err := decodeEvent(b, &p); err == nil {
		*e = errorValue(p)
	}
	if b[0] == '"' {
		_ = json.Unmarshal(b, &e.Message) // the decoder has checked that it is a valid string
	}
	return nil
}

// arguments are a call's arguments as JSON text, taken from a string or from an object.
type arguments string

// UnmarshalJSON accepts both forms, and reads anything else as no arguments. It never fails.
func (a *arguments) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '{':
		*a = arguments(b)
	case '"':
		_ = json.Unmarshal(b, (*string)(a)) // the decoder has checked that it is a valid string
	}
	return nil
}

// outputItem holds the needed parts of a response's item of any type.
type outputItem struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Status    string    `json:"status"`
	Name      string    `json:"name"`
	CallID    string    `json:"call_id"`
	Arguments arguments `json:"arguments"`
}

// responseEvent is response.created and response.done.
type responseEvent struct {
	Response struct {
		ID            string          `json:"id"`
		Status        string          `json:"status"`
		StatusDetails statusDetails   `json:"status_details"`
		Output        []outputItem    `json:"output"`
		Usage         *usage          `json:"usage"`
		Metadata      json.RawMessage `json:"metadata"`
	} `json:"response"`
	// xAI sends the usage beside the response.
	Usage *usage `json:"usage"`
}

// statusDetails is why a response did not complete. xAI sends a useless string (recorded, read 2026-11-23).
type statusDetails struct {
	Reason string     `json:"reason"`
	Error  errorValue `json:"error"`
}

// usage counts the tokens of one response.
type usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Input        struct {
		modalities
		Image  int64       `json:"image_tokens"`
		Cached int64       `json:"cached_tokens"`
		Of     *modalities `json:"cached_tokens_details"`
	} `json:"input_token_details"`
	Output modalities `json:"output_token_details"`
}

type modalities struct {
	Text  int64 `json:"text_tokens"`
	Audio int64 `json:"audio_tokens"`
}

// sessionEvent is session.created and session.updated.
type sessionEvent struct {
	Session struct {
		ID        string `json:"id"`
		Model     string `json:"model"`
		ExpiresAt int64  `json:"expires_at"` // s since the epoch
		Audio     struct {
			Input struct {
				TurnDetection turnDetectionValue `json:"turn_detection"`
				Format        audioFormat        `json:"format"`
			} `json:"input"`
			Output struct {
				Format audioFormat `json:"format"`
			} `json:"output"`
		} `json:"audio"`
		// Servers of the beta's form, and xAI's, send it here.
		TurnDetection turnDetectionValue `json:"turn_detection"`
		// The beta's form.
		InputFormat  audioFormat `json:"input_audio_format"`
		OutputFormat audioFormat `json:"output_audio_format"`
	} `json:"session"`
}

// audioFormat is an announcement: an object or, in the beta's form, a name; empty without one.
type audioFormat struct {
	Type string      `json:"type"`
	Rate json.Number `json:"rate"`
}

// UnmarshalJSON accepts both forms, and reads any other value as a type that cannot be used. It never fails.
func (f *audioFormat) UnmarshalJSON(b []byte) error {
	type plain audioFormat
	var p plain
	switch {
	case string(b) == "null":
	case json.Unmarshal(b, &p.Type) == nil:
	case json.Unmarshal(b, &p) != nil:
		p.Type = string(b)
	}
	*f = audioFormat(p)
	return nil
}

// pcmTypes are the names of PCM16 in announcements. Those without a rate have sampleRate: the beta's pcm16
// (platform.openai.com/docs/api-reference/realtime-beta-sessions, read 2026-11-29), and names that compatible
// servers use for it.
var pcmTypes = []string{"", "audio/pcm", "pcm16", "pcm24", "pcm"}

func (f audioFormat) hz(standard int) (int, error) {
	if f == (audioFormat{}) {
		return standard, nil
	}
	rate := sampleRate
	var err error
	if f.Rate != "" {
		rate, err = strconv.Atoi(f.Rate.String())
	}
	if err != nil || !slices.Contains(pcmTypes, f.Type) || rate < audio.MinRate || rate > audio.MaxRate {
		return 0, fmt.Errorf("%w: %s at %s Hz; set the server to audio/pcm at %d to %d Hz, best at %d", errFormat,
			strconv.Quote(clip(f.Type, 40)), cmp.Or(clip(f.Rate.String(), 20), "an unknown number of"), audio.MinRate,
			audio.MaxRate, sampleRate)
	}
	return rate, nil
}

type turnDetectionValue struct {
	SilenceMS *int64 `json:"silence_duration_ms"` // nil where the server does not say
}

// misfit names the first field of another JSON type, which keeps its zero value. The error means invalid JSON.
func decodeEvent(frame []byte, into any) (misfit string, err error) {
	err = json.Unmarshal(frame, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrong.Field, nil
	}
	return "", err
}

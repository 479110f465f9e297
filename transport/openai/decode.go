package openai

import (
	"encoding/json"
	"errors"
)

// The types below hold the needed parts of the provider's events in plain fields. If a
// compatible server sends a field as another JSON type, the field keeps its zero value and
// the rest of the event is used (see decodeEvent). So no field may have a type that can fail
// to decode, as the SDK's types can.

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

// arguments are a call's arguments as JSON text, taken from a string or from
// an object.
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

// statusDetails is why a response did not complete. xAI's server sends a string here,
// which has no useful content (recorded session, read 2026-11-23).
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
			} `json:"input"`
		} `json:"audio"`
		// Servers of the beta's form, and xAI's, send it here.
		TurnDetection turnDetectionValue `json:"turn_detection"`
	} `json:"session"`
}

type turnDetectionValue struct {
	SilenceMS *int64 `json:"silence_duration_ms"` // nil where the server does not say
}

// decodeEvent decodes frame into a struct of plain fields. Fields with an unexpected JSON
// type keep their zero value; misfit names the first of them. The error means that
// the frame is invalid JSON.
func decodeEvent(frame []byte, into any) (misfit string, err error) {
	err = json.Unmarshal(frame, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrong.Field, nil
	}
	return "", err
}

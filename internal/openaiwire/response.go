package openaiwire

import (
	"cmp"
	"encoding/json"
)

// Status of a response or an item.
const (
	InProgress = "in_progress"
	Completed  = "completed"
	Incomplete = "incomplete"
	Cancelled  = "cancelled"
	Failed     = "failed"
)

// ResponseParams are the settings of one response; nil or empty means the session's setting.
type ResponseParams struct {
	Aside        bool    // conversation is "none"
	Input        []*Item // of Aside and of others; references are not resolved
	Given        bool    // Input was given, even if empty
	Instructions *string
	Tools        []Tool // nil if they were not given
	ToolChoice   json.RawMessage
	Modalities   []string
	MaxTokens    json.RawMessage
	Metadata     json.RawMessage
	Voice        string
	Format       Format
}

func readParams(raw json.RawMessage) (*ResponseParams, *Error) {
	q := &ResponseParams{}
	if len(raw) == 0 || isNull(raw) {
		return q, nil
	}
	var conversation string
	err := Fields{
		"conversation": Word(&conversation, "auto", "none"),
		"input": each(func(raw json.RawMessage, path string) *Error {
			it, err := readItem(raw, path)
			q.Input = append(q.Input, it)
			return err
		}, func() { q.Given = true }),
		"instructions": present(&q.Instructions, Text),
		"tools":        tools(&q.Tools), "tool_choice": toolChoice(&q.ToolChoice), "output_modalities": modalities(&q.Modalities),
		"max_output_tokens": maxTokens(&q.MaxTokens), "metadata": Raw(&q.Metadata), "prompt": Ignored, "reasoning": Ignored,
		"parallel_tool_calls": Ignored,
		"audio": Fields{"output": Fields{"format": formats(&q.Format), "voice": func(raw json.RawMessage, path string) (err *Error) {
			q.Voice, err = voiceName(raw, path)
			return err
		}}.Read}.Read,
	}.Read(raw, "response")
	q.Aside = conversation == "none"
	return q, err
}

// Response is the response in response.created and response.done, its keys in the order of the recordings.
type Response struct {
	Object           string          `json:"object"`
	ID               string          `json:"id"`
	Status           string          `json:"status"`
	StatusDetails    any             `json:"status_details"` // null or an object, as Usage is
	Output           []*Item         `json:"output"`
	ConversationID   *string         `json:"conversation_id"`
	OutputModalities []string        `json:"output_modalities"`
	MaxOutputTokens  json.RawMessage `json:"max_output_tokens"`
	Audio            struct {
		Output struct {
			Format Format `json:"format"`
			Voice  string `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
	Usage    any             `json:"usage"`
	Metadata json.RawMessage `json:"metadata"`
}

// NewResponse returns a response in progress with the settings of a request and, for the rest, of the session.
// conversation is its conversation's id, which a response aside does not show.
func NewResponse(id, conversation string, s *Session, q *ResponseParams) *Response {
	r := &Response{
		Object: "realtime.response", ID: id, Status: InProgress, Output: []*Item{},
		OutputModalities: Given(q.Modalities, s.OutputModalities), MaxOutputTokens: Given(q.MaxTokens, s.MaxOutputTokens),
		Metadata: Given(q.Metadata, null),
	}
	if !q.Aside {
		r.ConversationID = &conversation
	}
	r.Audio.Output.Format = cmp.Or(q.Format, s.Audio.Output.Format)
	r.Audio.Output.Voice = cmp.Or(q.Voice, s.Audio.Output.Voice)
	return r
}

// Given returns asked or, if it is nil, the other value.
func Given[S ~[]E, E any](asked, otherwise S) S {
	if asked != nil {
		return asked
	}
	return otherwise
}

// End sets the status of a response, and returns that of its open items. details are the members of status_details after
// its type, such as "reason", "turn_detected", or "error" and its object.
func (r *Response) End(status string, details ...any) (ofItems string) {
	if r.Status = status; len(details) > 0 {
		r.StatusDetails = append(Object{"type", status}, details...)
	}
	if status != Completed {
		return Incomplete
	}
	return Completed
}

// InText reports whether the response is text without speech.
func (r *Response) InText() bool { return r.OutputModalities[0] == "text" }

// Usage counts the tokens of a response.
type Usage struct {
	InputText, InputAudio   int
	CachedText, CachedAudio int // part of the input
	OutputText, OutputAudio int
	Reasoning               int // part of OutputText
}

// Total returns all tokens.
func (u Usage) Total() int { return u.InputText + u.InputAudio + u.OutputText + u.OutputAudio }

// Add returns u and v, v a number of times.
func (u Usage) Add(v Usage, times int) Usage {
	return Usage{u.InputText + times*v.InputText, u.InputAudio + times*v.InputAudio, u.CachedText + times*v.CachedText,
		u.CachedAudio + times*v.CachedAudio, u.OutputText + times*v.OutputText, u.OutputAudio + times*v.OutputAudio,
		u.Reasoning + times*v.Reasoning}
}

// MarshalJSON writes the keys in the order of the recordings.
func (u Usage) MarshalJSON() ([]byte, error) {
	out := Object{"text_tokens", u.OutputText, "audio_tokens", u.OutputAudio}
	if u.Reasoning > 0 {
		out = append(out, "reasoning_tokens", u.Reasoning)
	}
	return Object{
		"total_tokens", u.Total(), "input_tokens", u.InputText + u.InputAudio, "output_tokens", u.OutputText + u.OutputAudio,
		"input_token_details", Object{
			"text_tokens", u.InputText, "audio_tokens", u.InputAudio, "image_tokens", 0, "cached_tokens", u.CachedText + u.CachedAudio,
			"cached_tokens_details", Object{"text_tokens", u.CachedText, "audio_tokens", u.CachedAudio, "image_tokens", 0},
		},
		"output_token_details", out,
	}.MarshalJSON()
}

// DurationUsage is the usage of a transcription that is billed by time.
func DurationUsage(seconds int) Object { return Object{"type", "duration", "seconds", seconds} }

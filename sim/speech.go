package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
)

const (
	maxSpoken  = 4096  // characters
	speechRate = 24000 // Hz, of every format
)

type speechRequest struct {
	Model  string   `json:"model"`
	Input  *string  `json:"input"`
	Voice  string   `json:"voice"`
	Format string   `json:"response_format"`
	Speed  *float64 `json:"speed"`
}

func (s *Server) speech(x *exchange, body []byte, deployment string, _ bool) *Error {
	var r speechRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return openaiwire.Invalid("", "", "We could not parse the JSON body of your request.")
	}
	speed := 1.0
	if r.Speed != nil {
		speed = *r.Speed
	}
	switch r.Format = cmp.Or(r.Format, "mp3"); {
	case cmp.Or(r.Model, deployment) == "":
		return noModel()
	case r.Input == nil:
		return openaiwire.Missing("input")
	case strings.TrimSpace(*r.Input) == "":
		return openaiwire.Invalid("string_too_short", "input", "Invalid 'input': string too short. Expected at least 1 character.")
	case utf8.RuneCountInString(*r.Input) > maxSpoken:
		return openaiwire.Invalid("string_too_long", "input",
			"Invalid 'input': string too long. Expected at most %d characters.", maxSpoken)
	case r.Voice == "":
		return openaiwire.Missing("voice")
	case r.Format != "wav" && r.Format != "pcm": // (own)
		return openaiwire.BadValue("response_format", r.Format, "wav", "pcm")
	case speed < 0.25 || speed > 4:
		return openaiwire.Invalid("invalid_value", "speed", "Invalid 'speed': expected 0.25 to 4.")
	}
	x.At(scenario.Point{At: scenario.AtTurn, N: 1, Turn: 1})
	if x.over {
		return nil
	}
	s.opts.Stats.Responses.Add(1)
	pcm := s.lines.Speak(*r.Input, voice.Options{Rate: speechRate, Voice: r.Voice, Speed: speed}).PCM
	if r.Format == "pcm" {
		x.send("audio/pcm", pcm)
		return nil
	}
	var b bytes.Buffer
	if err := audio.WriteWAV(&b, speechRate, pcm); err != nil {
		return &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: err.Error()}
	}
	x.send("audio/wav", b.Bytes())
	return nil
}

package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"voicegw/internal/openaiwire"
)

// wholeLine is longer than any line, in ms.
const wholeLine = 3600 * 1000

// maxRefusals is after how many errors a strict server closes the connection.
const maxRefusals = 3

// localServers are the names under which the simulator plays local servers, from the sources at transport/openai.Local:
// none was recorded.
var localServers = map[string]model{
	"localai":        {voice: "default", silenceMS: 500, local: true, whole: true, uncounted: true, hidden: []string{"expires_at"}},
	"localai-broken": {local: true, unloadable: true},
	"speech-to-speech": {
		voice: "default", silenceMS: 500, local: true, uncounted: true, hidden: []string{"expires_at"}, names: map[string]string{
			"conversation.item.added": "conversation.item.created", "conversation.item.done": "", "conversation.item.truncated": "",
			"input_audio_buffer.committed": "", "response.content_part.added": "", "response.content_part.done": "",
			"response.output_item.added": "", "response.output_item.done": "", "response.function_call_arguments.delta": "",
			"response.output_audio_transcript.delta": "",
		},
	},
	"nemotron": {
		voice: "default", silenceMS: 500, local: true, strict: true, rate: 16000, conversation: true, hidden: []string{
			"tracing", "truncation", "prompt", "include", "expires_at", "max_output_tokens", "audio.input.transcription",
			"audio.input.noise_reduction", "audio.output.speed", "audio.input.turn_detection.threshold",
			"audio.input.turn_detection.prefix_padding_ms", "audio.input.turn_detection.silence_duration_ms",
			"audio.input.turn_detection.idle_timeout_ms", "audio.input.turn_detection.create_response",
			"audio.input.turn_detection.interrupt_response",
		},
	},
	"vllm-omni": {
		voice: "default", silenceMS: 500, local: true, uncounted: true, names: map[string]string{
			"conversation.item.truncated": "", "response.content_part.added": "", "response.content_part.done": "",
		}, hidden: []string{"type", "object", "output_modalities", "instructions", "tools", "tool_choice", "max_output_tokens",
			"tracing", "truncation", "prompt", "include", "expires_at", "audio"},
	},
}

// loadError is what LocalAI sends instead of session.created.
func loadError(name string) *refusal {
	return &refusal{1000, &openaiwire.Error{Type: "server_error", Code: "model_load_error", Message: "Failed to load the model " + name}}
}

// shown is the session as the server shows it.
func (m *model) shown(s *openaiwire.Session) any {
	if len(m.hidden) == 0 {
		return s
	}
	all := members(s)
	for _, path := range m.hidden {
		hide(all, strings.Split(path, "."))
	}
	return all
}

func members(v any) map[string]any {
	b, err := json.Marshal(v)
	var all map[string]any
	if err != nil || json.Unmarshal(b, &all) != nil { // an encoded value can be decoded
		return map[string]any{}
	}
	return all
}

func hide(from map[string]any, path []string) {
	if inner, ok := from[path[0]].(map[string]any); ok && len(path) > 1 {
		hide(inner, path[1:])
	} else if len(path) == 1 {
		delete(from, path[0])
	}
}

// checkShown refuses the first setting that a strict server does not show.
func (m *model) checkShown(s *openaiwire.Session, update json.RawMessage) *openaiwire.Error {
	if !m.strict {
		return nil
	}
	return onlyShown(members(update), members(m.shown(s)), "session")
}

func onlyShown(update, shown map[string]any, path string) *openaiwire.Error {
	for _, key := range slices.Sorted(maps.Keys(update)) {
		at := path + "." + key
		there, ok := shown[key]
		if !ok {
			return openaiwire.Invalid("unsupported_parameter", at, "%s is not supported.", at)
		}
		inner, isObject := update[key].(map[string]any)
		if known, ok := there.(map[string]any); ok && isObject {
			if err := onlyShown(inner, known, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure sets the values that a local server chooses itself.
func (m *model) configure(s *openaiwire.Session) {
	if m.rate > 0 {
		s.Audio.Input.Format.Rate, s.Audio.Output.Format.Rate = m.rate, m.rate
	}
	if m.local { // its model transcribes unasked
		s.Audio.Input.Transcription = &openaiwire.Transcription{Model: "whisper-1"}
	}
}

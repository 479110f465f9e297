package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// Local as the setting dialect means a server on one's own machine that implements a part of the Realtime API. It may load
// its model before its first message, confirm nothing but session.update, and refuse settings that session.created
// does not show.
//
// Sources, read 2026-11-30: localai.io/features/openai-realtime; huggingface/speech-to-speech,
// src/speech_to_speech/api/openai_realtime; NVIDIA-AI-Blueprints/nemotron-voice-agent, src/realtime/session.py and
// docs/how-to/use-realtime-gateway.md; docs.vllm.ai/projects/vllm-omni, serving/realtime_openai_duplex_api. No
// session with them was recorded.
const Local = "local"

const (
	// DefaultLoadTime is how long a local server may load its model.
	DefaultLoadTime = 2 * time.Minute
	// MaxLoadTime bounds the setting load_time.
	MaxLoadTime = 30 * time.Minute
	// handshakePatience bounds the handshake with a local server, which answers it before it loads anything.
	handshakePatience = 5 * time.Second
	// localReadLimit bounds a frame, in bytes: a server that does not stream sends a whole answer in one.
	localReadLimit = 32 << 20
)

// localDialect is chosen by the setting dialect, not by address.
var localDialect = dialect{
	name: "local server", modelParam: "model", local: true,
	source: "localai.io, speech-to-speech, nemotron-voice-agent and vLLM-Omni documentation and code, read 2026-11-30; not recorded",
}

// agentSettings are sent to every server: without them it is not an agent.
var agentSettings = []string{"type", "instructions", "tools"}

// fit reduces a session.update to the settings that session.created shows. A server that shows none gets them all.
func (c *conn) fit(update []byte, shown json.RawMessage) ([]byte, error) {
	var frame, ours, theirs map[string]json.RawMessage
	if err := json.Unmarshal(update, &frame); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(frame["session"], &ours); err != nil {
		return nil, err
	}
	// A session that is not an object shows nothing.
	_ = json.Unmarshal(shown, &theirs)
	describes := func(key string) bool { _, ok := theirs[key]; return key != "type" && ok }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(ours)), describes) {
		return update, nil
	}
	var dropped []string
	session, err := shownOnly(ours, theirs, "", &dropped)
	if err != nil {
		return nil, err
	}
	if len(dropped) > 0 {
		slices.Sort(dropped)
		c.log.Info("settings_not_sent", "provider", c.info.Provider, "settings", strings.Join(dropped, " "),
			"reason", "session.created does not show them")
	}
	frame["session"] = session
	return json.Marshal(frame)
}

// shownOnly encodes ours without the members that theirs lacks, and without formats of audio that can be used as they
// are. A null turns a setting off and is always sent.
func shownOnly(ours, theirs map[string]json.RawMessage, path string, dropped *[]string) (json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for key, value := range ours {
		there, shown := theirs[key]
		var inner, innerTheirs map[string]json.RawMessage
		switch {
		case path == "" && slices.Contains(agentSettings, key), bytes.Equal(value, []byte("null")):
			out[key] = value
		case !shown:
			*dropped = append(*dropped, path+key)
		case key == "format":
			if !usable(there) {
				out[key] = value
			}
		case json.Unmarshal(value, &inner) == nil && json.Unmarshal(there, &innerTheirs) == nil && innerTheirs != nil:
			reduced, err := shownOnly(inner, innerTheirs, path+key+".", dropped)
			if err != nil {
				return nil, err
			}
			if string(reduced) != "{}" {
				out[key] = reduced
			}
		default: // a value, or an object where the server shows null
			out[key] = value
		}
	}
	return json.Marshal(out)
}

// usable reports whether the gateway can use a shown format of audio as it is.
func usable(format json.RawMessage) bool {
	var f audioFormat
	if f.UnmarshalJSON(format) != nil || f == (audioFormat{}) {
		return false
	}
	_, err := f.hz(sampleRate)
	return err == nil
}

// localHistory makes one text of the user of the conversation so far, as some servers refuse or drop entries of other
// roles, and one closes the connection after several refusals. The user's last words follow if it has no answer:
// the caller may ask for one.
func localHistory(past []transport.Past) ([]pastItem, error) {
	var lines []string
	open := unanswered(past)
	for i, p := range past {
		if i == open {
			continue
		}
		line, err := pastLine(p)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	var notes []transport.Past
	if len(lines) > 0 {
		notes = append(notes, transport.PastNote{Text: prompts.EarlierLines(lines)})
	}
	if open >= 0 {
		notes = append(notes, transport.PastNote{Text: past[open].(transport.PastUser).Text})
	}
	return localDialect.chain(opPast+"_", notes...)
}

// unanswered is the index of the user's last words if no answer follows them, or -1.
func unanswered(past []transport.Past) int {
	for i := len(past) - 1; i >= 0; i-- {
		switch past[i].(type) {
		case transport.PastUser:
			return i
		case transport.PastAssistant:
			return -1
		}
	}
	return -1
}

// LoadTime implements transport.Loading.
func (t *Transport) LoadTime() time.Duration { return t.opts.loadTime }

var _ transport.Loading = (*Transport)(nil)

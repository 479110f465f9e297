package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"voicegw/transport"
	"voicegw/transport/openai"
)

// localSessions has the session that each local server shows in session.created, and the members of session.update that
// it accepts.
var localSessions = map[string]struct {
	shown   string
	accepts []string
	// bare servers report no items, no commits, no usage, and a call only by its arguments.
	bare bool
}{
	"nemotron": {
		shown:   `{"id":"sess_1","object":"realtime.session","type":"realtime","model":"m","instructions":"","output_modalities":["audio"],"audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"turn_detection":{"type":"server_vad"}},"output":{"format":{"type":"audio/pcm","rate":16000},"voice":""}},"tools":[],"tool_choice":"auto"}`,
		accepts: []string{"type", "instructions", "output_modalities", "audio.input.turn_detection.type", "tools", "tool_choice"},
	},
	"speech-to-speech": {
		shown: `{"type":"realtime","model":"m","audio":{"input":{"format":null,"noise_reduction":null,"transcription":null,"turn_detection":null},"output":{"format":null,"speed":null,"voice":null}},"instructions":null,"output_modalities":null,"tool_choice":null,"tools":null}`,
		accepts: []string{"type", "instructions", "output_modalities", "audio.input.format.type", "audio.input.format.rate", "audio.input.turn_detection.type",
			"audio.input.turn_detection.create_response", "audio.input.turn_detection.interrupt_response", "audio.output.format.type", "audio.output.format.rate", "tools", "tool_choice"},
		bare: true,
	},
	"no settings": {
		shown: `{"id":"sess_1","model":"m"}`,
		accepts: []string{"type", "instructions", "output_modalities", "audio.input.format.type", "audio.input.format.rate", "audio.input.turn_detection.type",
			"audio.input.turn_detection.create_response", "audio.input.turn_detection.interrupt_response", "audio.output.format.type", "audio.output.format.rate", "tools", "tool_choice"},
	},
}

func TestLocal(t *testing.T) {
	for name := range localSessions {
		t.Run(name, func(t *testing.T) {
			Suite(t, Harness{
				Start:  func(t *testing.T) Provider { return newLocal(t, name) },
				Secret: secret,
				First:  openaiCreated,
				CloseKinds: map[int]transport.Kind{
					1000: transport.KindRetry, 1001: transport.KindExpired, 1008: transport.KindRetry, 1011: transport.KindRetry,
				},
				StatusKinds: map[int]transport.Kind{401: transport.KindAuth, 404: transport.KindInvalid, 503: transport.KindServer},
			})
		})
	}
}

// localServer is a scripted local server.
type localServer struct {
	*openaiServer
	bare bool
}

// localPeer is the server's end of one connection.
type localPeer struct {
	*openaiPeer
	bare bool
}

func newLocal(t *testing.T, name string) *localServer {
	t.Helper()
	kind := localSessions[name]
	s := &localServer{openaiServer: newOpenAI(t), bare: kind.bare}
	s.opts.Settings = map[string]string{"dialect": openai.Local}
	s.greet = func(p *openaiPeer) {
		p.send(`{"type":"session.created","event_id":"e","session":%s}`, kind.shown)
		p.setup, _ = p.expect("session.update")["session"].(map[string]any)
		for _, path := range leaves("", p.setup) {
			if !slices.Contains(kind.accepts, path) {
				p.t.Errorf("the server does not accept %s", path)
			}
		}
		p.send(`{"type":"session.updated","event_id":"e","session":%s}`, kind.shown)
		if s.remember.Load() > 0 { // the server confirms nothing
			item, _ := p.expect("conversation.item.create")["item"].(map[string]any)
			p.past = append(p.past, item)
		}
	}
	return s
}

// leaves returns the paths of all values in nested objects.
func leaves(prefix string, in map[string]any) (paths []string) {
	for key, value := range in {
		if inner, ok := value.(map[string]any); ok {
			paths = append(paths, leaves(prefix+key+".", inner)...)
		} else {
			paths = append(paths, prefix+key)
		}
	}
	return paths
}

func (s *localServer) Transport(client *http.Client) transport.Transport {
	return s.openaiServer.Transport(client)
}

func (s *localServer) Accept() Peer { return &localPeer{s.accept(), s.bare} }

// CallTools sends the calls of a bare server without their items.
func (p *localPeer) CallTools(calls ...transport.ToolCall) {
	p.t.Helper()
	if !p.bare {
		p.openaiPeer.CallTools(calls...)
		return
	}
	item := p.id("item") // all calls and the speech share it
	for i, call := range calls {
		p.send(`{"type":"response.function_call_arguments.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":%d,"call_id":%q,"name":%q,"arguments":%q}`,
			p.response, item, i, call.ID, call.Name, call.Args)
	}
	p.Finish()
}

func (p *localPeer) Finish() {
	p.t.Helper()
	if !p.bare {
		p.openaiPeer.Finish()
		return
	}
	said, _ := p.setup["said"].(string)
	delete(p.setup, "said")
	if p.item != "" {
		p.send(`{"type":"response.output_audio_transcript.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"transcript":%q}`, p.response, p.item, trimNil(said))
		p.send(`{"type":"response.output_audio.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0}`, p.response, p.item)
	}
	p.send(`{"type":"response.done","event_id":"e","response":{"object":"realtime.response","id":%q,"status":"completed","status_details":{"type":"completed"},"output":null,"usage":null}}`, p.response)
}

func (p *localPeer) Interrupt() {
	p.t.Helper()
	if !p.bare {
		p.openaiPeer.Interrupt()
		return
	}
	p.send(`{"type":"input_audio_buffer.speech_started","event_id":"e","audio_start_ms":100,"item_id":%q}`, p.id("item"))
	p.send(`{"type":"response.done","event_id":"e","response":{"id":%q,"status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"},"output":null,"usage":null}}`, p.response)
	delete(p.setup, "said")
}

// History returns the lines of the only item.
func (p *localPeer) History() (got []Remembered) {
	for _, item := range p.past {
		content := item["content"].([]any)[0].(map[string]any)
		if item["role"] != "user" || content["type"] != "input_text" {
			p.t.Errorf("the item %v is not a text of the user", item)
		}
		lines := strings.Split(fmt.Sprint(content["text"]), "\n")
		if len(lines) > 1 {
			lines = lines[1:] // the introduction
		}
		for _, line := range lines {
			role := "user"
			if strings.HasPrefix(line, "You said: ") {
				role = "assistant"
			}
			got = append(got, Remembered{Role: role, Text: line})
		}
	}
	return got
}

func (p *localPeer) NextItem() Remembered {
	p.t.Helper()
	item, _ := p.expect("conversation.item.create")["item"].(map[string]any)
	p.past = []map[string]any{item}
	return p.History()[0]
}

package gemini

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/sim/wire"
)

// refusal is the message of a client on a new connection, and the close.
type refusal struct {
	name   string
	path   string // empty: the Developer API
	key    string
	frames []string
	code   websocket.StatusCode
	reason string // a prefix, because the provider cuts its reasons
}

func refusedMessages() []refusal {
	ok := setupFor(model25, "")
	return []refusal{
		{name: "invalid key", key: "invalid-1", frames: []string{ok}, code: 1007, reason: "API key not valid. Please pass a valid API key."},
		{name: "expired key", key: "expired-1", frames: []string{ok}, code: 1007, reason: "API key expired. Please renew the API key."},
		{name: "not JSON", frames: []string{"hello"}, code: 1007, reason: "Invalid JSON payload received. Unexpected token.\nhello\n^"},
		{name: "not an object", frames: []string{"[1]"}, code: 1007, reason: "Invalid JSON payload received."},
		{name: "empty object", frames: []string{"{}"}, code: 1007, reason: "Request contains an invalid argument."},
		{name: "no setup", frames: []string{typed("hi")}, code: 1007, reason: "setup must be the first message and only the first"},
		{name: "second setup", frames: []string{ok, ok}, code: 1007, reason: "Request contains an invalid argument."},
		{
			name: "two messages in one", frames: []string{ok, `{"clientContent":{"turnComplete":true},"toolResponse":{}}`},
			code: 1007, reason: "Invalid value (oneof), oneof field 'message' is already set. Cannot set 'toolResponse'",
		},
		{
			name: "unknown message", frames: []string{ok, `{"session.update":{}}`},
			code: 1007, reason: `Invalid JSON payload received. Unknown name "session.update": Cannot find field.`,
		},
		{
			name: "unknown field", frames: []string{setupFor(model25, `"responseModalities":["AUDIO"]`)},
			code: 1007, reason: `Invalid JSON payload received. Unknown name "responseModalities" at 'setup': Cannot find field.`,
		},
		{
			name: "wrong type", frames: []string{ok, `{"clientContent":{"turnComplete":"yes"}}`},
			code: 1007, reason: `Invalid value at 'client_content.turn_complete' (TYPE_BOOL), "yes"`,
		},
		{
			name: "activity with detection", frames: []string{ok, `{"realtimeInput":{"activityStart":{}}}`},
			code: 1007, reason: "Explicit activity control is not supported when automatic activity detection is enabled.",
		},
		{
			name: "stream end without detection", frames: []string{
				setupFor(model25, `"realtimeInputConfig":{"automaticActivityDetection":{"disabled":true}}`), `{"realtimeInput":{"audioStreamEnd":true}}`,
			}, code: 1007, reason: "Request contains an invalid argument.",
		},
		{
			name: "sensitivity", frames: []string{setupFor(model25, `"realtimeInputConfig":{"automaticActivityDetection":{"startOfSpeechSensitivity":"VERY"}}`)},
			code: 1007, reason: "Invalid value at 'setup.realtime_input_config.automatic_activity_detection.start_of_speech_sensitivity'",
		},
		{
			name: "audio type", frames: []string{ok, `{"realtimeInput":{"audio":{"data":"AAAA","mimeType":"audio/mp3"}}}`},
			code: 1007, reason: "Request contains an invalid argument.",
		},
		{
			name: "audio rate", frames: []string{ok, `{"realtimeInput":{"audio":{"data":"AAAA","mimeType":"audio/pcm;rate=1"}}}`},
			code: 1007, reason: "Request contains an invalid argument.",
		},
		{
			name: "broken base64", frames: []string{ok, `{"realtimeInput":{"audio":{"data":"A*AA","mimeType":"audio/pcm"}}}`},
			code: 1007, reason: "Invalid value at 'realtime_input.audio.data' (TYPE_BYTES), Base64 decoding failed",
		},
		{
			name: "transparent on the Developer API", frames: []string{setupFor(model25, `"sessionResumption":{"transparent":true}`)},
			code: 1007, reason: `Invalid JSON payload received. Unknown name "transparent" at 'setup.session_resumption': Cannot find field.`,
		},
	}
}

func refusedSetups() []refusal {
	return []refusal{
		{
			name: "unknown model", frames: []string{setupFor("models/gemini-9", "")}, code: 1008,
			// 123 bytes, cut in a word, as recorded.
			reason: "models/gemini-9 is not found for API version v1beta, or is not supported for bidiGenerateContent. Call ListModels to see th",
		},
		{name: "no model", frames: []string{`{"setup":{}}`}, code: 1007, reason: "Request contains an invalid argument."},
		{
			name: "Vertex, unknown model", path: "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent",
			frames: []string{setupFor("publishers/google/models/gemini-9", "")}, code: 1008, reason: "Publisher Model `publishers/google/models/gemini-9` was not found",
		},
		{name: "unknown handle", frames: []string{setupFor(model25, `"sessionResumption":{"handle":"x"}`)}, code: 1008, reason: "BidiGenerateContent session not found"},
		{
			name: "text from native audio", frames: []string{`{"setup":{"model":"` + model25 + `","generationConfig":{"responseModalities":["TEXT"]}}}`},
			code: 1007, reason: "Cannot extract voices from a non-audio request.",
		},
		{
			name: "two modalities", frames: []string{`{"setup":{"model":"` + model25 + `","generationConfig":{"responseModalities":["TEXT","AUDIO"]}}}`},
			code: 1007, reason: "Request contains an invalid argument.",
		},
		{
			name: "unknown voice", frames: []string{`{"setup":{"model":"` + model25 + `","generationConfig":{"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"marin"}}}}}}`},
			code: 1007, reason: "No matching speaker voice found",
		},
	}
}

func refusedTools() []refusal {
	tool := func(decl string) string {
		return setupFor(model25, `"tools":[{"functionDeclarations":[`+decl+`]}]`)
	}
	return []refusal{
		{
			name: "additionalProperties", frames: []string{tool(`{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"OBJECT","additionalProperties":false}}}}`)},
			code: 1007, reason: `Invalid JSON payload received. Unknown name "additionalProperties" at 'setup.tools[0].function_declarations[0].parameters.p`,
		},
		{name: "$schema", frames: []string{tool(`{"name":"f","parameters":{"$schema":"x"}}`)}, code: 1007, reason: `Invalid JSON payload received. Unknown name "$schema" at 'setup.tools[0].function_declarations[0].parameters': Cannot find `},
		{name: "const", frames: []string{tool(`{"name":"f","parameters":{"const":1}}`)}, code: 1007, reason: `Invalid JSON payload received. Unknown name "const" at`},
		{
			name: "list of types", frames: []string{tool(`{"name":"f","parameters":{"type":["OBJECT","NULL"]}}`)},
			code: 1007, reason: `Invalid value at 'setup.tools[0].function_declarations[0].parameters.type' (TYPE_STRING)`,
		},
		{name: "enum of numbers", frames: []string{tool(`{"name":"f","parameters":{"type":"OBJECT","properties":{"n":{"type":"INTEGER","enum":["1"]}}}}`)}, code: 1007, reason: "* BidiGenerateContentRequest.setup.tools[0].function_declarations[0].parameters.properties[n].enum: only allowed for STRING"},
		{name: "array of nothing", frames: []string{tool(`{"name":"f","parameters":{"type":"OBJECT","properties":{"n":{"type":"ARRAY"}}}}`)}, code: 1007, reason: "* BidiGenerateContentRequest.setup.tools[0].function_declarations[0].parameters.properties[n].items: missing field."},
		{name: "required but undefined", frames: []string{tool(`{"name":"f","parameters":{"type":"OBJECT","required":["a"]}}`)}, code: 1007, reason: "* BidiGenerateContentRequest.setup.tools[0].function_declarations[0].parameters.required[0]: property is not defined"},
		{name: "tool name", frames: []string{tool(`{"name":"1 f"}`)}, code: 1007, reason: "* BidiGenerateContentRequest.setup.tools[0].function_declarations[0].name: Invalid function name."},
		{name: "tool twice", frames: []string{tool(`{"name":"f"},{"name":"f"}`)}, code: 1007, reason: "Duplicate function declaration found: f"},
		{
			name: "both schemas", frames: []string{tool(`{"name":"f","parameters":{"type":"OBJECT"},"parametersJsonSchema":{"type":"object"}}`)},
			code: 1007, reason: "Request contains an invalid argument.",
		},
	}
}

// refusedByModels are valid setups that some models or versions of the API refuse. The sources are at refusedByModel.
func refusedByModels() []refusal {
	alpha := strings.Replace(betaPath, "v1beta", "v1alpha", 1)
	general := "Request contains an invalid argument."
	unknown := func(model string) refusal {
		return refusal{
			name: "unknown " + model, frames: []string{setupFor("models/"+model, "")}, code: 1008,
			reason: cut("models/" + model + " is not found for API version v1beta, or is not supported for bidiGenerateContent. Call ListModels"),
		}
	}
	thinking := func(model, config string) refusal {
		frame := `{"setup":{"model":"` + model + `","generationConfig":{"thinkingConfig":` + config + `}}}`
		return refusal{name: "thinking of " + model + config, frames: []string{frame}, code: 1007, reason: general}
	}
	return []refusal{
		unknown("gemini-3.8-live-preview"), unknown("gemini-3.8-live-2"), unknown("gemini-3.8-live-extended"), unknown("gemini-3.8"),
		unknown("gemini-3.1-flash-live"), unknown("gemini-3.1-flash-live-preview2"), unknown("gemini-2.5-flash-native-audio-preview-9"),
		{
			name: "proactivity on v1beta", frames: []string{setupFor(model25, `"proactivity":{"proactiveAudio":true}`)}, code: 1007,
			reason: `Invalid JSON payload received. Unknown name "proactivity" at 'setup': Cannot find field.`,
		},
		{name: "proactive audio off on 3.8", path: alpha, frames: []string{setupFor(model38, `"proactivity":{"proactiveAudio":false}`)}, code: 1007, reason: general},
		{name: "affective dialog on 3.8", path: alpha, frames: []string{`{"setup":{"model":"` + model38 + `","generationConfig":{"enableAffectiveDialog":true}}}`}, code: 1007, reason: general},
		thinking(model38, `{"thinkingLevel":"low"}`), thinking(model38, `{"thinkingBudget":0}`),
		{name: "extended thinking without a level", frames: []string{setupFor(modelExtended, "")}, code: 1007, reason: general},
		thinking(modelExtended, `{"thinkingLevel":"minimal"}`), thinking(modelExtended, `{"thinkingLevel":"low","thinkingBudget":100}`),
	}
}

// cut is a reason in the form of a close frame.
func cut(reason string) string { return reason[:min(len(reason), 123)] }

// TestAcceptedByModel: setups that one model or version of the API refuses and another accepts.
func TestAcceptedByModel(t *testing.T) {
	alpha := strings.Replace(betaPath, "v1beta", "v1alpha", 1)
	for _, tt := range []struct{ path, setup string }{
		{alpha, setupFor(model25, `"proactivity":{"proactiveAudio":false}`)},
		{alpha, setupFor(model38, `"proactivity":{"proactiveAudio":true}`)},
		{betaPath, `{"setup":{"model":"` + modelExtended + `","generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}},"tools":[{"functionDeclarations":[{"name":"f","behavior":"NON_BLOCKING"}]}]}}`},
		{betaPath, `{"setup":{"model":"` + modelExtended + `","generationConfig":{"thinkingConfig":{"thinkingBudget":512}}}}`},
		{betaPath, `{"setup":{"model":"` + model31 + `","generationConfig":{"thinkingConfig":{"thinkingLevel":"minimal"}}}}`},
		{alpha, `{"setup":{"model":"` + model25 + `","generationConfig":{"enableAffectiveDialog":true}}}`},
		{betaPath, setupFor("models/gemini-2.5-flash-native-audio-latest", "")},
		{betaPath, setupFor("models/gemini-2.5-flash-native-audio-preview-12-2025", "")},
		{betaPath, setupFor("models/gemini-live-2.5-flash-preview", "")},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newBench(t, wire.Options{}).dial(tt.path+"?key=good", nil)
			c.send(tt.setup)
			c.send(typed("hi"))
			c.untilTurn()
		})
	}
}

// TestRefusals compares the close frames.
func TestRefusals(t *testing.T) {
	for _, tt := range slices.Concat(refusedMessages(), refusedSetups(), refusedTools(), refusedByModels()) {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, wire.Options{})
				if tt.path == "" {
					tt.path = betaPath
				}
				if tt.key == "" {
					tt.key = "good"
				}
				c := b.dial(tt.path+"?key="+tt.key, nil)
				for _, f := range tt.frames {
					c.send(f)
				}
				got := c.closed()
				if got.Code != tt.code || !strings.HasPrefix(got.Reason, tt.reason) {
					t.Errorf("closed %d %q, want %d %q", got.Code, got.Reason, tt.code, tt.reason)
				}
				if len(got.Reason) > 123 {
					t.Errorf("reason of %d bytes", len(got.Reason))
				}
				if b.h.opts.Stats.Errors.Load() != 1 {
					t.Errorf("counted %d errors", b.h.opts.Stats.Errors.Load())
				}
			})
		})
	}
}

// TestAccepted are setups and messages that do not close the connection.
func TestAccepted(t *testing.T) {
	setups := map[string]string{
		"least":          `{"setup":{"model":"` + model25 + `"}}`,
		"snake case":     `{"setup":{"model":"` + model25 + `","generation_config":{"response_modalities":["AUDIO"],"speech_config":{"voice_config":{"prebuilt_voice_config":{"voice_name":"aoede"}}}},"system_instruction":{"parts":[{"text":"x"}]}}}`,
		"model bare":     `{"setup":{"model":"gemini-3.1-flash-live-preview"}}`,
		"int64":          setupFor(model31, `"contextWindowCompression":{"triggerTokens":"16000","slidingWindow":{"targetTokens":8000}}`),
		"detection":      setupFor(model25, `"realtimeInputConfig":{"automaticActivityDetection":{"startOfSpeechSensitivity":"START_SENSITIVITY_LOW","endOfSpeechSensitivity":"END_SENSITIVITY_LOW","prefixPaddingMs":20,"silenceDurationMs":100},"turnCoverage":"TURN_INCLUDES_ALL_INPUT"}`),
		"other tools":    setupFor(model25, `"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","additionalProperties":false}}]}]`),
		"recursive":      setupFor(model31, `"tools":[{"functionDeclarations":[{"name":"f","description":"","parameters":{"type":"object","properties":{"kids":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"]}}}}}]}]`),
		"no properties":  setupFor(model25, `"tools":[{"functionDeclarations":[{"name":"f","description":"","parameters":{"properties":{},"type":"OBJECT"}}]}]`),
		"null is absent": `{"setup":{"model":"` + model25 + `","tools":null,"sessionResumption":null}}`,
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBench(t, wire.Options{}).open(setup)
				// A video frame, audio in both shapes, and then a turn that gets an answer.
				c.send(`{"realtimeInput":{"video":{"data":"_-8=","mimeType":"image/jpeg"}}}`)
				c.send(`{"realtimeInput":{"mediaChunks":[{"data":"AAAA","mimeType":"audio/pcm;rate=48000"}]}}`)
				c.send(`{"realtime_input":{"audio":{"mime_type":"audio/pcm;rate=8000","data":"__7_"}}}`)
				c.send(typed("hi"))
				c.untilTurn()
			})
		})
	}
}

func TestPathsAndKeys(t *testing.T) {
	good := func(key, val string) http.Header { return http.Header{key: {val}} }
	tests := []struct {
		name   string
		path   string
		header http.Header
		model  string
		status int // of a refused handshake
	}{
		{name: "query key", path: betaPath + "?key=k"},
		{name: "doubled slash", path: "/" + betaPath + "?key=k"},
		{name: "v1alpha", path: strings.Replace(betaPath, "v1beta", "v1alpha", 1) + "?key=k"},
		{name: "header", path: betaPath, header: good("X-Goog-Api-Key", "k")},
		{name: "bearer", path: betaPath, header: good("Authorization", "Bearer k")},
		{name: "v1, which npm @google/genai 3 uses", path: strings.Replace(betaPath, "v1beta", "v1", 1) + "?key=k"},
		{name: "Vertex, v1beta1", path: "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent", header: good("Authorization", "Bearer k"), model: "projects/p/locations/l/publishers/google/models/gemini-3.8-live"},
		{name: "Vertex", path: "/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent", header: good("Authorization", "Bearer k"), model: "projects/p/locations/l/publishers/google/models/gemini-3.8-live"},
		{name: "no key", path: betaPath, status: http.StatusForbidden},
		{name: "other path", path: "/ws/google.ai.generativelanguage.v2.GenerativeService.BidiGenerateContent?key=k", status: http.StatusNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, wire.Options{})
				if tt.status != 0 {
					_, resp, err := websocket.Dial(t.Context(), "ws://sim"+tt.path, &websocket.DialOptions{HTTPClient: b.http, HTTPHeader: tt.header})
					if err == nil || resp.StatusCode != tt.status {
						t.Errorf("handshake: %v, want %d", err, tt.status)
					}
					return
				}
				if tt.model == "" {
					tt.model = model25
				}
				c := b.dial(tt.path, tt.header)
				c.send(setupFor(tt.model, ""))
				if f := c.next(); f.key() != "setupComplete" {
					t.Errorf("got %s", f.raw)
				}
			})
		})
	}
	for path, want := range map[string]bool{
		betaPath: true, "/" + betaPath: true, "/v1alpha/auth_tokens": true, "//v1/auth_tokens": true,
		"/v1/realtime": false, "///" + betaPath: false, betaPath + "/x": false,
	} {
		if Handles(path) != want {
			t.Errorf("Handles(%q) = %v", path, !want)
		}
	}
}

// TestLayout compares the bytes of frames: two spaces, a newline at the end.
func TestLayout(t *testing.T) {
	tests := []struct {
		frame serverFrame
		pcm   []byte
		want  string
	}{
		{serverFrame{SetupComplete: &setupComplete{}}, nil, "{\n  \"setupComplete\": {}\n}\n"},
		{serverFrame{}, nil, "{}\n"},
		{serverFrame{ServerContent: &serverContent{}}, nil, "{\n  \"serverContent\": {}\n}\n"},
		{
			serverFrame{ServerContent: &serverContent{ModelTurn: &modelTurn{Parts: []part{{InlineData: &inlineData{"audio/pcm;rate=24000", audioMark}}}}}},
			[]byte{0xfb, 0xff, 0xfe},
			`{
  "serverContent": {
    "modelTurn": {
      "parts": [
        {
          "inlineData": {
            "mimeType": "audio/pcm;rate=24000",
            "data": "+//+"
          }
        }
      ]
    }
  }
}
`,
		},
		{
			serverFrame{ToolCall: &toolCall{[]functionCall{{Name: "f", Args: json.RawMessage(`{"a":"<b>"}`), ID: "fc_1"}}}}, nil,
			"{\n  \"toolCall\": {\n    \"functionCalls\": [\n      {\n        \"name\": \"f\",\n        \"args\": {\n          \"a\": \"<b>\"\n        },\n        \"id\": \"fc_1\"\n      }\n    ]\n  }\n}\n",
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(encode(tt.frame, tt.pcm))); diff != "" {
			t.Errorf("layout (-want +got):\n%s", diff)
		}
	}
	for d, want := range map[time.Duration]string{
		50 * time.Second: "50s", 9500 * time.Millisecond: "9.500s", 1500 * time.Microsecond: "0.001500s", 1: "0.000000001s", 0: "0s",
	} {
		if got := protoDuration(d); got != want {
			t.Errorf("protoDuration(%v) = %q, want %q", d, got, want)
		}
	}
}

package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// Models with different behaviour.
const (
	model25 = "gemini-2.5-flash-native-audio-preview-09-2025"
	model31 = "gemini-3.1-flash-live-preview"
)

// offline returns a connection without a socket, for tests of messages.
func offline(t testing.TB, model string, tools ...transport.Tool) *conn {
	t.Helper()
	tr, err := New(transport.Provider{APIKey: secret, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	return tr.newConn(nil, rowFor(model, false), model, transport.Setup{Tools: tools})
}

// feed decodes messages and returns the events as lines. It reads the audio of each before the next message, like Recv.
func feed(t testing.TB, c *conn, messages ...string) []string {
	t.Helper()
	var lines []string
	for _, msg := range messages {
		f := &frame{raw: []byte(msg)}
		if err := c.decode(f); err != nil {
			lines = append(lines, "error "+err.Kind.String()+" "+err.Code)
		}
		for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
			lines = append(lines, line(ev))
		}
	}
	return lines
}

// Messages used in several tables.
var (
	speech      = audioMessage(make([]byte, 480), "")
	generated   = `{"serverContent":{"generationComplete":true}}`
	turnOver    = `{"serverContent":{"turnComplete":true}}`
	interrupted = `{"serverContent":{"interrupted":true}}`
)

func said(text string) string {
	return `{"serverContent":{"outputTranscription":{"text":` + quote(text) + `}}}`
}
func heard(text string) string {
	return `{"serverContent":{"inputTranscription":{"text":` + quote(text) + `}}}`
}

func called(id, name string) string {
	return `{"toolCall":{"functionCalls":[{"id":"` + id + `","name":"` + name + `","args":{}}]}}`
}

func TestMessagesBecomeEvents(t *testing.T) {
	slow := transport.Tool{Name: "slow", NonBlocking: true}
	for _, test := range []struct {
		name     string
		model    string
		tools    []transport.Tool
		messages []string
		want     []string
	}{
		{
			name:     "an empty serverContent is nothing",
			messages: []string{`{"serverContent":{}}`, `{"serverContent": {}, "usageMetadata": {}}`},
		},
		{
			name: "a thought is only a sign of life",
			messages: []string{
				`{"serverContent":{"modelTurn":{"parts":[{"text":"hm","thought":true},{"executableCode":{"code":"x()"}}]}}}`, turnOver,
			},
			want: []string{"ResponseStarted {ID:response_1 Exact:false}", "ResponseDone response_1 completed"},
		},
		{
			name: "an answer in text alone is its transcript",
			messages: []string{
				`{"serverContent":{"modelTurn":{"parts":[{"text":"hm","thought":true},{"text":"It is "}]}}}`,
				`{"serverContent":{"modelTurn":{"parts":[{"text":"noon."}]}}}`, generated, turnOver,
			},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `Transcript item_1 assistant "It is noon." final`, "ResponseDone response_1 completed",
			},
		},
		{
			name: "text next to speech is not shown",
			messages: []string{
				`{"serverContent":{"modelTurn":{"parts":[{"text":"I am to greet them."}]}}}`, speech, said("Hello."), generated, turnOver,
			},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", `Transcript item_1 assistant "Hello."`, "AudioDone {Item:item_1}",
				`Transcript item_1 assistant "Hello." final`, "ResponseDone response_1 completed",
			},
		},
		{
			name:     "audio and turnComplete in one message",
			messages: []string{strings.Replace(speech, `"modelTurn"`, `"turnComplete":true,"generationComplete":true,"modelTurn"`, 1)},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}",
				"ResponseDone response_1 completed",
			},
		},
		{
			name:     "an answer after one in which the model said nothing",
			messages: []string{generated, turnOver, speech, speech, generated, turnOver},
			want: []string{
				"NothingSaid {}", "ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}",
				"ResponseDone response_1 completed",
			},
		},
		{
			name:     "several pieces of audio in one message",
			messages: []string{strings.Replace(speech, `"parts":[`, `"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"AAAA"}},`, 1), turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 2 bytes", "AudioOut item_1 480 bytes",
				"AudioDone {Item:item_1}", "ResponseDone response_1 completed",
			},
		},
		{
			name:     "interrupted while generating",
			messages: []string{said("Long "), speech, interrupted, turnOver, heard("stop"), speech, generated, turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `Transcript item_1 assistant "Long "`, "AudioOut item_1 480 bytes",
				"Interrupted {}", "AudioDone {Item:item_1}", `Transcript item_1 assistant "Long " final`,
				"ResponseDone response_1 interrupted",
				`Transcript user_1 user "stop"`,
				"ResponseStarted {ID:response_2 Exact:false}", "AudioOut item_2 480 bytes", "AudioDone {Item:item_2}",
				`Transcript user_1 user "stop" final`, "ResponseDone response_2 completed",
			},
		},
		{
			name:     "interrupted during playback",
			messages: []string{speech, generated, `{"serverContent":{}}`, interrupted, turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}",
				"Interrupted {}", "ResponseDone response_1 interrupted",
			},
		},
		{
			name:     "interrupted before any output",
			messages: []string{interrupted, turnOver, speech, generated, turnOver},
			want: []string{
				"Interrupted {}",
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}", "ResponseDone response_1 completed",
			},
		},
		{
			name:     "interrupted and turnComplete in one message, with the words that did it",
			messages: []string{speech, `{"serverContent":{"turnComplete":true,"interrupted":true,"inputTranscription":{"text":"wait"}}}`},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "Interrupted {}", "AudioDone {Item:item_1}",
				`Transcript user_1 user "wait"`, "ResponseDone response_1 interrupted",
			},
		},
		{
			name:     "new content before the turnComplete of an interrupted turn, which then comes late",
			messages: []string{speech, interrupted, speech, turnOver, speech, generated, turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "Interrupted {}", "AudioDone {Item:item_1}",
				"ResponseDone response_1 interrupted",
				"ResponseStarted {ID:response_2 Exact:false}", "AudioOut item_2 480 bytes", "AudioOut item_2 480 bytes",
				"AudioDone {Item:item_2}", "ResponseDone response_2 completed",
			},
		},
		{
			name:     "words after the interruption belong to the interrupted speech",
			messages: []string{said("One"), speech, interrupted, said(" two"), turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `Transcript item_1 assistant "One"`, "AudioOut item_1 480 bytes",
				"Interrupted {}", "AudioDone {Item:item_1}", `Transcript item_1 assistant "One" final`,
				`Transcript item_1 assistant "One two" final`, "ResponseDone response_1 interrupted",
			},
		},
		{
			name: "Vertex begins and ends its transcriptions with empty ones",
			messages: []string{
				`{"serverContent":{"outputTranscription":{}}}`, speech, said("Hi"), `{"serverContent":{"outputTranscription":{"finished":true}}}`,
				`{"serverContent":{"inputTranscription":{}}}`, heard("Yo"), `{"serverContent":{"inputTranscription":{"finished":true}}}`,
				`{"serverContent":{"interimInputTranscription":{"text":"no"}}}`, generated, turnOver,
			},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", `Transcript item_1 assistant "Hi"`,
				`Transcript item_1 assistant "Hi" final`, `Transcript user_1 user "Yo"`, `Transcript user_1 user "Yo" final`,
				"AudioDone {Item:item_1}", "ResponseDone response_1 completed",
			},
		},
		{
			name:     "speech continues in a new item after a blocking tool",
			messages: []string{said("Let me see."), speech, called("a", "wait"), said(" Now."), speech, generated, turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `Transcript item_1 assistant "Let me see."`, "AudioOut item_1 480 bytes",
				"AudioDone {Item:item_1}", `Transcript item_1 assistant "Let me see." final`, "ToolCall call_1 id=a wait {}",
				// The tool is still running: these are the last words of the first item.
				`Transcript item_1 assistant "Let me see. Now." final`,
				"AudioOut item_2 480 bytes", "AudioDone {Item:item_2}", "ResponseDone response_1 completed",
			},
		},
		{
			name:  "speech continues in the same item during a non-blocking tool",
			tools: []transport.Tool{slow}, messages: []string{said("While"), speech, called("a", "slow"), said(" I talk"), speech, generated, turnOver},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `Transcript item_1 assistant "While"`, "AudioOut item_1 480 bytes",
				"ToolCall call_1 id=a slow {}", `Transcript item_1 assistant "While I talk"`, "AudioOut item_1 480 bytes",
				"AudioDone {Item:item_1}", `Transcript item_1 assistant "While I talk" final`, "ResponseDone response_1 completed",
			},
		},
		{
			name: "a call in serverContent and in toolCall is one; repeated after that it is another",
			messages: []string{
				`{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"id":"a","name":"f","args":{"n":9007199254740993}}}]}}}`,
				`{"toolCall":{"functionCalls":[{"id":"a","name":"f","args":{"n":9007199254740993}}]}}`,
				called("a", "f"), called("a", "f"),
			},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", `ToolCall call_1 id=a f {"n":9007199254740993}`,
				"ToolCall call_2 id=a f {}", "ToolCall call_3 id=a f {}",
			},
		},
		{
			name: "the same the other way round, and in one message",
			messages: []string{
				called("a", "f"), `{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"id":"a","name":"f"}}]}}}`,
				`{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"id":"b","name":"f"}}]}},"toolCall":{"functionCalls":[{"id":"b","name":"f"}]}}`,
			},
			want: []string{"ResponseStarted {ID:response_1 Exact:false}", "ToolCall call_1 id=a f {}", "ToolCall call_2 id=b f {}"},
		},
		{
			name: "two equal calls without ids are two",
			messages: []string{
				`{"toolCall":{"functionCalls":[{"name":"f","args":{}},{"name":"f","args":{}}]}}`,
				`{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]}}}`,
			},
			want: []string{"ResponseStarted {ID:response_1 Exact:false}", "ToolCall call_1 id= f {}", "ToolCall call_2 id= f {}"},
		},
		{
			name: "a cancellation names our calls, all of that id, and no unknown ones",
			messages: []string{
				called("a", "f"), called("a", "f"), called("b", "f"), `{"toolCallCancellation":{"ids":["a","x"]}}`, `{"toolCallCancellation":{"ids":["a"]}}`,
			},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "ToolCall call_1 id=a f {}", "ToolCall call_2 id=a f {}", "ToolCall call_3 id=b f {}",
				"ToolCancelled {Calls:[call_1 call_2]}",
			},
		},
		{
			name: "notices about the connection",
			messages: []string{
				`{"goAway":{"timeLeft":"9.5s"}}`,
				`{"sessionResumptionUpdate":{"newHandle":"h1","resumable":true,"lastConsumedClientMessageIndex":"12"}}`,
				`{"sessionResumptionUpdate":{"newHandle":"","resumable":false,"lastConsumedClientMessageIndex":13}}`,
			},
			want: []string{
				"GoAway {TimeLeft:9.5s}", "ResumeHandle {Handle:h1 Resumable:true}", "ResumeHandle {Handle: Resumable:false}",
			},
		},
		{
			name: "speech detected by the provider, reported twice",
			messages: []string{
				`{"voiceActivity":{"voiceActivityType":"ACTIVITY_START","audioOffset":"1.2s"}}`,
				`{"voiceActivityDetectionSignal":{"vadSignalType":"VAD_SIGNAL_TYPE_SOS"}}`,
				`{"voiceActivity":{"type":"ACTIVITY_END","audioOffset":"2.750s"}}`,
				`{"voiceActivityDetectionSignal":{"vadSignalType":"VAD_SIGNAL_TYPE_EOS"}}`,
			},
			want: []string{"SpeechStarted {Item: AudioMS:1200 Late:false}", "SpeechStopped {Item: AudioMS:2750 EndMS:2750}"},
		},
		{
			name:     "a turn that was refused before it said anything",
			messages: []string{`{"serverContent":{"turnComplete":true,"turnCompleteReason":"PROHIBITED_INPUT_CONTENT"}}`},
			want:     []string{"ResponseStarted {ID:response_1 Exact:false}", "ResponseDone response_1 incomplete PROHIBITED_INPUT_CONTENT"},
		},
		{
			name:     "a turn that failed",
			messages: []string{speech, `{"serverContent":{"turnComplete":true,"turnCompleteReason":"MALFORMED_FUNCTION_CALL"}}`},
			want: []string{
				"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}",
				"ResponseDone response_1 failed MALFORMED_FUNCTION_CALL",
			},
		},
		{
			name:     "a turn in which the model had nothing to say",
			messages: []string{heard("hm"), turnOver, heard("hm"), turnOver},
			want: []string{
				`Transcript user_1 user "hm"`, `Transcript user_1 user "hm" final`, "NothingSaid {}",
				`Transcript user_2 user "hm"`, `Transcript user_2 user "hm" final`, "NothingSaid {}",
			},
		},
		{
			name: "a turn in which the model waits for the rest of the user's speech",
			messages: []string{
				`{"serverContent":{"turnComplete":true,"waitingForInput":true}}`, `{"serverContent":{"turnComplete":true,"turnCompleteReason":"NEED_MORE_INPUT"}}`,
			},
		},
		{
			name: "audio of another kind is dropped and reported once",
			messages: []string{
				strings.ReplaceAll(speech, "24000", "0"), strings.ReplaceAll(speech, "audio/pcm", "audio/ogg"), turnOver,
			},
			want: []string{"ResponseStarted {ID:response_1 Exact:false}", "Problem refused audio_format", "ResponseDone response_1 completed"},
		},
		{
			name: "the model is working until it reports the end",
			messages: []string{
				`{"serverContent":{"interactionStatus":"IN_PROGRESS"}}`, speech, `{"serverContent":{"turnComplete":true,"interactionStatus":"IN_PROGRESS"}}`,
				`{"serverContent":{"interactionStatus":"IDLE"}}`, `{"serverContent":{"interactionStatus":"IDLE"}}`,
			},
			want: []string{
				"Interaction {InProgress:true}", "ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes",
				"Interaction {InProgress:true}", "AudioDone {Item:item_1}", "ResponseDone response_1 completed", "Interaction {InProgress:false}",
			},
		},
		{
			name: "a turn that ends without the status ends the model's work",
			messages: []string{
				`{"serverContent":{"interactionStatus":"IN_PROGRESS"}}`, speech, turnOver, `{"serverContent":{"interactionStatus":7}}`,
			},
			want: []string{
				"Interaction {InProgress:true}", "ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes",
				"Interaction {InProgress:false}", "AudioDone {Item:item_1}", "ResponseDone response_1 completed",
			},
		},
		{
			name:     "an error at the top ends it",
			messages: []string{`{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`, `{"error":{"code":503}}`, `{"error":"what"}`},
			want:     []string{"error invalid INVALID_ARGUMENT", "error server 503", "error invalid 0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			model := test.model
			if model == "" {
				model = model25
			}
			got := feed(t, offline(t, model, test.tools...), test.messages...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswerContinuesAfterATool: a model reports generationComplete for its speech before a tool. Its speech after the
// tool's result belongs to the same answer. Speech after that answer was generated belongs to the next one, because only
// its turnComplete can be missing.
func TestAnswerContinuesAfterATool(t *testing.T) {
	c := offline(t, model31)
	got := feed(t, c, speech, generated, called("a", "wait"))
	c.dialog.calls.result("call_1", json.RawMessage(`{}`), "")
	got = append(got, feed(t, c, speech, speech, generated)...)
	got = append(got, feed(t, c, speech, generated, turnOver)...)
	want := []string{
		"ResponseStarted {ID:response_1 Exact:false}", "AudioOut item_1 480 bytes", "AudioDone {Item:item_1}", "ToolCall call_1 id=a wait {}",
		"AudioOut item_2 480 bytes", "AudioOut item_2 480 bytes", "AudioDone {Item:item_2}",
		"ResponseDone response_1 completed",
		"ResponseStarted {ID:response_2 Exact:false}", "AudioOut item_3 480 bytes", "AudioDone {Item:item_3}", "ResponseDone response_2 completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpeechAfterToolAnswerIsANewItemFromItsFirstWord(t *testing.T) {
	c := offline(t, model25)
	feed(t, c, said("One moment."), speech, called("a", "f"))
	if got := c.calls.result("call_1", json.RawMessage(`{}`), ""); len(got) != 1 {
		t.Fatalf("answers %v", got)
	}
	got := feed(t, c, said("It is"), speech, generated, said(" ten."), turnOver)
	want := []string{
		`Transcript item_2 assistant "It is"`, "AudioOut item_2 480 bytes", "AudioDone {Item:item_2}",
		`Transcript item_2 assistant "It is ten."`, `Transcript item_2 assistant "It is ten." final`, "ResponseDone response_1 completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

// TestHalfSamplesAreJoined: speech is cut at odd bytes.
func TestHalfSamplesAreJoined(t *testing.T) {
	pcm := make([]byte, 100)
	for i := range pcm {
		pcm[i] = byte(i)
	}
	c := offline(t, model25)
	var got []byte
	for at := 0; at < len(pcm); {
		end := min(at+1+at%7, len(pcm))
		if err := c.decode(&frame{raw: []byte(audioMessage(pcm[at:end], ""))}); err != nil {
			t.Fatal(err)
		}
		at = end
		for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
			if out, ok := ev.(*transport.AudioOut); ok {
				if len(out.PCM)%2 != 0 || len(out.PCM) == 0 {
					t.Errorf("a piece of %d bytes", len(out.PCM))
				}
				got = append(got, out.PCM...)
			}
		}
	}
	if !cmp.Equal(got, pcm) {
		t.Errorf("got %v", got)
	}
}

func TestAudioInAnyShapeIsTheSame(t *testing.T) {
	pcm := []byte{0xfb, 0xff, 0xfe, 0x01, 0x7f, 0x80, 0xff, 0xfb}
	std, url := base64.StdEncoding.EncodeToString(pcm), base64.URLEncoding.EncodeToString(pcm)
	if std == url || !strings.HasSuffix(std, "=") {
		t.Fatal("the sample shows no difference")
	}
	for _, test := range []struct {
		name, msg string
		slow      int64
	}{
		{"compact", `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + std + `"}}]}}}`, 0},
		{"other order, role", `{"serverContent":{"modelTurn":{"role":"model","parts":[{"inlineData":{"data":"` + std + `","mimeType":"audio/pcm"}}]}}}`, 0},
		{"pretty", "{\n  \"serverContent\": {\n    \"modelTurn\": {\n      \"parts\": [\n        {\n          \"inlineData\": {\n            \"mimeType\": \"audio/pcm;rate=24000\",\n            \"data\": \"" + std + "\"\n          }\n        }\n      ]\n    }\n  }\n}\n", 0},
		{"URL alphabet", `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + url + `"}}]}}}`, 0},
		{"escaped padding", `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + strings.ReplaceAll(std, "=", `\u003d`) + `"}}]}}}`, 1},
		{"escaped slash", `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio\/pcm;rate=24000","data":"` + strings.ReplaceAll(std, "/", `\/`) + `"}}]}}}`, 1},
		{"long words after it", audioMessage(pcm, strings.Repeat("word ", 300)), 1},
		{"two strings near the end", strings.Replace(audioMessage(pcm, "a"), `"modelTurn"`, `"outputTranscription":{"text":"b"},"modelTurn"`, 1), 1},
		{"words next to it", audioMessage(pcm, " été"), 0},
		{"with usage", `{"usageMetadata":{},"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm; rate=24000","data":"` + std + `"}}]}}}`, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := offline(t, model31)
			if err := c.decode(&frame{raw: []byte(test.msg)}); err != nil {
				t.Fatal(err)
			}
			var got []byte
			for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
				if out, ok := ev.(*transport.AudioOut); ok {
					got = append(got, out.PCM...)
				}
			}
			if !cmp.Equal(got, pcm) {
				t.Errorf("got %v", got)
			}
			if s := c.Stats(); s != (transport.Stats{SlowPath: test.slow}) {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestUnreadableIsCountedAndSkipped(t *testing.T) {
	for _, test := range []struct {
		name, msg string
		want      transport.Stats
	}{
		{"not JSON", `nonsense`, transport.Stats{MalformedEvents: 1}},
		{"nothing", ``, transport.Stats{MalformedEvents: 1}},
		{"not an object", `[1]`, transport.Stats{MalformedEvents: 1}},
		{"an empty object", `{}`, transport.Stats{}},
		{"an unknown key", `{"surprise":1}`, transport.Stats{UnknownEvents: 1}},
		{"an unknown key inside", `{"serverContent":{"surprise":1}}`, transport.Stats{UnknownEvents: 1}},
		{"a known key that is not used", `{"serverContent":{"interactionStatus":"IDLE"}}`, transport.Stats{}},
		{"a wrong type", `{"serverContent":{"modelTurn":"yes"}}`, transport.Stats{MalformedEvents: 1}},
		{"a boolean in another form", `{"serverContent":{"turnComplete":"yes"}}`, transport.Stats{}},
		{"nulls", `{"serverContent":null,"voiceActivity":null,"goAway":null,"usageMetadata":null,"toolCall":null,"sessionResumptionUpdate":null}`, transport.Stats{}},
		{"a wrong type next to valid ones", `{"toolCall":7,"goAway":{"timeLeft":"1s"}}`, transport.Stats{MalformedEvents: 1}},
		{"audio that is not base64", strings.Replace(speech, `"AAAA`, `"A*AA`, 1), transport.Stats{MalformedEvents: 1, SlowPath: 1}},
		{"audio cut off", speech[:len(speech)-3], transport.Stats{MalformedEvents: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := offline(t, model25)
			feed(t, c, test.msg)
			if diff := cmp.Diff(test.want, c.Stats()); diff != "" {
				t.Errorf("stats differ (-want +got):\n%s", diff)
			}
			if got := feed(t, c, generated, speech, turnOver); len(got) != 4 && len(got) != 3 {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}

func TestTranscriptsAreBounded(t *testing.T) {
	c := offline(t, model25)
	piece := strings.Repeat("x", 10<<10)
	for range 10 {
		feed(t, c, said(piece), heard(piece))
	}
	if len(c.dialog.text) != maxTranscript || len(c.dialog.said) != maxTranscript {
		t.Errorf("%d and %d bytes are stored", len(c.dialog.text), len(c.dialog.said))
	}
}

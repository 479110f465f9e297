package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// TestSpellings: both spellings and both base64 alphabets mean the same.
func TestSpellings(t *testing.T) {
	pairs := [][2]string{
		{
			`{"setup":{"model":"m","generationConfig":{"responseModalities":["AUDIO"]},"contextWindowCompression":{"triggerTokens":"7"},"realtimeInputConfig":{"automaticActivityDetection":{"prefixPaddingMs":20}}}}`,
			`{"setup":{"model":"m","generation_config":{"response_modalities":["AUDIO"]},"context_window_compression":{"trigger_tokens":7},"realtime_input_config":{"automatic_activity_detection":{"prefix_padding_ms":"20"}}}}`,
		},
		{
			`{"realtimeInput":{"audio":{"data":"+/+/","mimeType":"audio/pcm;rate=16000"}}}`,
			`{ "realtime_input" : {"audio":{"mime_type":"audio/pcm;rate=16000","data":"-_-_"}} }`,
		},
		{
			`{"toolResponse":{"functionResponses":[{"id":"1","name":"f","response":{"snake_case":{"staysAsIs":1}},"willContinue":true}]}}`,
			`{"tool_response":{"function_responses":{"id":"1","name":"f","response":{"snake_case":{"staysAsIs":1}},"will_continue":true}}}`,
		},
		{
			`{"clientContent":{"turns":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}],"turnComplete":true}}`,
			`{"client_content":{"turns":[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":""}}]}],"turn_complete":true}}`,
		},
	}
	for _, p := range pairs {
		a, errA := parseMessage([]byte(p[0]))
		b, errB := parseMessage([]byte(p[1]))
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", p[0], errA, errB)
			continue
		}
		if a.Setup != nil {
			a.Setup.raw, b.Setup.raw = nil, nil
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("differ:\n%+v\n%+v", a, b)
		}
	}
}

// FuzzParseMessage: no client message breaks the parser, and the fast path for audio agrees with the slow one.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{
		setupFor(model25, `"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"STRING"}}}}}]}]`),
		typed("hi"), `{"clientContent":{"turnComplete":true}}`,
		`{"realtimeInput":{"audio":{"data":"+/+/","mimeType":"audio/pcm;rate=16000"}}}`,
		`{"realtime_input":{"audio":{"mime_type":"audio/pcm","data":"-_8="}}}`,
		`{"realtimeInput":{"audio":{"data":"AA\u0041A","mimeType":"audio/pcm"}}}`,
		`{"realtimeInput":{"mediaChunks":[{"data":"AAAA","mimeType":"audio/pcm"}],"text":"x","activityStart":{}}}`,
		`{"toolResponse":{"functionResponses":[{"id":"1","response":{"output":[1,2.5,null,true]}}]}}`,
		`{"contextUpdate":{"tools":{"tools":[]},"systemInstruction":{}}}`,
		`{"setup":{"contextWindowCompression":{"triggerTokens":1e300}}}`, `[[[[`, `{"a":`, ``, `null`, "{}{}", "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		orig := bytes.Clone(data)
		m, err := parseMessage(data)
		if err != nil {
			if err.Reason == "" || err.Code != 1007 {
				t.Errorf("close %d %q", err.Code, err.Reason)
			}
		} else if m == (clientMessage{}) {
			t.Error("neither a message nor an error")
		}
		if m.Setup != nil {
			for _, r := range []route{{version: "v1beta"}, {version: "v1beta1", vertex: true}} {
				if _, err := configure(m.Setup, r); err != nil && err.Reason == "" {
					t.Error("a refusal without a reason")
				}
			}
		}
		want, errSlow := parseJSON(orig)
		if (err == nil) != (errSlow == nil) {
			t.Fatalf("short way %v, long way %v", err, errSlow)
		}
		if got := m.realtime; got != nil && (!bytes.Equal(got.audio, want.realtime.audio) || got.audioMIME != want.realtime.audioMIME) {
			t.Errorf("short way %+v, long way %+v", got, want.realtime)
		}
	})
}

func TestAudioRate(t *testing.T) {
	for mime, want := range map[string]int{
		"audio/pcm;rate=16000": 16000, "audio/pcm": 16000, "audio/pcm; rate=48000": 48000, "AUDIO/PCM;channels=1;Rate=8000": 8000,
		"audio/pcm;rate=0": 0, "audio/pcm;rate=x": 0, "audio/wav": 0, "audio/pcm;rate=1000000": 0,
	} {
		if got, ok := audioRate(mime); ok != (want > 0) || (ok && got != want) {
			t.Errorf("audioRate(%q) = %d, %v", mime, got, ok)
		}
	}
}

// TestEar: the same words are detected at every rate, and in one piece or many.
func TestEar(t *testing.T) {
	for _, rate := range []int{8000, 16000, 24000, 44100, 48000} {
		for _, piece := range []int{0, 333} {
			pcm := voice.New(voice.Options{Rate: min(rate, 48000)}).Speak("Tell me something about it, please.").PCM
			length := audio.Duration(rate, len(pcm))
			pcm = append(make([]byte, audio.Bytes(rate, 500*time.Millisecond)), pcm...)
			pcm = append(pcm, make([]byte, audio.Bytes(rate, 2*time.Second))...)
			e := newEar(realtimeConfig{}, false)
			if err := e.setRate(rate); err != nil {
				t.Fatal(err)
			}
			var got []speech
			for len(pcm) > 0 {
				n := len(pcm)
				if piece > 0 {
					n = min(n, piece)
				}
				got = append(got, e.hear(pcm[:n])...)
				pcm = pcm[n:]
			}
			if len(got) != 2 || !got[0].started || got[1].started {
				t.Errorf("%d Hz in pieces of %d: %+v", rate, piece, got)
				continue
			}
			if d := got[0].offset - 500*time.Millisecond; d < -50*time.Millisecond || d > 200*time.Millisecond {
				t.Errorf("%d Hz: speech began at %v, want about 500ms", rate, got[0].offset)
			}
			if d := got[1].duration - length; d < -600*time.Millisecond || d > 200*time.Millisecond {
				t.Errorf("%d Hz: speech of %v, want about %v", rate, got[1].duration, length)
			}
		}
	}
}

// TestRecordedSpeech: the phrase of the shared recording is found where another provider reported it: 1760 ms to about
// 4050 ms.
func TestRecordedSpeech(t *testing.T) {
	file := filepath.Join(sharedDir(t), "audio", "pydantic_my_name_is_marcelo_16k.wav")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	e := newEar(realtimeConfig{}, false)
	var all []speech
	all = append(all, e.hear(data[44:])...)
	all = append(all, e.hear(make([]byte, 32000))...)
	if len(all) != 2 {
		t.Fatalf("detected %+v, want one phrase", all)
	}
	if at := all[0].offset; at < 1500*time.Millisecond || at > 2*time.Second {
		t.Errorf("speech began at %v", at)
	}
	if end := all[0].offset + all[1].duration; end < 3500*time.Millisecond || end > 4400*time.Millisecond {
		t.Errorf("speech ended at %v", end)
	}
}

// TestUsage: token rates and field names.
func TestUsage(t *testing.T) {
	m := meter{text: 10, images: 1, speech: 4 * time.Second}
	s := spent{audio: 2 * time.Second, text: 6, thoughts: 28}
	tests := []struct {
		model string
		r     route
		want  usageMetadata
	}{
		{model25, route{version: "v1beta"}, usageMetadata{
			PromptTokens: 1115 + 100 + 258, ResponseTokens: 56, TotalTokens: 1115 + 100 + 258 + 56, ThoughtsTokens: 28,
			PromptDetails:   []modalityCount{{"TEXT", 1115}, {"AUDIO", 100}, {"IMAGE", 258}},
			ResponseDetails: []modalityCount{{"TEXT", 6}, {"AUDIO", 50}},
		}},
		{model31, route{version: "v1beta"}, usageMetadata{
			PromptTokens: 355 + 100 + 258, ResponseTokens: 56, TotalTokens: 355 + 100 + 258 + 56, ThoughtsTokens: 28,
			PromptDetails:   []modalityCount{{"TEXT", 355 - 113}, {"AUDIO", 100}, {"IMAGE", 258}},
			ResponseDetails: []modalityCount{{"AUDIO", 50}},
		}},
		{"gemini-live-2.5-flash-native-audio", route{version: "v1", vertex: true}, usageMetadata{
			PromptTokens: 1115 + 100 + 258, CandidatesTokens: 56, TotalTokens: 1115 + 100 + 258 + 56, ThoughtsTokens: 28,
			PromptDetails:    []modalityCount{{"TEXT", 1115}, {"AUDIO", 100}, {"IMAGE", 258}},
			CandidateDetails: []modalityCount{{"TEXT", 6}, {"AUDIO", 50}},
		}},
	}
	for _, tt := range tests {
		h, err := lookupModel(tt.model, tt.r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&tt.want, h.report(m, 5, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.model, diff)
		}
	}
}

func TestCallIDs(t *testing.T) {
	ids := wire.NewIDs(1)
	for model, r := range map[string]route{
		model25: {version: "v1beta"}, model31: {version: "v1beta"}, model38: {version: "v1beta"}, "gemini-3.8-live": {version: "v1", vertex: true},
	} {
		h, err := lookupModel(model, r)
		if err != nil {
			t.Fatal(err)
		}
		id := h.callID(ids)
		prefix := map[string]string{model25: "function-call-", model31: "fc_", model38: "fc_", "gemini-3.8-live": ""}[model]
		if !strings.HasPrefix(id, prefix) || !providerID.MatchString(id) {
			t.Errorf("%s: id %q", model, id)
		}
	}
}

// TestRegistryIsBounded: the oldest handles are removed first.
func TestRegistryIsBounded(t *testing.T) {
	r := &registry{handles: map[string]held{}, taken: map[*origin]bool{}}
	now := time.Now()
	conv := &conversation{origin: &origin{model: "m"}, dialogue: scenario.Default().NewDialogue(1)}
	ids := wire.NewIDs(1)
	first := ids.UUID()
	r.put(first, conv, now.Add(time.Hour))
	for range maxHandles {
		r.put(ids.UUID(), conv, now.Add(time.Hour))
	}
	if len(r.handles) != maxHandles || len(r.order) != maxHandles {
		t.Errorf("%d handles, %d in order", len(r.handles), len(r.order))
	}
	if _, err := r.resume(first, "m", now); err == nil {
		t.Error("the oldest handle was not removed")
	}
}

func BenchmarkParseAudio(b *testing.B) {
	pcm := base64.StdEncoding.EncodeToString(make([]byte, 3200))
	frame, err := json.Marshal(map[string]any{"realtimeInput": map[string]any{"audio": map[string]any{"data": pcm, "mimeType": "audio/pcm;rate=16000"}}})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, len(frame))
	for b.Loop() {
		copy(buf, frame)
		if _, err := parseMessage(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeAudio(b *testing.B) {
	f := serverFrame{ServerContent: &serverContent{ModelTurn: &modelTurn{Parts: []part{{InlineData: &inlineData{"audio/pcm;rate=24000", audioMark}}}}}}
	pcm := make([]byte, 9600)
	for b.Loop() {
		encode(f, pcm)
	}
}

// TestThoughts: the models that show them, and the effect of a thinkingConfig.
func TestThoughts(t *testing.T) {
	tool := `"tools":[{"functionDeclarations":[{"name":"f"}]}]`
	think := func(cfg string) string {
		return `{"setup":{"model":"` + model25 + `","generationConfig":{"thinkingConfig":` + cfg + `}}}`
	}
	for setup, want := range map[string]bool{
		setupFor(model25, ""):                                 true,
		setupFor(model25, tool):                               false,
		setupFor(model31, ""):                                 false,
		setupFor(model38, ""):                                 false,
		think(`{"thinkingBudget":0}`):                         false,
		think(`{"includeThoughts":false}`):                    false,
		think(`{"thinkingLevel":"minimal"}`):                  true,
		`{"setup":{"model":"gemini-live-2.5-flash-preview"}}`: false,
	} {
		m, err := parseMessage([]byte(setup))
		if err != nil {
			t.Fatal(err)
		}
		c, err := configure(m.Setup, route{version: "v1beta"})
		if err != nil || c.thoughts != want {
			t.Errorf("%s: thoughts %v, %v; want %v", setup, c.thoughts, err, want)
		}
	}
}

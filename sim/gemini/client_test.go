package gemini

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/genai"

	"voicegw/internal/testutil"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// These tests connect the provider's own Go client to the simulator, over real sockets and unchanged.

type official struct {
	t      *testing.T
	h      *Handler
	client *genai.Client
	rest   *genai.Client // the same for REST, which wants http in its URL
}

func newOfficial(t *testing.T, o wire.Options, version string) *official {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := New(o)
	srv := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(ln) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := h.opts.Group.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		_ = srv.Close()
		served.Wait()
	})
	out := &official{t: t, h: h}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	for scheme, into := range map[string]**genai.Client{"ws": &out.client, "http": &out.rest} {
		*into, err = genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "test-key", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: tr},
			HTTPOptions: genai.HTTPOptions{BaseURL: scheme + "://" + ln.Addr().String(), APIVersion: version},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// fastOptions make a conversation over real sockets short: only the simulated player needs some time.
func fastOptions() wire.Options {
	return wire.Options{FirstAudioMS: -1, Speed: -1, PlaybackSpeed: -1}
}

func (o *official) connect(model string, cfg *genai.LiveConnectConfig) *genai.Session {
	o.t.Helper()
	if cfg.ResponseModalities == nil {
		cfg.ResponseModalities = []genai.Modality{genai.ModalityAudio}
	}
	cfg.InputAudioTranscription = &genai.AudioTranscriptionConfig{}
	cfg.OutputAudioTranscription = &genai.AudioTranscriptionConfig{}
	s, err := o.client.Live.Connect(o.t.Context(), model, cfg)
	if err != nil {
		o.t.Fatalf("connect: %v", err)
	}
	o.t.Cleanup(func() { _ = s.Close() })
	return s
}

// answer is the client's view of one turn.
type answer struct {
	heard, said string
	audio       int
	calls       []*genai.FunctionCall
	interrupted bool
	usage       *genai.UsageMetadata
}

// receive reads until a turn is over, a call arrives, or stop returns true.
func receive(t *testing.T, s *genai.Session, stop func(*answer) bool) *answer {
	t.Helper()
	a := &answer{}
	for {
		m, err := s.Receive()
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if m.UsageMetadata != nil {
			a.usage = m.UsageMetadata
		}
		if m.ToolCall != nil {
			a.calls = m.ToolCall.FunctionCalls
			return a
		}
		c := m.ServerContent
		if c == nil {
			continue
		}
		if c.InputTranscription != nil {
			a.heard += c.InputTranscription.Text
		}
		if c.OutputTranscription != nil {
			a.said += c.OutputTranscription.Text
		}
		if c.ModelTurn != nil {
			for _, p := range c.ModelTurn.Parts {
				if p.InlineData != nil {
					a.audio += len(p.InlineData.Data)
				}
			}
		}
		a.interrupted = a.interrupted || c.Interrupted
		if c.TurnComplete || (stop != nil && stop(a)) {
			return a
		}
	}
}

func sendSpeech(t *testing.T, s *genai.Session, words string, silence time.Duration) {
	t.Helper()
	pcm := voice.New(voice.Options{Rate: 16000, Voice: "Puck"}).Speak(words).PCM
	pcm = append(pcm, make([]byte, 32*silence.Milliseconds())...)
	for len(pcm) > 0 {
		n := min(len(pcm), 3200)
		err := s.SendRealtimeInput(genai.LiveRealtimeInput{Audio: &genai.Blob{Data: pcm[:n], MIMEType: "audio/pcm;rate=16000"}})
		if err != nil {
			t.Fatalf("send audio: %v", err)
		}
		pcm = pcm[n:]
	}
}

var weather = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
	Name: "get_weather", Description: "Look up the weather for a city.",
	Parameters: &genai.Schema{
		Type:       genai.TypeObject,
		Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString}},
		Required:   []string{"city"},
	},
}}}}

func models() []string {
	return []string{"gemini-2.5-flash-native-audio-preview-09-2025", "gemini-3.1-flash-live-preview", "gemini-3.8-live"}
}

func TestOfficialClient(t *testing.T) {
	for _, model := range models() {
		t.Run(model, func(t *testing.T) {
			o := newOfficial(t, fastOptions(), "v1beta")
			s := o.connect(model, &genai.LiveConnectConfig{
				SystemInstruction: genai.NewContentFromText("Answer in one sentence.", genai.RoleUser),
				Tools:             weather,
				SpeechConfig:      &genai.SpeechConfig{VoiceConfig: &genai.VoiceConfig{PrebuiltVoiceConfig: &genai.PrebuiltVoiceConfig{VoiceName: "Aoede"}}},
				SessionResumption: &genai.SessionResumptionConfig{},
			})
			yes := true
			if err := s.SendClientContent(genai.LiveClientContentInput{
				Turns: []*genai.Content{genai.NewContentFromText("What is the weather in London?", genai.RoleUser)}, TurnComplete: &yes,
			}); err != nil {
				t.Fatal(err)
			}
			a := receive(t, s, nil)
			if len(a.calls) != 1 || a.calls[0].Name != "get_weather" || a.calls[0].Args["city"] != "London" || a.calls[0].ID == "" {
				t.Fatalf("calls %+v", a.calls)
			}
			if model == "gemini-3.8-live" {
				receive(t, s, nil) // the turn of the call is over: the tool runs in the background
			}
			err := s.SendToolResponse(genai.LiveToolResponseInput{FunctionResponses: []*genai.FunctionResponse{{
				ID: a.calls[0].ID, Name: "get_weather", Response: map[string]any{"output": "It is foggy and 12 degrees in London."},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			a = receive(t, s, nil)
			if !strings.Contains(a.said, "foggy") || a.audio < 24000 || a.usage == nil || a.usage.TotalTokenCount == 0 {
				t.Errorf("the answer to the result: %q, %d bytes of audio, usage %+v", a.said, a.audio, a.usage)
			}

			sendSpeech(t, s, "And what do you think about that?", 1200*time.Millisecond)
			a = receive(t, s, nil)
			if len(a.calls) == 0 && (a.heard == "" || a.said == "" || a.audio == 0) {
				t.Errorf("the spoken turn: input %q, output %q, %d bytes of audio", a.heard, a.said, a.audio)
			}
		})
	}
}

// TestOfficialClientBargeIn speaks during a long answer, and gets none of it after interrupted.
func TestOfficialClientBargeIn(t *testing.T) {
	for _, model := range models() {
		t.Run(model, func(t *testing.T) {
			opts := wire.Options{
				FirstAudioMS: -1, Speed: 2, Scenario: mustScenario(t, "otherwise:\n  - say: "+strings.Repeat("This goes on and on. ", 8)+"\n"),
			}
			o := newOfficial(t, opts, "v1beta")
			s := o.connect(model, &genai.LiveConnectConfig{})
			if err := s.SendRealtimeInput(genai.LiveRealtimeInput{Text: "Tell me everything."}); err != nil {
				t.Fatal(err)
			}
			receive(t, s, func(a *answer) bool { return a.audio > 0 })
			sendSpeech(t, s, "Stop, that is enough for me.", 0)
			a := receive(t, s, nil)
			if !a.interrupted {
				t.Fatalf("the turn ended without interrupted: %+v", a)
			}
			if a.audio > 24000*2*30 {
				t.Errorf("%d bytes of audio arrived before the interruption", a.audio)
			}
			sendSpeech(t, s, "", 1500*time.Millisecond)
			a = receive(t, s, func(a *answer) bool { return a.audio > 0 })
			if a.interrupted || a.heard == "" {
				t.Errorf("the turn after the interruption: %+v", a)
			}
		})
	}
}

func TestOfficialClientResumes(t *testing.T) {
	o := newOfficial(t, wire.Options{
		FirstAudioMS: -1, Speed: -1, Scenario: mustScenario(t, `
rules:
  - when: {utterance: 1}
    do: [{say: This is the first.}]
  - when: {utterance: 2}
    do: [{say: This is the second.}]
`),
		PlaybackSpeed: -1,
	}, "v1beta")
	cfg := &genai.LiveConnectConfig{SessionResumption: &genai.SessionResumptionConfig{}}
	s := o.connect(models()[0], cfg)
	sendSpeech(t, s, "Hello, this is me.", 1200*time.Millisecond)
	if a := receive(t, s, nil); a.said != "This is the first." {
		t.Fatalf("the transcript is %q", a.said)
	}
	m, err := s.Receive()
	if err != nil || m.SessionResumptionUpdate == nil || !m.SessionResumptionUpdate.Resumable {
		t.Fatalf("no handle: %+v, %v", m, err)
	}
	again := &genai.LiveConnectConfig{SessionResumption: &genai.SessionResumptionConfig{Handle: m.SessionResumptionUpdate.NewHandle}}
	_, err = o.client.Live.Connect(t.Context(), models()[0], again)
	var ce *websocket.CloseError
	if !errors.As(err, &ce) || ce.Code != 1011 {
		t.Errorf("resuming while the old socket is open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The client closes without a close frame; the server notices when it reads.
	testutil.WaitUntil(t, "the old connection is closed", func() bool { return o.h.opts.Stats.Open.Load() == 0 })
	s = o.connect(models()[0], again)
	sendSpeech(t, s, "And once more, please.", 1200*time.Millisecond)
	if a := receive(t, s, nil); a.said != "This is the second." {
		t.Errorf("after resuming: the transcript is %q", a.said)
	}
}

// TestOfficialClientRefused: the errors that the client's caller gets for the provider's refusals.
func TestOfficialClientRefused(t *testing.T) {
	o := newOfficial(t, fastOptions(), "v1beta")
	_, err := o.client.Live.Connect(t.Context(), "gemini-9", &genai.LiveConnectConfig{})
	var ce *websocket.CloseError
	if !errors.As(err, &ce) || ce.Code != 1008 || !strings.HasPrefix(ce.Text, "models/gemini-9 is not found for API version v1beta") {
		t.Errorf("an unknown model: %v", err)
	}
}

// TestOfficialClientTokens makes an ephemeral token and connects with it.
func TestOfficialClientTokens(t *testing.T) {
	o := newOfficial(t, fastOptions(), "v1alpha")
	uses := int32(1)
	tok, err := o.rest.AuthTokens.Create(t.Context(), &genai.CreateAuthTokenConfig{
		Uses: &uses, ExpireTime: time.Now().Add(time.Hour),
		LiveConnectConstraints: &genai.LiveConnectConstraints{
			Model:  models()[1],
			Config: &genai.LiveConnectConfig{ResponseModalities: []genai.Modality{genai.ModalityAudio}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	browser, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: tok.Name, Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: o.client.ClientConfig().HTTPOptions.BaseURL, APIVersion: "v1alpha"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := browser.Live.Connect(t.Context(), models()[0], &genai.LiveConnectConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SendRealtimeInput(genai.LiveRealtimeInput{Text: "Hello."}); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, s, nil); a.audio == 0 {
		t.Error("no answer")
	}
	if _, err := browser.Live.Connect(t.Context(), models()[0], &genai.LiveConnectConfig{}); err == nil {
		t.Error("the token could be used twice")
	}
}

package gemini

import (
	"errors"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"google.golang.org/genai"
)

// TestOfficialClientRefusedSetups: the errors that the client's caller gets for setups that one model or version accepts
// and another refuses.
func TestOfficialClientRefusedSetups(t *testing.T) {
	const extended = "gemini-3.8-live-extended-thinking"
	yes, no, budget := true, false, int32(512)
	level := func(l genai.ThinkingLevel) *genai.LiveConnectConfig {
		return &genai.LiveConnectConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: l}}
	}
	for name, c := range map[string]struct {
		version, model string
		cfg            *genai.LiveConnectConfig
		refused        bool
	}{
		"extended thinking without a choice":      {"v1beta", extended, &genai.LiveConnectConfig{}, true},
		"extended thinking, minimal":              {"v1beta", extended, level(genai.ThinkingLevelMinimal), true},
		"extended thinking, low":                  {"v1beta", extended, level(genai.ThinkingLevelLow), false},
		"extended thinking, high":                 {"v1beta", extended, level(genai.ThinkingLevelHigh), false},
		"extended thinking, a budget":             {"v1beta", extended, &genai.LiveConnectConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: &budget}}, false},
		"extended thinking, a level and a budget": {"v1beta", extended, &genai.LiveConnectConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelLow, ThinkingBudget: &budget}}, true},
		"3.8, low":                                   {"v1beta", "gemini-3.8-live", level(genai.ThinkingLevelLow), true},
		"3.8, affective dialog":                      {"v1beta", "gemini-3.8-live", &genai.LiveConnectConfig{EnableAffectiveDialog: &yes}, true},
		"3.8, proactive audio off":                   {"v1alpha", "gemini-3.8-live", &genai.LiveConnectConfig{Proactivity: &genai.ProactivityConfig{ProactiveAudio: &no}}, true},
		"proactive audio on v1beta":                  {"v1beta", "gemini-2.5-flash-native-audio-preview-09-2025", &genai.LiveConnectConfig{Proactivity: &genai.ProactivityConfig{ProactiveAudio: &yes}}, true},
		"proactive audio on v1alpha":                 {"v1alpha", "gemini-2.5-flash-native-audio-preview-09-2025", &genai.LiveConnectConfig{Proactivity: &genai.ProactivityConfig{ProactiveAudio: &yes}}, false},
		"a name that only begins like that of a 3.8": {"v1beta", "gemini-3.8-live-ultra", &genai.LiveConnectConfig{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOfficial(t, fastOptions(), c.version)
			c.cfg.ResponseModalities = []genai.Modality{genai.ModalityAudio}
			s, err := o.client.Live.Connect(t.Context(), c.model, c.cfg)
			if err == nil {
				defer s.Close()
			}
			var ce *websocket.CloseError
			if c.refused && (!errors.As(err, &ce) || ce.Code != 1007 && ce.Code != 1008 || ce.Text == "") || !c.refused && err != nil {
				t.Errorf("refused %t: %v", c.refused, err)
			}
		})
	}
}

// TestOfficialClientExtendedThinking: a tool round with the model that thinks between its answers: the turn of the call
// ends, including its late messages, before the result is sent.
func TestOfficialClientExtendedThinking(t *testing.T) {
	o := newOfficial(t, fastOptions(), "v1beta")
	s := o.connect("gemini-3.8-live-extended-thinking", &genai.LiveConnectConfig{
		Tools: weather, ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelLow},
	})
	yes := true
	if err := s.SendClientContent(genai.LiveClientContentInput{
		Turns: []*genai.Content{genai.NewContentFromText("What is the weather in London?", genai.RoleUser)}, TurnComplete: &yes,
	}); err != nil {
		t.Fatal(err)
	}
	a := receive(t, s, nil)
	if len(a.calls) != 1 || a.calls[0].Name != "get_weather" || a.calls[0].ID == "" {
		t.Fatalf("calls %+v", a.calls)
	}
	receive(t, s, nil) // the end of the call's turn: it did not wait for the result
	if err := s.SendToolResponse(genai.LiveToolResponseInput{FunctionResponses: []*genai.FunctionResponse{{
		ID: a.calls[0].ID, Name: "get_weather", Response: map[string]any{"output": "It is foggy and 12 degrees in London."},
	}}}); err != nil {
		t.Fatal(err)
	}
	if a = receive(t, s, nil); !strings.Contains(a.said, "foggy") || a.audio == 0 {
		t.Errorf("the answer to the result: %q, %d bytes of audio", a.said, a.audio)
	}
}

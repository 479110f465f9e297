package gemini

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

const modelTranslate = "gemini-3.5-live-translate-preview"

// TestTranslation: a translation model gets its language, and no instructions or tools.
func TestTranslation(t *testing.T) {
	wire := Wire()
	provider := transport.Provider{APIKey: secret, Model: modelTranslate, Settings: map[string]string{"translate_to": "pt-BR", "translate_echo": "true"}}
	made, err := wire.New(provider)
	if err != nil {
		t.Fatal(err)
	}
	tr := made.(*Transport)
	frame, err := tr.setupFrame(modelTranslate, tr.opts.row(""), transport.Setup{
		Instructions: "Be brief.", Tools: []transport.Tool{{Name: "f"}}, SilenceMS: 300, Voice: "Kore", Language: "de",
		History: []transport.Past{transport.PastUser{Text: "Hello."}}, Reanchor: "Go on.",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(frame, &got), json.Unmarshal([]byte(`{"setup":{"model":"models/gemini-3.5-live-translate-preview",
		"generationConfig":{"responseModalities":["AUDIO"],"translationConfig":{"targetLanguageCode":"pt-BR","echoTargetLanguage":true}},
		"inputAudioTranscription":{},"outputAudioTranscription":{}}}`), &want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the setup (-want +got):\n%s", diff)
	}
	if history, err := historyFrame(tr.opts.row(""), transport.Setup{History: []transport.Past{transport.PastUser{Text: "Hello."}}}); history != nil || err != nil {
		t.Errorf("a history is sent: %s, %v", history, err)
	}
	if tr.Voices("") != nil || tr.Refuses(modelTranslate) {
		t.Errorf("voices %v, refused %v", tr.Voices(""), tr.Refuses(modelTranslate))
	}
	c := &conn{t: tr, row: tr.opts.row("")}
	for _, cmd := range []transport.Command{
		transport.UserText{Text: "Hi."}, transport.Interrupt{}, transport.ActivityStart{}, transport.Image{}, transport.Respond{},
		transport.Reconfigure{Instructions: "x"}, transport.AddItem{Item: transport.PastUser{Text: "x"}}, transport.ToolResult{Call: "c"},
	} {
		if b, err := c.encode(nil, cmd); len(b) > 0 || err != nil {
			t.Errorf("%T sends %s, %v", cmd, b, err)
		}
	}
	if b, err := c.encode(nil, transport.AudioPause{}); string(b) != audioStreamEnd || err != nil {
		t.Errorf("a pause sends %s, %v", b, err)
	}
}

func TestTranslationOptions(t *testing.T) {
	for want, p := range map[string]transport.Provider{
		"TranslateTo is missing": {Model: modelTranslate},
		"does not translate":     {Settings: map[string]string{"translate_to": "es"}},
		"not a language tag":     {Model: modelTranslate, Settings: map[string]string{"translate_to": "Spanish!"}},
		"write true or false":    {Model: modelTranslate, Settings: map[string]string{"translate_to": "es", "translate_echo": "yes"}},
	} {
		p.APIKey = secret
		if _, err := Wire().New(p); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	tr, err := New(transport.Provider{APIKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.Connect(t.Context(), transport.Setup{Model: modelTranslate})
	if transport.KindOf(err) != transport.KindInvalid || !strings.Contains(err.Error(), "TranslateTo is missing") {
		t.Errorf("a session with a translation model without a language: %v", err)
	}
}

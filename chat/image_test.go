package chat

import (
	"context"
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/registry"
)

// TestImageIsShown: the client of the turn gets a tool's image at once, before the tool has ended.
func TestImageIsShown(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		at := time.Now().Add(time.Hour)
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			c.Needs.Gallery.Show(registry.Image{ID: "secret", URL: "/v1/images/secret", Prompt: "a fox", Width: 1536, Height: 1024, ExpiresAt: at})
			return registry.Result{Data: map[string]string{"url": "/v1/images/secret"}}, nil
		}
		sent := f.say("Draw a fox", callsTools(nth(1), "look", `{}`), says("There it is."))
		if got := sent.types(); got != "tool.started ui.image tool.ended text.done usage done" {
			t.Error(got)
		}
		m := of[*protocol.UIImage](sent)[0]
		if m.ID != "secret" || m.URL != "/v1/images/secret" || m.Prompt != "a fox" || m.Width != 1536 || m.Height != 1024 || !m.ExpiresAt.Equal(at) || m.Turn != 1 {
			t.Errorf("%+v", m)
		}
	})
}

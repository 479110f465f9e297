package orderpack

import (
	"slices"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// client notes what it is told. A method that the tool does not call may be missing.
type client struct {
	registry.Messenger
	told []string
}

func (c *client) Tell(text string, _ float64)    { c.told = append(c.told, text) }
func (c *client) Note(event string, _ any) error { c.told = append(c.told, "note "+event); return nil }
func (c *client) Send(name string, _ any) error  { c.told = append(c.told, "sent "+name); return nil }
func (c *client) Show(image registry.Image)      { c.told = append(c.told, "shown "+image.URL) }

func TestPack(t *testing.T) {
	c := &client{}
	call := registry.Call[Args, Needs]{
		Args:    Args{Order: "A-1042"},
		Needs:   Needs{Messenger: c, Progress: c, Audit: c, Gallery: registry.Some[registry.Gallery](c)},
		Session: registry.Session{Mode: spec.ModeText, Now: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)},
	}
	result, err := Execute(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if output := result.Data.(Output); output.Parts["wheel"] != 2 || output.Shown == nil {
		t.Errorf("got %+v", output)
	}
	if want := []string{"Looking for the parts", "note order.picked", "shown /labels/A-1042.png", "sent order.packed"}; !slices.Equal(c.told, want) {
		t.Errorf("told %q", c.told)
	}
	call.Args.Order = "X-1"
	if Check(t.Context(), call) == nil {
		t.Error("an order of another shop was let pass")
	}
}

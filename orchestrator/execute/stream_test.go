package execute

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

type streamNeeds struct{ Stream registry.Stream }

// streams runs look, which streams, in a conversation in text. It returns its answer and the client's parts.
func streams(t *testing.T, f *fixture, do func(registry.Stream) error) (env registry.Envelope, parts []string) {
	t.Helper()
	r, err := registry.Load(registrytest.File(t, entries()[0]), registry.Options{
		SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Stream]()},
		Handlers: map[string]registry.Handler{"look": registry.Bind(func(_ context.Context, c registry.Call[args, streamNeeds]) (registry.Result, error) {
			return registry.Result{Data: "all"}, do(c.Needs.Stream)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.tools = r.Snapshot()
	c := f.talk("s1", "ada")
	c.c.Tell = func(m protocol.ServerMessage) {
		f.mu.Lock()
		defer f.mu.Unlock()
		got := m.(*protocol.ToolMessage)
		if got.Name != registry.PartName || got.CallID != "c1" || got.Tool != "look" || got.Turn != 1 {
			t.Errorf("the client got %+v", got)
		}
		parts = append(parts, string(got.Data))
	}
	env = f.run(c, f.jobIn(spec.ModeText, "c1", "look", `{}`))
	f.mu.Lock()
	defer f.mu.Unlock()
	return env, slices.Clone(parts)
}

// TestStream: the client gets the parts in order, the model only the answer; a repeated call begins with its first
// part, and parts of an abandoned handler are dropped.
func TestStream(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var first registry.Stream
		env, parts := streams(t, f, func(s registry.Stream) error {
			if first == nil {
				first = s
				return errors.Join(s.Part("one"), &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Retryable: true})
			}
			return errors.Join(first.Part("late"), s.Part("one"), s.Part(map[string]int{"n": 2}))
		})
		if err := first.Part("after the call"); err != nil {
			t.Error(err)
		}
		want := []string{`{"part":1,"data":"one"}`, `{"part":1,"data":"one"}`, `{"part":2,"data":{"n":2}}`}
		if !slices.Equal(parts, want) || !env.OK || string(env.Data) != `"all"` {
			t.Errorf("the parts are %q, the answer %s", parts, env.Encode())
		}
	})
}

// TestStreamIsBounded: excess is an error for the tool, and nothing reaches the client.
func TestStreamIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		data any
		give int // how often
		want int // parts that the client gets
	}{
		"too many":    {1, registry.MaxParts + 3, registry.MaxParts},
		"too long":    {strings.Repeat("a", registry.MaxAside), 1, 0},
		"not JSON":    {make(chan int), 1, 0},
		"too much":    {strings.Repeat("a", registry.MaxAside-2), registry.MaxParts, registry.MaxStream / registry.MaxAside},
		"the maximum": {strings.Repeat("a", registry.MaxAside-2), 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				refused := 0
				_, parts := streams(t, f, func(s registry.Stream) error {
					for range c.give {
						if err := s.Part(c.data); errors.Is(err, registry.ErrNotTaken) {
							refused++
						} else if err != nil {
							return fmt.Errorf("another error: %w", err)
						}
						pass(time.Millisecond)
					}
					return nil
				})
				if len(parts) != c.want || refused != c.give-c.want {
					t.Errorf("%d parts, %d refused", len(parts), refused)
				}
			})
		})
	}
}

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// signed is a step whose message and calls carry extra data of the model's.
func signed(do step, extra string) step {
	return func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
		r, err := do(ctx, p, delta)
		r.Extra = json.RawMessage(`{"of":"` + extra + `"}`)
		for i := range r.Calls {
			r.Calls[i].Extra = json.RawMessage(fmt.Sprintf(`{"of":"%s","call":%d}`, extra, i))
		}
		return r, err
	}
}

// extras are the extra data in a prompt, in order.
func extras(p textmodel.Prompt) string {
	var out []string
	for _, m := range p.Messages {
		if m.Extra != nil {
			out = append(out, string(m.Extra))
		}
		for _, c := range m.Calls {
			if c.Extra != nil {
				out = append(out, string(c.Extra))
			}
		}
	}
	return strings.Join(out, " ")
}

// TestExtrasGoBack: the extra data of an answer's text and calls goes back to the model, in its turn, in later turns,
// and when the message is repeated, on another gateway too. Neither the client nor the log gets it.
func TestExtrasGoBack(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		const calls = `{"of":"first"} {"of":"first","call":0} {"of":"first","call":1}`
		lost := func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("no route")}
		}
		f.say("Go", signed(callsTools(nth(1), "change", `{"name":"a"}`, nth(2), "look", `{}`), "first"), lost)
		if got := extras(f.last()); got != calls {
			t.Errorf("in its turn: %s", got)
		}
		g := newFixture(t, fixtureSetting{shares: f})
		sent := g.say("Go", signed(says("Done."), "second"))
		if got := extras(g.last()); got != calls {
			t.Errorf("repeated elsewhere: %s", got)
		}
		g.say("And?", says("Nothing."))
		if got := extras(g.last()); got != calls+` {"of":"second"}` {
			t.Errorf("in the next turn: %s", got)
		}
		for _, s := range []string{sent.lines(), f.log.String(), g.log.String()} {
			if strings.Contains(s, `first`) || strings.Contains(s, `second`) {
				t.Errorf("leaked: %s", s)
			}
		}
		g.say("And?", says("Nothing more."))
		g.say("And then?", says("Nothing at all."))
		if got := extras(g.last()); got != "" {
			t.Errorf("turns later: %s", got)
		}
	})
}

// TestLargeExtrasAreNotKept: if the extra data of calls is too long to be stored, later turns describe the calls in
// words.
func TestLargeExtrasAreNotKept(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Go", signed(callsTools(nth(1), "look", `{}`), strings.Repeat("x", maxKeptExtra)), says("Done."))
		if got := extras(f.last()); len(got) < maxKeptExtra {
			t.Errorf("in its turn: %d bytes", len(got))
		}
		sent := f.say("And?", says("Nothing."))
		if got := extras(f.last()); got != "" || !strings.Contains(transcript(f.last()), "[called look: ok]") || sent.done().Status != protocol.DoneCompleted {
			t.Errorf("%s: %s", got, transcript(f.last()))
		}
		if raw, _ := json.Marshal(f.conversation("conv")); len(raw) > maxKeptExtra {
			t.Errorf("%d bytes are stored", len(raw))
		}
	})
}

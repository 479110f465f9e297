package gemini

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// inContentToo is a call in serverContent.
func inContentToo(id, name, args string) string {
	return `{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"id":` + quote(id) + `,"name":"` + name + `","args":` + args + `}}]}}}`
}

// TestOneIDIsOneWait: the provider waits for one answer to an id, however often it announces the call. After a caller has
// answered one announcement no call is open: transcripts and typed text continue.
func TestOneIDIsOneWait(t *testing.T) {
	const twice = `{"toolCall":{"functionCalls":[{"id":"a","name":"f","args":{}},{"id":"a","name":"f","args":{}}]}}`
	for _, test := range []struct {
		name     string
		messages []string
		answers  []string // the calls that the caller answers
		after    []string // the messages after that
		want     []string // the message sent for the answers
	}{
		{name: "in one message", messages: []string{twice}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "in two messages", messages: []string{called("a", "f"), called("a", "f")}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "the second is answered", messages: []string{twice}, answers: []string{"call_2"}, want: []string{"a"}},
		{name: "three times", messages: []string{twice, called("a", "f")}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "in both places and again", messages: []string{inContentToo("a", "f", "{}"), called("a", "f"), called("a", "f")}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "next to another call", messages: []string{twice, called("b", "f")}, answers: []string{"call_1", "call_3"}, want: []string{"a", "b"}},
		{name: "with other arguments", messages: []string{
			called("a", "f"), `{"toolCall":{"functionCalls":[{"id":"a","name":"f","args":{"n":1}}]}}`,
		}, answers: []string{"call_1", "call_2"}, want: []string{"a", "a"}},
		{name: "after the answer", messages: []string{called("a", "f")}, answers: []string{"call_1"}, want: []string{"a"}, after: []string{called("a", "f"), `{"toolCallCancellation":{"ids":["a"]}}`}},
		{name: "cancelled", messages: []string{twice, `{"toolCallCancellation":{"ids":["a","unknown"]}}`}},
		{name: "cancelled and repeated", messages: []string{twice, `{"toolCallCancellation":{"ids":["a"]}}`, called("a", "f")}, answers: []string{"call_3"}, want: []string{"a"}},
		{name: "without an id in one place", messages: []string{inContentToo("", "f", `{"x": 1, "y": 2}`), `{"toolCall":{"functionCalls":[{"id":"a","name":"f","args":{"y":2,"x":1}}]}}`}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "without an id in the other place", messages: []string{called("a", "f"), inContentToo("", "f", `{}`)}, answers: []string{"call_1"}, want: []string{"a"}},
		{name: "without any id", messages: []string{called("", "f"), called("", "f")}, answers: []string{"call_1", "call_2"}, want: []string{"", ""}},
	} {
		for _, model := range []string{model25, model31} {
			t.Run(test.name+" "+model, func(t *testing.T) {
				c := offline(t, model)
				feed(t, c, append([]string{said("One moment."), speech}, test.messages...)...)
				var sent []string
				for _, call := range test.answers {
					for _, a := range c.calls.result(call, json.RawMessage(`{}`), "") {
						sent = append(sent, a.ID)
					}
				}
				feed(t, c, test.after...)
				if diff := cmp.Diff(test.want, sent); diff != "" {
					t.Errorf("the answers differ (-want +got):\n%s", diff)
				}
				if c.calls.waiting() || c.calls.unanswered() {
					t.Error("the model still waits for a call")
				}
				got := feed(t, c, said("It is"), speech)
				if words := `Transcript item_2 assistant "It is"`; !slices.Contains(got, words) {
					t.Errorf("the words of the answer are lost: %q", got)
				}
				if text := sentBy(t, c, transport.UserText{Text: "thanks"})[0]; !strings.Contains(text, "thanks") {
					t.Errorf("typed text is not sent: %q", text)
				}
			})
		}
	}
}

// TestNoCallStaysOpen: random announcements, answers and cancellations. After a caller has answered one announcement of
// each id, and all of those without an id, no call is open.
func TestNoCallStaysOpen(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := offline(t, model31)
		owed := map[string][]string{} // the unanswered calls, by id
		var unnamed []string
		for range 40 {
			id := strconv.Itoa(random.IntN(4))
			switch random.IntN(5) {
			case 0, 1:
				c.dialog.batches++
				owed[id] = append(owed[id], c.calls.add(id, "f", c.dialog.batches, random.IntN(2) == 0))
			case 2:
				unnamed = append(unnamed, c.calls.add("", "f", c.dialog.batches, true))
			case 3:
				c.calls.cancel([]string{id, "unknown"})
				delete(owed, id)
			case 4:
				if calls := owed[id]; len(calls) > 0 {
					if n := len(c.calls.result(calls[random.IntN(len(calls))], json.RawMessage(`{}`), "")); n != 1 {
						t.Fatalf("seed %d: %d answers were sent", seed, n)
					}
					delete(owed, id)
				}
			}
		}
		for id, calls := range owed {
			if n := len(c.calls.result(calls[0], json.RawMessage(`{}`), "")); n != 1 {
				t.Fatalf("seed %d: call %s of id %s: %d answers were sent", seed, calls[0], id, n)
			}
		}
		for _, call := range unnamed {
			c.calls.result(call, json.RawMessage(`{}`), "")
		}
		if c.calls.waiting() || c.calls.unanswered() {
			t.Fatalf("seed %d: a call remains open", seed)
		}
	}
}

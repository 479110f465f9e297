package traces

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"voicegw/chat"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// writing is a turn in text; the package calls decides about its calls.
type writing struct {
	t     *testing.T
	calls calls.Calls
	now   time.Time
	is    chat.Followed
	run   []calls.Run
	asked []calls.Ask
}

func write(t *testing.T, tr *Traces, o chat.Opening) *writing {
	o.ConversationID, o.Agent, o.Turn, o.At = "conv-1", "default", 3, epoch
	return &writing{t: t, now: epoch, is: tr.Text(o), calls: calls.New(toolbox(t), &calls.Rules{Tools: calls.Policy{Mode: spec.ModeText}, Prefix: "call_3_"})}
}

func (w *writing) did(after int, all []calls.Action) {
	w.now = w.now.Add(time.Duration(after) * time.Millisecond)
	for _, a := range all {
		switch a := a.(type) {
		case calls.Run:
			w.run = append(w.run, a)
		case calls.Ask:
			w.asked = append(w.asked, a)
		}
	}
	w.is.Take(chat.Step{At: w.now, Did: all})
}

func (w *writing) replied(took int, r textmodel.Reply, err error) {
	began := w.now
	w.now = w.now.Add(time.Duration(took) * time.Millisecond)
	told := &chat.Replied{Began: began, Reply: r, Err: err}
	if r.Text != "" {
		told.First = began.Add(time.Duration(took/2) * time.Millisecond)
	}
	w.is.Take(chat.Step{At: w.now, Replied: told})
}

func (w *writing) over(o chat.TurnOver) {
	w.is.Take(chat.Step{At: w.now, Over: &o, Cost: cost.Amount{Micros: 120}})
}

// TestTextTrees compares the spans of text turns at a collector.
func TestTextTrees(t *testing.T) {
	for name, answer := range map[string]func(*writing){
		"text_tool_call": func(w *writing) {
			w.replied(400, textmodel.Reply{Calls: []textmodel.ToolCall{{ID: "p1", Name: "kb_search"}}, Usage: textmodel.Usage{Input: 80, Cached: 20, Output: 9}}, nil)
			w.did(1, w.calls.Called(w.now, calls.Called{Turn: 3, Model: "p1", Tool: "kb_search", Args: json.RawMessage(`{"query":"hours"}`)}))
			do, _ := w.calls.Finished(calls.Finished{Call: w.run[0].Call, Envelope: registry.Envelope{OK: true, Data: json.RawMessage(`{}`), Meta: registry.Meta{DurationMS: 30}}, BegunAt: w.now})
			w.did(30, do)
			w.replied(600, textmodel.Reply{Text: "From nine to five.", Usage: textmodel.Usage{Input: 120, Output: 12}}, nil)
			w.over(chat.TurnOver{Status: protocol.DoneCompleted, Took: 1031 * time.Millisecond, Usage: textmodel.Usage{Input: 200, Cached: 20, Output: 21}})
		},
		"text_confirmation": func(w *writing) {
			w.replied(400, textmodel.Reply{Calls: []textmodel.ToolCall{{ID: "p1", Name: "pay"}}}, nil)
			w.did(1, w.calls.Called(w.now, calls.Called{Turn: 3, Model: "p1", Tool: "pay", Args: json.RawMessage(`{"amount":5,"to":"Ada"}`)}))
			asked := calls.Recorded{Call: w.asked[0].Call, Token: "secret-token", Name: "q", Reference: "blue-fox", ExpiresAt: epoch.Add(time.Hour)}
			w.is.Take(chat.Step{At: w.now, Got: asked})
			w.did(10, w.calls.Recorded(w.now, asked))
			w.replied(300, textmodel.Reply{Text: "Shall I?"}, nil)
			w.over(chat.TurnOver{Status: protocol.DoneCompleted})
		},
		"text_failed_provider": func(w *writing) {
			w.replied(200, textmodel.Reply{}, nil)
			w.replied(900, textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Status: 503})
			w.over(chat.TurnOver{Status: protocol.DoneFailed, Code: "provider_unavailable"})
		},
		"text_left": func(w *writing) {
			w.replied(200, textmodel.Reply{Text: "From"}, context.Canceled)
			w.over(chat.TurnOver{Status: protocol.DoneFailed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			tr := open(t, Options{Ratio: 1, Client: r})
			answer(write(t, tr, chat.Opening{}))
			golden(t, name, shown(t, tr, r))
		})
	}
}

// TestTextBelowACaller: a turn belongs to the trace of its request, and passes it on to its own requests.
func TestTextBelowACaller(t *testing.T) {
	r := &recorder{}
	tr := open(t, Options{Client: r, Content: true})
	above, _ := protocol.ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	w := write(t, tr, chat.Opening{Parent: above, Said: "cherry"})
	if s := w.is.Span; s.Trace != above.Trace || s.Span == above.Span || !s.Sampled {
		t.Errorf("it is named %v", s)
	}
	w.replied(100, textmodel.Reply{Text: "banana"}, nil)
	w.over(chat.TurnOver{Status: protocol.DoneCompleted})
	got := shown(t, tr, r)
	want(t, got, "below a foreign span (00f067aa0ba902b7)", "voicegw.kept=caller", "cherry", "banana")
	if strings.Count(got, "trace ") != 1 {
		t.Error(got)
	}
}

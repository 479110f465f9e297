package traces

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"

	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/transport"
)

// conversations are those with trees in testdata.
var conversations = map[string]func(*testing.T, *talk){
	"tool_call": func(_ *testing.T, k *talk) {
		k.says()
		k.model(80, transport.ResponseStarted{ID: "r1"}, transport.ToolCall{Call: "m1", ID: "p1", Name: "kb_search", Args: json.RawMessage(`{"query":"opening hours"}`)},
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted}, transport.Usage{Tokens: transport.Tokens{Input: 90, InputAudio: 90, Output: 12, OutputText: 12}})
		k.finishes(300, registry.Envelope{OK: true, Data: json.RawMessage(`{}`)})
		k.answers("r2")
		k.says()
		k.answers("r3")
	},
	"confirmation": func(_ *testing.T, k *talk) {
		k.says()
		k.model(80, transport.ResponseStarted{ID: "r1"}, transport.ToolCall{Call: "m1", ID: "p1", Name: "pay", Args: json.RawMessage(`{"amount":5,"to":"Ada"}`)},
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		k.does(20, orchestrator.OfCall{In: calls.Recorded{Call: k.asked[0].Call, Token: "secret-token", Name: "q1", Reference: "blue-fox", ExpiresAt: k.now.Add(time.Minute)}})
		k.answers("r2")
		k.does(2000, orchestrator.ConfirmationAnswer{Token: "secret-token", Approved: true})
		k.does(10, orchestrator.OfCall{In: calls.Resolved{Token: "secret-token", Outcome: calls.OutcomeApproved, By: calls.ByClient}})
		k.finishes(150, registry.Envelope{OK: true, Data: json.RawMessage(`{}`)})
		k.answers("r3")
	},
	"interruption": func(_ *testing.T, k *talk) {
		k.says()
		k.model(100, transport.ResponseStarted{ID: "r1"})
		k.speaks("r1")
		k.does(120, orchestrator.UserSpeechStarted{Item: "u2", At: k.now})
		k.model(30, transport.ResponseDone{ID: "r1", Status: transport.ResponseInterrupted})
		k.does(700, orchestrator.UserSpeechStopped{Item: "u2", EndAt: k.now, SpeechMS: 700})
		k.model(10, transport.InputCommitted{Item: "u2"})
		k.answers("r2")
	},
	"failed_provider": func(_ *testing.T, k *talk) {
		k.says()
		k.model(50, transport.ResponseStarted{ID: "r1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseFailed, Err: &transport.Error{Provider: "openai", Op: "response", Kind: transport.KindQuota, Code: "insufficient_quota"}})
		k.says()
		k.does(20, orchestrator.LinkLost{})
		k.does(2000, orchestrator.LinkFailed{Kind: transport.KindAuth})
	},
	"lost_connection": func(_ *testing.T, k *talk) {
		k.says()
		k.does(20, orchestrator.LinkLost{})
		k.does(400, orchestrator.LinkBack{Caps: transport.Capabilities{SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true, History: transport.HistoryItems}, How: orchestrator.LinkReplayed})
		k.answers("r1")
	},
	"failing_tool": func(_ *testing.T, k *talk) {
		k.says()
		k.model(80, transport.ResponseStarted{ID: "r1"}, transport.ToolCall{Call: "m1", Name: "kb_search", Args: json.RawMessage(`{}`)}, transport.ToolCall{Call: "m2", Name: "no_such_tool", Args: json.RawMessage(`{}`)},
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		k.finishes(300, registry.Envelope{Error: &registry.Error{Type: registry.ErrorTransient, Message: "It is away."}})
		k.answers("r2")
	},
}

// TestTrees holds conversations, and compares their spans at a collector.
func TestTrees(t *testing.T) {
	for name, converse := range conversations {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			tr := open(t, Options{Ratio: 1, Client: r})
			k := begin(t, tr, session.Opening{})
			converse(t, k)
			k.ends()
			golden(t, name, shown(t, tr, r))
		})
	}
}

// TestHandoffIsOneTrace: a session started for a span belongs to its trace, and so does its first turn; later turns have
// traces of their own, with a link to it.
func TestHandoffIsOneTrace(t *testing.T) {
	r := &recorder{}
	tr := open(t, Options{Ratio: 0, Client: r})
	above, _ := protocol.ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	k := begin(t, tr, session.Opening{Parent: above})
	if got := k.followed.Start; got.Trace != above.Trace || got.Span == above.Span || !got.Sampled {
		t.Errorf("the session's next gateway gets %v", got)
	}
	k.says()
	k.answers("r1")
	k.says()
	k.answers("r2")
	k.ends()
	got := shown(t, tr, r)
	want(t, got, "trace 1, below a foreign span (00f067aa0ba902b7)\n  voicegw.session.start server", "    invoke_agent default", "voicegw.kept=caller")
	if strings.Contains(got, "trace 2") {
		t.Errorf("a later turn was sampled because of the first one's caller:\n%s", got)
	}
}

// TestContentIsAnOption: spans have no text of the conversation and no arguments unless the operator wants them, and
// never a token.
func TestContentIsAnOption(t *testing.T) {
	for _, content := range []bool{false, true} {
		r := &recorder{}
		tr := open(t, Options{Ratio: 1, Content: content, Client: r})
		k := begin(t, tr, session.Opening{})
		k.says()
		k.model(0, transport.Transcript{Item: "u", Role: transport.RoleUser, Text: "pay Ada, cherry", Final: true})
		k.model(80, transport.ResponseStarted{ID: "r1"}, transport.ToolCall{Call: "m1", Name: "pay", Args: json.RawMessage(`{"amount":5,"to":"banana"}`)},
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		k.does(20, orchestrator.OfCall{In: calls.Recorded{Call: k.asked[0].Call, Token: "secret-token", Name: "q1", Reference: "blue-fox", ExpiresAt: k.now.Add(time.Minute)}})
		k.answers("r2")
		k.ends()
		got := shown(t, tr, r)
		for _, word := range []string{"cherry", "banana"} {
			if strings.Contains(got, word) != content {
				t.Errorf("with content %v, the text is in the spans: %v\n%s", content, !content, got)
			}
		}
		if strings.Contains(got, "secret-token") {
			t.Errorf("a token is in the spans:\n%s", got)
		}
	}
}

// TestRefusedSession: a session that could not begin has a span, although it has no turn.
func TestRefusedSession(t *testing.T) {
	r := &recorder{}
	tr := open(t, Options{Client: r})
	if f := tr.Voice(session.Opening{SessionID: "s", Agent: "default", Provider: "openai", Came: epoch, Started: epoch, Known: epoch, Begun: epoch.Add(time.Second), Refused: "provider_unavailable"}); f.Take != nil {
		t.Error("a session that did not begin is followed")
	}
	want(t, shown(t, tr, r), "voicegw.session.start server FAILED error.type=provider_unavailable", "voicegw.session.connect client FAILED")
}

// TestTakenOver: a session that continues here is linked to its beginning.
func TestTakenOver(t *testing.T) {
	r := &recorder{}
	tr := open(t, Options{Ratio: 1, Client: r})
	before := newPlace(protocol.TraceParent{})
	f := tr.Voice(session.Opening{SessionID: "s", Agent: "default", Provider: "openai", Entry: session.EntryTakeover, Came: epoch, Begun: epoch.Add(time.Second), Before: protocol.TraceParent{Trace: before.trace, Span: before.span}})
	f.Take(session.Step{At: epoch.Add(2 * time.Second), Event: session.Returned{Outcome: session.ReturnedHere, Took: 30 * time.Millisecond}})
	f.Take(session.Step{At: epoch.Add(3 * time.Second), In: orchestrator.Move{}, Actions: []orchestrator.Action{orchestrator.Moving{}}})
	f.Take(session.Step{At: epoch.Add(4 * time.Second), Event: session.Ended{Reason: "moving"}})
	want(t, shown(t, tr, r), "voicegw.resume server voicegw.entry=takeover", "-> a span that is not here voicegw.link=before", "voicegw.outcome=local", "voicegw.move", "voicegw.outcome=moving",
		"-> voicegw.resume of trace 1 voicegw.link=session")
}

// TestOneTurnIsBounded: a model that calls tools without an end, and a user who speaks without one, do not fill the
// memory.
func TestOneTurnIsBounded(t *testing.T) {
	r := &recorder{}
	tr := open(t, Options{Ratio: 1, Client: r})
	k := begin(t, tr, session.Opening{})
	k.says()
	for range 500 {
		k.model(1, transport.ResponseStarted{ID: "r"}, transport.ToolCall{Call: "m", Name: "no_such_tool", Args: json.RawMessage(`{}`)}, transport.Problem{Err: &transport.Error{}}, transport.ResponseDone{ID: "r", Status: transport.ResponseCompleted})
	}
	k.ends()
	_ = shown(t, tr, r)
	if n := len(r.spans); n < mostAnswers+mostCalls || n > 3+1+mostAnswers+mostCalls+mostOthers+3 {
		t.Errorf("%d spans", n)
	}
	want(t, shownAgain(r), keyOmitted)
}

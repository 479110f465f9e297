package chat

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry/spec"
	"voicegw/transport/textmodel"
)

// checked shows an answer to the client as far as the checks have passed it.
type checked struct {
	t      *turn
	show   func(string)
	cancel context.CancelCauseFunc

	// Guarded by the gate, and final once it is closed.
	shown string
	stop  *checks.Stop
}

var errStopped = errors.New("a check has stopped the answer")

// Release implements checks.Listener.
func (c *checked) Release(r checks.Released[struct{}]) {
	if len(r.Text) > len(c.shown) {
		c.show(r.Text[len(c.shown):])
		c.shown = r.Text
	}
}

// Unmatched implements checks.Listener. The turn makes no calls while the model answers.
func (c *checked) Unmatched(_, text string, from int) bool {
	return len(c.t.calls.Unmatched(c.t.number, text, from)) > 0
}

// Stopped implements checks.Listener.
func (c *checked) Stopped(s checks.Stop) {
	c.stop = &s
	c.cancel(errStopped)
}

// checkedTurn is a turn whose answers are checked.
type checkedTurn struct{ *turn }

// reply is complete with checks. If one stops the answer, stop is not nil and the Reply has only the text that was shown.
func (t checkedTurn) reply(ctx context.Context, p textmodel.Prompt, show func(string)) (textmodel.Reply, *checks.Stop, error) {
	if t.a.opts.Checks == nil {
		reply, err := t.complete(ctx, p, show)
		return reply, nil, err
	}
	answering, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asking sync.WaitGroup
	defer asking.Wait()
	c := &checked{t: t.turn, show: show, cancel: cancel}
	about := checks.Text{SessionID: t.session().ID, ConversationID: t.conv.ID}
	gate := checks.NewGate(t.a.opts.Checks, about, true, c, asking.Go)
	defer gate.Close()
	var said strings.Builder
	reply, err := t.complete(answering, p, func(s string) {
		said.WriteString(s)
		gate.Words("", said.String(), false, struct{}{})
	})
	if err == nil {
		gate.Words("", reply.Text, true, struct{}{})
		err = gate.Wait(ctx)
	}
	gate.Close()
	if c.stop != nil {
		return textmodel.Reply{Text: c.shown, Usage: reply.Usage}, c.stop, nil
	}
	return reply, nil, err
}

// stopped completes an answer that a check has stopped: with the check's words or, after a part was shown, without. If
// nothing is left to show, again asks the model once for another answer.
func (t checkedTurn) stopped(stop *checks.Stop, reply *textmodel.Reply, show func(string)) (again bool, failure *protocol.Error) {
	t.audit(audit.Stopped(time.Now(), spec.ModeText, t.number, stop.Rule.Name, string(stop.Why)))
	t.emit(&protocol.AnswerStopped{ItemID: t.item(), Check: stop.Rule.Name, Outcome: string(stop.Rule.Outcome), Reason: string(stop.Why)})
	words := stop.Rule.Say
	switch {
	case words != "" && stop.Rule.Outcome != checks.Cut:
		if reply.Text != "" {
			words = "\n\n" + words
		}
		show(words)
		reply.Text += words
	case strings.TrimSpace(reply.Text) != "":
		reply.Refused = true
	case t.restarted:
		return false, &protocol.Error{Code: protocol.CodeContentFilter,
			Message: "The answer was stopped by a rule of this service. Ask in another way."}
	default:
		t.restarted = true
		again := prompts.OtherwiseNotice
		if stop.Rule.Claims {
			again = calls.ClaimNotice(t.calls.Unmatched(t.number, stop.Text, 0), true)
		}
		t.tell(again)
		return true, nil
	}
	return false, nil
}

package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
)

// show prints an action as a line of a golden conversation.
func show(a Action) string {
	switch a := bare(a).(type) {
	case Command:
		return showCommand(a.Command)
	case Transcript:
		return fmt.Sprintf("Transcript turn=%d %s %s %q final=%t since=%d", a.Turn, a.ID, a.Role, a.Text, a.Final, a.StartedAt.Sub(epoch).Milliseconds())
	case TurnEnded:
		line := fmt.Sprintf("TurnEnded %d %s tokens=%d/%d", a.Turn, a.Status, a.Usage.Input, a.Usage.Output)
		if a.Cost != (cost.Amount{}) {
			line += fmt.Sprintf(" cost=%d", a.Cost.Micros)
			if a.Cost.Unpriced > 0 {
				line += fmt.Sprintf(" unpriced=%d", a.Cost.Unpriced)
			}
		}
		if a.Latency != nil {
			line += showLatency(*a.Latency)
		}
		return line
	case ToolEnded:
		line := fmt.Sprintf("ToolEnded %d %s %s delivered=%t %s", a.Turn, a.Call, a.Tool, a.Delivered, showEnvelope(a.Envelope))
		if a.Queued != 0 || a.Took != 0 {
			line += fmt.Sprintf(" queued=%dms ran=%dms", a.Queued.Milliseconds(), a.Took.Milliseconds())
		}
		return line
	case calls.ToClient:
		return showMessage(a.Message)
	case calls.Cancel, calls.Resolve, calls.Slow:
		name := map[string]string{"calls.Cancel": "CancelTool", "calls.Resolve": "ResolveConfirmation", "calls.Slow": "ToolsSlow"}[fmt.Sprintf("%T", a)]
		return fmt.Sprintf("%s%+v", name, a)
	case calls.Run:
		return strings.TrimSpace(fmt.Sprintf("RunTool %d %s %s %s key=%s %s", a.Turn, a.Call, a.Prepared.Tool().ToolID, a.Prepared.Args(), a.Keys.Idempotency, a.Reference))
	case IntentDecided:
		return showIntent(a)
	case calls.Ask:
		return fmt.Sprintf("AskConfirmation %d %s %s %s", a.Turn, a.Call, a.Prepared.Tool().ToolID, a.Prepared.Args())
	case SwitchLink:
		line := fmt.Sprintf("SwitchLink{Reason:%s Handle:%s}", a.Reason, a.Handle)
		if a.Calls > 0 {
			line += fmt.Sprintf(" calls=%d", a.Calls)
		}
		if a.Deferred {
			line += " deferred"
		}
		return line + showAttempt(a.After, a.Other)
	case Redial:
		return "Redial" + showAttempt(a.After, a.Other)
	case End:
		line := fmt.Sprintf("End{Reason:%s}", a.Reason)
		if a.Kind != 0 {
			line += " kind=" + a.Kind.String()
		}
		return line
	case ClaimUnmatched:
		return fmt.Sprintf("ClaimUnmatched %d %s %s %q %s", a.Turn, a.Item, a.Kind, a.Text, a.Why)
	case AnswerChecked:
		return fmt.Sprintf("AnswerChecked %d %s %s %s %s", a.Turn, a.Item, a.Rule.Name, a.Rule.Outcome, a.Why)
	case Audit:
		return showRecord(a.Record)
	case Failed:
		line := fmt.Sprintf("Failed{Turn:%d Failure:%s Retryable:%t}", a.Turn, a.Failure, a.Retryable)
		if a.Kind != 0 {
			line += " kind=" + a.Kind.String()
		}
		if a.After > 0 {
			line += fmt.Sprintf(" wait=%dms", a.After.Milliseconds())
		}
		if a.Ref != "" {
			line += " ref=" + a.Ref
		}
		return line
	case AgentSwitched:
		return fmt.Sprintf("AgentSwitched{Turn:%d From:%s To:%s Reason:%s}", a.Turn, a.From, a.To, a.Reason)
	case SpeechStopped:
		line := fmt.Sprintf("SpeechStopped{Turn:%d AudioMS:%d}", a.Turn, a.AudioMS)
		if a.EndMS < 0 {
			line += " end=unknown"
		}
		return line
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "orchestrator.")
	}
}

// showAttempt prints the plan of another attempt.
func showAttempt(after time.Duration, other bool) string {
	line := ""
	if after > 0 {
		line += fmt.Sprintf(" after=%dms", after.Milliseconds())
	}
	if other {
		line += " other"
	}
	return line
}

// showMessage prints a message to the client about a call or a question.
func showMessage(m protocol.ServerMessage) string {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		return fmt.Sprintf("ToolStarted{Turn:%d Call:%s Tool:%s}", m.Turn, m.CallID, m.Tool)
	case *protocol.ToolProgress:
		return fmt.Sprintf("ToolProgress{Turn:%d Call:%s Tool:%s Running:%s}", m.Turn, m.CallID, m.Tool, time.Duration(m.DurationMS)*time.Millisecond)
	case *protocol.ConfirmationRequest:
		return fmt.Sprintf("ConfirmationRequest %d %s %s %s %q until=%d", m.Turn, m.Token, m.Tool, m.Args, m.Preview, m.ExpiresAt.Sub(epoch).Milliseconds())
	case *protocol.ConfirmationEnded:
		return fmt.Sprintf("ConfirmationEnded{Turn:%d Token:%s Tool:%s Outcome:%s}", m.Turn, m.Token, m.Tool, m.Outcome)
	default:
		return fmt.Sprintf("%T%+v", m, m)
	}
}

// showLatency prints the parts of the user's wait, with a detection if there was one.
func showLatency(l Latency) string {
	line := fmt.Sprintf(" latency=%dms", l.Total.Milliseconds())
	if l.Detection != 0 {
		line += fmt.Sprintf(" detection=%dms", l.Detection.Milliseconds())
	}
	return line + fmt.Sprintf(" provider=%dms gateway=%dms", l.Provider.Milliseconds(), l.Gateway.Milliseconds())
}

func showIntent(a IntentDecided) string {
	intent, err := json.Marshal(a.Intent)
	if err != nil {
		return "invalid IntentDecided: " + err.Error()
	}
	line := fmt.Sprintf("IntentDecided %d %s %s", a.Turn, intent, a.Phase)
	if a.Why != "" {
		return line + " refused: " + a.Why
	}
	return line + " applied"
}

func showCommand(cmd transport.Command) string {
	r, ok := cmd.(transport.ToolResult)
	if text, said := cmd.(transport.UserText); said {
		return strings.TrimSpace(fmt.Sprintf("> UserText{Text:%s} %s", text.Text, text.Overtakes))
	}
	if !ok {
		return fmt.Sprintf("> %s%+v", strings.TrimPrefix(fmt.Sprintf("%T", cmd), "transport."), cmd)
	}
	var env registry.Envelope
	if err := json.Unmarshal(r.Output, &env); err != nil {
		return "> invalid ToolResult: " + err.Error()
	}
	return strings.TrimSpace(fmt.Sprintf("> ToolResult %s %s %s", r.Call, showEnvelope(env), r.Scheduling))
}

// showEnvelope prints the main parts of an answer.
func showEnvelope(env registry.Envelope) string {
	s := "ok " + string(env.Data)
	if e := env.Error; e != nil {
		s = fmt.Sprintf("%s %q", e.Type, e.Message)
		if e.ConfirmationRequest != nil {
			s += " token=" + e.ConfirmationRequest.Token + " " + string(e.Details)
		}
		if e.PartialSideEffects {
			s += " partial"
		}
	}
	for _, i := range env.Intents {
		s += " intent=" + string(i.Type)
	}
	if env.Meta.Said != "" {
		s += fmt.Sprintf(" said=%q", env.Meta.Said)
	}
	s += showClamped(env.Meta.Clamped)
	if env.Meta.CacheHit {
		s += fmt.Sprintf(" cached=turn%d", env.Meta.OriginalTurn)
	}
	return s + showBudget(env.Meta.Budget)
}

// showClamped prints lowered arguments. Only two arguments of these tests can be lowered.
func showClamped(clamped map[string]registry.Clamped) string {
	var s string
	for _, name := range []string{"limit", "top_k"} {
		if c, ok := clamped[name]; ok {
			s += fmt.Sprintf(" clamped=%s:%s->%d", name, c.Requested, c.Applied)
		}
	}
	return s
}

// showBudget prints a budget: retrieval calls, all calls, and tool time if there is any.
func showBudget(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var b struct {
		Retrieval, Total struct{ Used, Limit int }
		ToolTime         struct{ Used, Limit int } `json:"tool_time_ms"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return " invalid budget: " + err.Error()
	}
	s := fmt.Sprintf(" budget=%d/%d,%d/%d", b.Retrieval.Used, b.Retrieval.Limit, b.Total.Used, b.Total.Limit)
	if b.ToolTime.Used > 0 {
		s += fmt.Sprintf(",%d/%dms", b.ToolTime.Used, b.ToolTime.Limit)
	}
	return s
}

// showRecord prints the fields of the audit that the actions do not show.
func showRecord(r audit.Record) string {
	s := fmt.Sprintf("Audit %s %d %s %s", r.Event, r.TurnID, r.CallID, r.ToolID)
	for _, f := range []struct{ name, value string }{
		{"error", string(r.ErrorType)}, {"confirmation", r.Confirmation}, {"by", r.ConfirmedBy}, {"ref", r.Reference},
		{"deed", r.BusinessKey}, {"not_delivered", r.NotDelivered}, {"why", r.Why}, {"claim", r.Claim},
	} {
		if f.value != "" {
			s += fmt.Sprintf(" %s=%s", f.name, f.value)
		}
	}
	if r.Again {
		s += " again"
	}
	if r.Event == audit.EventExact {
		s += fmt.Sprintf(" %s whole=%t heard=%d/%d tries=%d", r.Spoken, r.OK, r.HeardMS, r.LengthMS, r.Tries)
	}
	if len(r.Intents)+len(r.Refused) > 0 {
		s += fmt.Sprintf(" intents=%v refused=%v", r.Intents, r.Refused)
	}
	if r.CacheHit {
		s += fmt.Sprintf(" cached=turn%d", r.OriginalTurn)
	}
	return s + showClamped(r.Clamped) + showBudget(r.Budget)
}

// showView prints the state of a session: its turn, its phase, the flags that are set, and the counts above 0.
func showView(v View) string {
	s := fmt.Sprintf("turn=%d %s", v.Turn, v.Phase)
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"speaking", v.Speaking}, {"responding", v.Responding}, {"muted", v.Muted}, {"audio_off", v.AudioOff}, {"transcript_off", v.TranscriptOff},
	} {
		if f.on {
			s += " " + f.name
		}
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"awaiting", v.Awaiting}, {"questions", v.Questions}, {"notices", v.Notices}} {
		if f.n > 0 {
			s += fmt.Sprintf(" %s=%d", f.name, f.n)
		}
	}
	return s + showBudget(v.Budget())
}

func showAll(actions []Action) string {
	var out string
	for _, a := range actions {
		out += show(a) + "\n"
	}
	return out
}

// bare is an action without the wrapper of a call.
func bare(a Action) any {
	if about, ok := a.(AboutCall); ok {
		return about.Do
	}
	return a
}

// bareInput is an input without the wrapper of a call.
func bareInput(in Input) any {
	if of, ok := in.(OfCall); ok {
		return of.In
	}
	return in
}

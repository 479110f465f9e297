package execute

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

type rateKey struct{ user, tool string }

func rateKeyOf(t *registry.Tool, s registry.Session) rateKey {
	return rateKey{user: cmp.Or(s.UserID, s.ID), tool: t.ToolID}
}

// tooOften returns the answer to a call beyond its tool's rate limit; nil within it. It counts nothing.
func (e *Executor) tooOften(p *registry.Prepared, s registry.Session) *registry.Envelope {
	limit := p.Tool().RateLimit
	if limit == nil {
		return nil
	}
	wait := e.rates.Wait(rateKeyOf(p.Tool(), s), limit.Calls, limit.Within())
	if wait <= 0 {
		return nil
	}
	env := e.rateLimited(p, s, *limit, wait)
	return &env
}

// refused returns the answer to a call that could not run even with an approval; nil if it could. It counts nothing.
func (e *Executor) refused(j calls.Run, s registry.Session, c *Conversation) *registry.Envelope {
	p := j.Prepared
	if env := e.unavailable(p, s); env != nil {
		return env
	}
	if env := e.tooOften(p, s); env != nil {
		return env
	}
	why := e.noRoom(p, s, c, actionKey(j, s))
	if p.Tool().SideEffects == spec.SideEffectsWrites && e.opts.Ledger == nil {
		why = registry.NewError(registry.ErrorPermanent, prompts.NoLedger)
	}
	if why == nil {
		return nil
	}
	env := p.Refuse(why)
	return &env
}

func (e *Executor) unavailable(p *registry.Prepared, s registry.Session) *registry.Envelope {
	env := p.Unavailable(s)
	if env != nil {
		e.opts.Logger.Info("tool not available", "tool", p.Tool().ToolID, "session_id", s.ID, "details", string(env.Error.Details))
	}
	return env
}

func (e *Executor) rateLimited(p *registry.Prepared, s registry.Session, limit spec.RateLimit, wait time.Duration) registry.Envelope {
	seconds := int64(math.Ceil(wait.Seconds()))
	told := registry.NewError(registry.ErrorRateLimit, prompts.CalledTooOften(p.Tool().ToolID, limit.Calls, limit.Window,
		time.Duration(seconds)*time.Second))
	told.Details, _ = json.Marshal(struct { // only numbers and strings: it cannot fail
		Calls       int    `json:"calls"`
		Window      string `json:"window"`
		RetryAfterS int64  `json:"retry_after_s"`
		RetryAt     string `json:"retry_at"`
	}{limit.Calls, limit.Window, seconds, time.Now().Add(wait).UTC().Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339)})
	e.opts.Logger.Info("tool call over its rate limit", "tool", p.Tool().ToolID, "session_id", s.ID, "retry_after_s", seconds)
	return p.Refuse(told)
}

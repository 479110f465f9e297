package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// permit decides whether a tool may call another one; it returns when ctx is done, at the latest.
type permit func(ctx context.Context, in calls.Nested) calls.Permit

// callPath is a call's position among the calls that one call of the model has led to.
type callPath struct {
	// Never change.
	permit permit
	wait   *sync.WaitGroup // the conversation's
	root   string          // the model's call
	chain  []string        // the calling tools, outermost first
	count  *atomic.Int64   // nested calls of the model's call, including refused ones

	wrote atomic.Bool // a nested call has written
}

func outermost(j calls.Run, p permit, wait *sync.WaitGroup) *callPath {
	return &callPath{permit: p, wait: wait, root: j.Call, chain: []string{j.Prepared.Tool().ToolID}, count: new(atomic.Int64)}
}

func (n *callPath) within(tool string) *callPath {
	return &callPath{permit: n.permit, wait: n.wait, root: n.root, chain: append(slices.Clip(n.chain), tool), count: n.count}
}

type callEnv struct {
	e         *Executor
	path      *callPath
	run       calls.Run
	session   registry.Session
	c         *Conversation
	messenger *messenger
}

// toolbox implements registry.Tools for one attempt at a call. It is safe for concurrent use, even after the attempt.
type toolbox struct {
	*callEnv

	mu      sync.Mutex // guards the following fields
	over    bool
	made    map[string]int // counts the attempt's equal calls; nil before the first
	begun   int
	cancels map[int]context.CancelFunc // of running calls; nil before the first
}

// maxToolName limits the tool name that a handler may pass, in characters.
const maxToolName = 100

// Call implements registry.Tools.
func (t *toolbox) Call(ctx context.Context, tool string, args any) registry.Envelope {
	if r := []rune(tool); len(r) > maxToolName {
		tool = string(r[:maxToolName])
	}
	ctx, end, over := t.inside(ctx, tool)
	if over {
		return t.refuse(tool, registry.ErrorPermanent, prompts.NoNestedCalls(tool))
	}
	defer end()
	number := t.path.count.Add(1)
	j := calls.Run{Call: fmt.Sprintf("%s.%d", t.path.root, number), Turn: t.run.Turn, Reference: t.run.Reference}
	if args == nil {
		args = struct{}{}
	}
	raw, err := json.Marshal(args)
	var env registry.Envelope
	var budget json.RawMessage
	switch chain := t.path.chain; {
	case number > registry.MaxNested:
		env = t.refuse(tool, registry.ErrorPermanent, prompts.TooManyNested(tool, registry.MaxNested))
	case len(chain) >= registry.MaxDepth:
		env = t.refuse(tool, registry.ErrorPermanent, prompts.TooDeep(tool, registry.MaxDepth))
	case slices.Contains(chain, tool):
		env = t.refuse(tool, registry.ErrorPermanent, prompts.CallsItself(tool))
	case err != nil:
		env = t.refuse(tool, registry.ErrorInternal, prompts.FailedUnexpectedly(tool))
		t.e.opts.Logger.Error("arguments of a nested call are not JSON", "tool", tool, "caller", chain[len(chain)-1],
			"session_id", t.session.ID, "call_id", j.Call, "error", err)
	default:
		env, budget = t.permitted(ctx, &j, tool, raw)
	}
	if number <= registry.MaxNested+1 { // a handler in a loop does not fill the audit
		t.audited(j, tool, env, budget)
	}
	return env
}

func (t *toolbox) refuse(tool string, why registry.ErrorType, words prompts.Words) registry.Envelope {
	env := registry.NotFound(tool, t.run.Prepared.RegistryVersion(), 0)
	env.Error = registry.NewError(why, words)
	return env
}

func (t *toolbox) permitted(ctx context.Context, j *calls.Run, tool string, raw json.RawMessage) (registry.Envelope, json.RawMessage) {
	caller := t.run.Prepared.Tool()
	p := t.path.permit(ctx, calls.Nested{Call: t.path.root, Caller: caller.ToolID, ID: j.Call, Tool: tool, Args: raw})
	if p.Refused != nil {
		return *p.Refused, p.Budget
	}
	j.Prepared = p.Prepared
	writes := p.Prepared.Tool().SideEffects == spec.SideEffectsWrites
	if writes && caller.SideEffects != spec.SideEffectsWrites {
		return p.Prepared.Refuse(registry.NewError(registry.ErrorPermanent, prompts.CallerDoesNotWrite(tool, caller.ToolID))), p.Budget
	}
	t.setKeys(j)
	s := t.session
	s.Call, s.Now = j.Call, time.Now().UTC()
	at := t.path.within(tool)
	env, _ := t.e.run(ctx, *j, s, t.c, at)
	if at.wrote.Load() || writes && (env.OK || env.Error.PartialSideEffects) {
		t.path.wrote.Store(true)
	}
	return env, p.Budget
}

// setKeys derives a nested call's keys from the caller's, so that the ledger recognises the calls of a repeated caller.
func (t *toolbox) setKeys(j *calls.Run) {
	sum := sha256.Sum256(j.Prepared.Args())
	what := j.Prepared.Tool().ToolID + " " + hex.EncodeToString(sum[:16])
	t.mu.Lock()
	if t.made == nil {
		t.made = map[string]int{}
	}
	t.made[what]++
	what += " " + strconv.Itoa(t.made[what])
	t.mu.Unlock()
	j.Keys = calls.Keys{Idempotency: t.run.Keys.Idempotency + " > " + what, Business: j.Prepared.BusinessKey()}
	j.Message = actionKey(t.run, t.session) + " > " + what
}

// inside begins a nested call, which ends with ctx and with the attempt. end must be called, unless over.
func (t *toolbox) inside(ctx context.Context, tool string) (inside context.Context, end func(), over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return ctx, nil, true
	}
	ctx, cancel := context.WithCancel(ctx)
	if t.cancels == nil {
		t.cancels = map[int]context.CancelFunc{}
	}
	t.begun++
	n := t.begun
	t.cancels[n] = cancel
	leave, _ := t.e.enter(t.session.ID, tool) // the caller has entered
	t.path.wait.Add(1)
	return ctx, func() {
		cancel()
		t.mu.Lock()
		delete(t.cancels, n)
		t.mu.Unlock()
		leave()
		t.path.wait.Done()
	}, false
}

func (t *toolbox) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for _, cancel := range t.cancels {
		cancel()
	}
}

func (t *toolbox) audited(j calls.Run, tool string, env registry.Envelope, budget json.RawMessage) {
	if t.c.Audit == nil {
		return
	}
	r := audit.Call(time.Now(), audit.Record{
		Agent: t.session.Agent, ToolID: tool, Mode: t.session.Mode, TurnID: j.Turn,
		ToolCall: audit.ToolCall{CallID: j.Call, ParentCallID: t.run.Call,
			IdempotencyKey: j.Keys.Idempotency, BusinessKey: j.Keys.Business},
		Budget: budget, Refused: audit.IntentTypes(env.Intents), NotDelivered: "nested",
		Approval: audit.Approval{Reference: j.Reference},
	}, nil, env)
	if len(env.Intents) > 0 {
		r.Why = "a tool has called it"
	}
	r.ToolVersion, r.RegistryVersion = env.Meta.ToolVersion, env.Meta.RegistryVersion
	if j.Prepared != nil {
		r.Args, r.Category, r.ToolVariant = j.Prepared.Args(), j.Prepared.Tool().Category, j.Prepared.Tool().Variant()
	}
	t.c.Audit(r)
}

// asks is the permit of a running conversation: its Calls decide.
func (c *Runner) asks(ctx context.Context, in calls.Nested) calls.Permit {
	answer := make(chan calls.Permit, 1)
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]chan calls.Permit{}
	}
	c.asked[in.ID] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asked, in.ID)
	}()
	c.c.Report(in)
	select {
	case p := <-answer:
		return p
	case <-ctx.Done():
	case <-c.lasting().Done():
	}
	env := registry.NotFound(in.Tool, "", 0)
	env.Error = registry.NewError(registry.ErrorPermanent, prompts.NoNestedCalls(in.Tool))
	return calls.Permit{ID: in.ID, Refused: &env}
}

// Permit delivers the answer to a calls.Nested. It does not block.
func (c *Runner) Permit(p calls.Permit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[p.ID]; answer != nil {
		answer <- p // never blocks: the channel holds one, and each question has one answer
		delete(c.asked, p.ID)
	}
}

// storedPermit decides about nested calls of RunStored: by the tools' scopes, without a budget, with the call's
// approval.
func storedPermit(tools *registry.Snapshot, s registry.Session) permit {
	return func(_ context.Context, in calls.Nested) calls.Permit {
		p, refused := tools.Permitted(s.Scopes).Prepare(in.Tool, s.Mode, in.Args)
		if refused == nil {
			p.Clamp(nil)
			if p.Tool().ByClient() || in.Tool == spec.AgentSwitch {
				env := p.Refuse(registry.NewError(registry.ErrorPermanent, prompts.NotByTools(in.Tool)))
				refused = &env
			}
		}
		return calls.Permit{ID: in.ID, Prepared: p, Refused: refused}
	}
}

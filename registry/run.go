package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/registry/document"
)

const (
	// maxLeftBehind limits the abandoned handlers of a tool. Each holds a goroutine. Above the limit, calls are refused.
	maxLeftBehind = 64
	// maxIntents, maxMessage and maxDetailsBytes limit a handler's answer.
	maxIntents      = 8
	maxMessage      = 2000
	maxDetailsBytes = 64 << 10
)

// outcome is a handler's result in its final form, independent of the handler's memory.
type outcome struct {
	data     json.RawMessage
	intents  []Intent
	job      *BegunJob
	evidence []string
	err      error
	told     *Error // err for the model; nil if the handler returned another error
	// cancelled means that the caller cancelled the call.
	cancelled bool
	// unnamed means that err isn't a ToolError of the handler.
	unnamed bool
	// late means that the tool, or a service that it called, timed out.
	late bool
	// unbegun means that Execute was not called, so nothing has changed.
	unbegun bool
}

// Run executes the call and returns an envelope when TimeoutMS has passed or ctx is done at the latest. session.Mode
// is replaced by the call's mode. caps are the values of Options.SessionCapabilities and ModeCapabilities. A handler
// that ignores its deadline is abandoned: its result is dropped, and with 64 abandoned handlers the tool answers
// TRANSIENT. All timeouts are TRANSIENT. Calls, even of one Prepared, may run concurrently.
func (p *Prepared) Run(ctx context.Context, session Session, caps ...any) Envelope {
	s, start := p.snapshot, time.Now() // a call runs in the version with which it was prepared
	ctx, cancel := within(ctx, p.tool)
	defer cancel()
	o, left := s.vet(ctx, p, session, caps)
	if o.err == nil {
		o, left = s.handle(ctx, p, session, caps, p.tool.handler.run)
	}
	took := time.Since(start)
	env := p.envelope(o, took)
	env.Meta.LatencyBudgetExceeded = took > time.Duration(p.tool.LatencyBudgetMS)*time.Millisecond
	s.stats.ran(p.tool.counted(), took, env.Meta.LatencyBudgetExceeded)
	s.stats.done(p.tool.counted(), &env)
	s.log(ctx, p, session, &env, o, left)
	return env
}

// Check runs the tool's own check of the arguments, like Run. It returns the answer if the call is impossible,
// otherwise nil. It changes nothing, so it runs before a person is asked for approval.
func (p *Prepared) Check(ctx context.Context, session Session, caps ...any) *Envelope {
	if p.tool.handler.vet == nil {
		return nil
	}
	s, start := p.snapshot, time.Now()
	ctx, cancel := within(ctx, p.tool)
	defer cancel()
	o, left := s.vet(ctx, p, session, caps)
	if o.err == nil {
		return nil
	}
	env := p.envelope(o, time.Since(start))
	s.stats.done(p.tool.counted(), &env)
	s.log(ctx, p, session, &env, o, left)
	return &env
}

func (p *Prepared) envelope(o outcome, took time.Duration) Envelope {
	env := Envelope{Meta: p.snapshot.meta(p.tool, took)}
	env.Meta.Clamped, env.Meta.Invalid = maps.Clone(p.clamped), p.invalid
	if o.err != nil {
		env.Error, env.Unbegun = p.tool.told(o), o.harmless()
		return env
	}
	env.OK, env.Data, env.Intents, env.Evidence, env.Job = true, o.data, o.intents, o.evidence, o.job
	return env
}

func within(ctx context.Context, t *Tool) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Duration(t.TimeoutMS)*time.Millisecond, errDeadline)
}

func (s *Snapshot) vet(ctx context.Context, p *Prepared, session Session, caps []any) (o outcome, left bool) {
	if p.tool.handler.vet == nil {
		return outcome{}, false
	}
	o, left = s.handle(ctx, p, session, caps, p.tool.handler.vet)
	o.unbegun = true
	if o.told != nil {
		o.told.PartialSideEffects = false // a check changes nothing
		o.told.Retryable = o.told.Retryable || o.late
	}
	return o, left
}

// handle runs part of the handler in a new goroutine and waits for it, or for the end of ctx.
func (s *Snapshot) handle(ctx context.Context, p *Prepared, session Session, caps []any,
	part func(context.Context, invocation) (Result, error)) (o outcome, left bool) {
	needs, err := s.gather(p.tool.sources[p.mode], caps)
	if err != nil {
		return outcome{err: err}, false
	}
	if ctx.Err() != nil {
		return p.tool.notBegun(ctx), false
	}
	r := s.stats.begin(p.tool.counted())
	if r == nil {
		return outcome{err: errStuck, late: true, told: NewError(ErrorTransient, prompts.ToolHangs)}, false
	}
	session.Mode, session.ToolsVersion = p.mode, s.version
	in := invocation{args: p.args, needs: needs, session: session, tool: p.tool.ToolID, key: p.key,
		clamped: maps.Clone(p.clamped), invalid: p.invalid}
	if in.key == "" {
		in.key = p.BusinessKey()
	}
	done := make(chan outcome, 1) // from the handler's goroutine; not closed
	go func() {
		o := outcome{err: errGoexit}
		defer func() { // runs even if the handler ends its goroutine
			s.stats.end(r)
			done <- o
		}()
		o = s.call(ctx, p.tool, in, part)
	}()
	select {
	case o = <-done:
	case <-ctx.Done():
		if s.stats.leave(r) {
			return p.tool.stopped(ctx), true
		}
		o = <-done // ended at the same moment
	}
	return p.tool.late(ctx, o), false
}

func (t *Tool) late(ctx context.Context, o outcome) outcome {
	switch {
	case !o.unnamed:
	case ctx.Err() != nil:
		// Handlers report the end of their context in various ways; the model gets one error.
		stopped := t.stopped(ctx)
		stopped.err = fmt.Errorf("%w: %w", stopped.err, o.err)
		return stopped
	case o.late:
		o.told = NewError(ErrorTransient, prompts.AskedTooLong(t.ToolID))
		o.told.Retryable = t.MayRepeat()
	}
	return o
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func (t *Tool) notBegun(ctx context.Context) outcome {
	o := outcome{err: fmt.Errorf("%w: %w", errNotBegun, context.Cause(ctx))}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.late, o.told = true, NewError(ErrorTransient, prompts.NoTimeLeft(t.ToolID))
		return o
	}
	o.cancelled, o.told = true, NewError(ErrorInternal, prompts.CancelledBefore)
	return o
}

func (t *Tool) stopped(ctx context.Context) outcome {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limitMS := 0
		if errors.Is(cause, errDeadline) {
			limitMS = t.TimeoutMS
		}
		told := NewError(ErrorTransient, prompts.OutOfTime(t.ToolID, limitMS))
		told.Retryable = t.MayRepeat()
		return outcome{err: cause, late: true, told: told}
	}
	return outcome{cancelled: true, err: cause, told: NewError(ErrorInternal, prompts.CancelledMidway)}
}

// call runs part of the handler and converts its result, on the handler's goroutine, because encoding the result also
// runs its code.
func (s *Snapshot) call(ctx context.Context, t *Tool, in invocation, part func(context.Context, invocation) (Result, error)) (o outcome) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		o = outcome{err: fmt.Errorf("%w: %v", errPanic, cause)}
		s.opts.Logger.LogAttrs(ctx, slog.LevelError, "tool panicked",
			slog.String("tool", t.ToolID), slog.String("tool_version", t.Version), slog.String("registry_version", s.version),
			slog.String("session_id", in.session.ID), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
	}()
	result, err := part(ctx, in)
	if err != nil {
		return s.failed(ctx, t, err)
	}
	return s.succeeded(t, result)
}

func (s *Snapshot) succeeded(t *Tool, result Result) outcome {
	if _, check := result.Data.(passed); check {
		return outcome{}
	}
	data, err := document.Marshal(result.Data)
	if err != nil {
		return outcome{err: fmt.Errorf("%w: its data: %w", errBadResult, err)}
	}
	if len(data) > MaxDataBytes {
		return outcome{err: fmt.Errorf("%w: its data has %d bytes, at most %d are allowed", errBadResult, len(data), MaxDataBytes)}
	}
	if len(result.Intents) > maxIntents {
		return outcome{err: fmt.Errorf("%w: it has %d intents, at most %d are allowed", errBadResult, len(result.Intents), maxIntents)}
	}
	for _, intent := range result.Intents {
		if err := intent.check(); err != nil {
			return outcome{err: fmt.Errorf("%w: %w", errBadResult, err)}
		}
	}
	if result.Job != nil {
		job, err := t.begun(*result.Job, result.Data)
		return outcome{job: job, err: err, data: data, intents: append([]Intent{}, result.Intents...)}
	}
	data, broken := t.fitOutput(data)
	if broken != nil {
		return *broken
	}
	o := outcome{data: data, intents: append([]Intent{}, result.Intents...)}
	if found, ok := result.Data.(Evidenced); ok {
		ids := found.EvidenceIDs()
		o.evidence = slices.Clone(ids[:min(len(ids), MaxEvidence)])
	}
	return o
}

// failed converts a handler's error. A deadline that the handler calls INTERNAL counts as unnamed.
func (s *Snapshot) failed(ctx context.Context, t *Tool, err error) outcome {
	var named *ToolError
	late := isTimeout(err)
	if !errors.As(err, &named) || named == nil || !slices.Contains(ErrorTypes(), named.Type) || late && named.Type == ErrorInternal {
		return outcome{err: err, unnamed: true, late: late}
	}
	told := &Error{
		Type: named.Type, Message: document.Shorten(named.Message, maxMessage), Retryable: named.Retryable,
		PartialSideEffects: named.PartialSideEffects, Repeatable: named.Repeatable,
		Suggestion: document.Shorten(named.Suggestion, maxMessage),
	}
	if told.Message == "" {
		told.Message = prompts.Failed(t.ToolID)
	}
	if named.Details != nil {
		details, err := document.Marshal(named.Details)
		if err == nil && len(details) > maxDetailsBytes {
			err = fmt.Errorf("they have %d bytes, at most %d are allowed", len(details), maxDetailsBytes)
		}
		if err != nil {
			s.opts.Logger.LogAttrs(ctx, slog.LevelError, "tool error without its details", slog.String("tool", t.ToolID),
				slog.Any("error", err))
		} else {
			told.Details = details
		}
	}
	return outcome{err: err, told: told}
}

// told returns the error for the model. Only the log gets the text of an unnamed error.
func (t *Tool) told(o outcome) *Error {
	e := o.told
	if e == nil {
		e = NewError(ErrorInternal, prompts.FailedUnexpectedly(t.ToolID))
	}
	if !t.Writes() {
		return e
	}
	if (e.Type == ErrorInternal || o.late) && !o.harmless() {
		e.PartialSideEffects = true
	}
	if !t.Idempotent && (e.Retryable || e.PartialSideEffects) {
		e.IdempotencyRequired = true
	}
	return e
}

func (o outcome) harmless() bool {
	return o.unbegun || errors.Is(o.err, errStuck) || errors.Is(o.err, errMissingCapability) || errors.Is(o.err, errNotBegun)
}

func (s *Snapshot) log(ctx context.Context, p *Prepared, session Session, env *Envelope, o outcome, left bool) {
	err := o.err
	level, event := slog.LevelWarn, "tool over its latency budget"
	switch {
	// The user interrupted: not a failure, unless the work may be half done.
	case o.cancelled && !env.Error.PartialSideEffects:
		level, event = slog.LevelInfo, "tool cancelled"
	case o.late:
		event = "tool out of time"
	case err != nil && env.Error.Type == ErrorInternal:
		level, event = slog.LevelError, "tool failed"
	case !env.Meta.LatencyBudgetExceeded:
		return
	}
	attrs := []slog.Attr{
		slog.String("tool", p.tool.ToolID), slog.String("tool_version", p.tool.Version), slog.String("registry_version", s.version),
		slog.String("session_id", session.ID), slog.Int64("duration_ms", env.Meta.DurationMS),
		slog.Int("latency_budget_ms", p.tool.LatencyBudgetMS),
	}
	if err != nil && (o.late || env.Error.Type == ErrorInternal) {
		attrs = append(attrs, slog.Any("error", err), slog.Bool("left_behind", left))
	}
	s.opts.Logger.LogAttrs(ctx, level, event, attrs...)
}

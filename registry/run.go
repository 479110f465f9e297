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
	"voicegw/registry/spec"
)

const (
	// maxLeftBehind is how many handlers of one tool may run on after their deadline
	// before calls of that tool are refused: each holds a goroutine.
	maxLeftBehind = 64
	// maxIntents, maxMessage and maxDetailsBytes bound a handler's answer.
	maxIntents      = 8
	maxMessage      = 2000
	maxDetailsBytes = 64 << 10
)

// outcome is the result of a handler in its final form: once it is made, nothing that
// belongs to the handler is touched again.
type outcome struct {
	data     json.RawMessage
	intents  []Intent
	job      *BegunJob
	evidence []string
	err      error
	told     *Error // err as the model gets it; nil if the handler did not name it
	// cancelled says that the caller caused err: the result is no longer wanted.
	cancelled bool
	// unnamed says that the handler returned err without naming it.
	unnamed bool
	// late says that the tool, or a service it called, ran out of time.
	late bool
	// unbegun says that the handler's Execute was not called: nothing has been changed.
	unbegun bool
}

// Run executes the call and always returns an envelope, at the latest when the tool's
// TimeoutMS has passed or ctx is done. session.Mode is replaced by the mode for which the
// call was prepared. caps are the values of Options.SessionCapabilities and of the mode's
// capabilities. A handler that does not return by then is left behind: it keeps its goroutine,
// its result is dropped, and when 64 of them are left behind the tool answers TRANSIENT. A
// deadline is TRANSIENT, whether or not the handler obeys it, and whoever set it. Calls, also
// of one Prepared, may run concurrently.
func (p *Prepared) Run(ctx context.Context, session Session, caps ...any) Envelope {
	s, start := p.snapshot, time.Now() // a call always runs in the version with which it was prepared
	ctx, cancel := within(ctx, p.tool)
	defer cancel()
	o, left := s.vet(ctx, p, session, caps)
	if o.err == nil {
		o, left = s.handle(ctx, p, session, caps, p.tool.handler.run)
	}
	took := time.Since(start)
	env := Envelope{Meta: s.meta(p.tool, took)}
	env.Meta.Clamped, env.Meta.Invalid = maps.Clone(p.clamped), p.invalid
	env.Meta.LatencyBudgetExceeded = took > time.Duration(p.tool.LatencyBudgetMS)*time.Millisecond
	if o.err == nil {
		env.OK, env.Data, env.Intents, env.Evidence, env.Job = true, o.data, o.intents, o.evidence, o.job
	} else {
		env.Error, env.Unbegun = p.tool.told(o), o.harmless()
	}
	s.stats.ran(p.tool.counted(), took, env.Meta.LatencyBudgetExceeded)
	s.stats.done(p.tool.counted(), &env)
	s.log(ctx, p, session, &env, o, left)
	return env
}

// Check runs the tool's own check of its arguments, where it has one, as [Prepared.Run]
// runs a handler. It returns the answer to a call that cannot be done, and nil where
// nothing is known against it. It changes nothing, so it is asked before a person is.
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
	env := Envelope{Error: p.tool.told(o), Meta: s.meta(p.tool, time.Since(start))}
	env.Meta.Clamped, env.Meta.Invalid = maps.Clone(p.clamped), p.invalid
	s.stats.done(p.tool.counted(), &env)
	s.log(ctx, p, session, &env, o, left)
	return &env
}

// within bounds a call by its tool's timeout.
func within(ctx context.Context, t *Tool) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Duration(t.TimeoutMS)*time.Millisecond, errDeadline)
}

// vet returns the outcome of the tool's own check; a tool without one passes.
func (s *Snapshot) vet(ctx context.Context, p *Prepared, session Session, caps []any) (o outcome, left bool) {
	if p.tool.handler.vet == nil {
		return outcome{}, false
	}
	o, left = s.handle(ctx, p, session, caps, p.tool.handler.vet)
	o.unbegun = true
	if o.told != nil {
		o.told.PartialSideEffects = false // whatever the error claims: a check changes nothing
		o.told.Retryable = o.told.Retryable || o.late
	}
	return o, left
}

// handle runs a part of the handler in its own goroutine and waits for it or for the end of
// ctx.
func (s *Snapshot) handle(ctx context.Context, p *Prepared, session Session, caps []any, part func(context.Context, invocation) (Result, error)) (o outcome, left bool) {
	needs, err := gather(p.tool.sources[p.mode], caps)
	if err != nil {
		return outcome{err: err}, false
	}
	if ctx.Err() != nil {
		return p.tool.notBegun(ctx), false
	}
	r := s.stats.begin(p.tool.counted())
	if r == nil {
		return outcome{err: errStuck, late: true, told: NewError(ErrorTransient, prompts.ToolHangs())}, false
	}
	session.Mode, session.ToolsVersion = p.mode, s.version
	in := invocation{args: p.args, needs: needs, session: session, tool: p.tool.ToolID, key: p.key, clamped: maps.Clone(p.clamped), invalid: p.invalid}
	if in.key == "" {
		in.key = p.BusinessKey()
	}
	done := make(chan outcome, 1) // from the handler's goroutine to this one; not closed
	go func() {
		o := outcome{err: errGoexit}
		defer func() { // also if the handler ends the goroutine
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
		o = <-done // it has ended at the same moment
	}
	return p.tool.late(ctx, o), false
}

// late turns a handler's error into a deadline error if it is one. An error that the handler
// has named stays as it is.
func (t *Tool) late(ctx context.Context, o outcome) outcome {
	switch {
	case !o.unnamed:
	case ctx.Err() != nil:
		// A handler that obeys its context reports that in many ways; to the model they are the same.
		stopped := t.stopped(ctx)
		stopped.err = fmt.Errorf("%w: %w", stopped.err, o.err)
		return stopped
	case o.late:
		o.told = NewError(ErrorTransient, prompts.AskedTooLong(t.ToolID))
		o.told.Retryable = t.mayRepeat()
	}
	return o
}

// isTimeout reports whether err is a deadline: of a context, of a connection or file, or of
// an HTTP client, whose errors have a method Timeout.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// mayRepeat reports whether calling the tool again does no harm, whatever the first call did.
func (t *Tool) mayRepeat() bool { return t.Idempotent || t.SideEffects != spec.SideEffectsWrites }

// notBegun is the outcome of a call whose context was done before its handler began.
func (t *Tool) notBegun(ctx context.Context) outcome {
	o := outcome{err: fmt.Errorf("%w: %w", errNotBegun, context.Cause(ctx))}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.late, o.told = true, NewError(ErrorTransient, prompts.NoTimeLeft(t.ToolID))
		return o
	}
	o.cancelled, o.told = true, NewError(ErrorInternal, prompts.CancelledBefore())
	return o
}

// stopped is the outcome of a call whose context is done.
func (t *Tool) stopped(ctx context.Context) outcome {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limitMS := 0
		if errors.Is(cause, errDeadline) {
			limitMS = t.TimeoutMS
		}
		told := NewError(ErrorTransient, prompts.OutOfTime(t.ToolID, limitMS))
		told.Retryable = t.mayRepeat()
		return outcome{err: cause, late: true, told: told}
	}
	return outcome{cancelled: true, err: cause, told: NewError(ErrorInternal, prompts.CancelledMidway())}
}

// call runs a part of the handler and puts its result into its final form. It runs on the
// handler's goroutine, because encoding the result runs code of the handler as well.
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

// failed takes a handler's error apart. A deadline that the handler calls INTERNAL counts as
// unnamed.
func (s *Snapshot) failed(ctx context.Context, t *Tool, err error) outcome {
	var named *ToolError
	late := isTimeout(err)
	if !errors.As(err, &named) || named == nil || !slices.Contains(ErrorTypes(), named.Type) || late && named.Type == ErrorInternal {
		return outcome{err: err, unnamed: true, late: late}
	}
	told := &Error{
		Type: named.Type, Message: document.Shorten(named.Message, maxMessage), Retryable: named.Retryable,
		PartialSideEffects: named.PartialSideEffects, Repeatable: named.Repeatable, Suggestion: document.Shorten(named.Suggestion, maxMessage),
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
			s.opts.Logger.LogAttrs(ctx, slog.LevelError, "tool error without its details", slog.String("tool", t.ToolID), slog.Any("error", err))
		} else {
			told.Details = details
		}
	}
	return outcome{err: err, told: told}
}

// told returns the error as the model gets it. The text of an error that the handler
// did not name appears only in the log.
func (t *Tool) told(o outcome) *Error {
	e := o.told
	if e == nil {
		e = NewError(ErrorInternal, prompts.FailedUnexpectedly(t.ToolID))
	}
	if t.SideEffects != spec.SideEffectsWrites {
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

// harmless says that the handler's Execute was never begun.
func (o outcome) harmless() bool {
	return o.unbegun || errors.Is(o.err, errStuck) || errors.Is(o.err, errMissingCapability) || errors.Is(o.err, errNotBegun)
}

func (s *Snapshot) log(ctx context.Context, p *Prepared, session Session, env *Envelope, o outcome, left bool) {
	err := o.err
	level, message := slog.LevelWarn, "tool over its latency budget"
	switch {
	// The user went on speaking: the tool did not fail, unless its work may be half done.
	case o.cancelled && !env.Error.PartialSideEffects:
		level, message = slog.LevelInfo, "tool cancelled"
	case o.late:
		message = "tool out of time"
	case err != nil && env.Error.Type == ErrorInternal:
		level, message = slog.LevelError, "tool failed"
	case !env.Meta.LatencyBudgetExceeded:
		return
	}
	attrs := []slog.Attr{
		slog.String("tool", p.tool.ToolID), slog.String("tool_version", p.tool.Version), slog.String("registry_version", s.version),
		slog.String("session_id", session.ID), slog.Int64("duration_ms", env.Meta.DurationMS), slog.Int("latency_budget_ms", p.tool.LatencyBudgetMS),
	}
	if err != nil && (o.late || env.Error.Type == ErrorInternal) {
		attrs = append(attrs, slog.Any("error", err), slog.Bool("left_behind", left))
	}
	s.opts.Logger.LogAttrs(ctx, level, message, attrs...)
}

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// Limits of a job, in bytes of JSON.
const (
	MaxJobPayload = 32 << 10
	MaxJobData    = 64 << 10
)

// NewJob requests a background job. Execute returns it without having side effects.
type NewJob struct {
	// Payload is everything that Work needs, at any time and in any process. It is stored as JSON of at most
	// MaxJobPayload bytes, so it must not contain secrets.
	Payload any
	Told    string
}

// BegunJob is a NewJob with its payload encoded.
type BegunJob struct {
	Payload json.RawMessage
	Told    string
}

// Work is the input of a tool's Work function, which runs a background job. P is the tool's Payload, N its Needs.
// Capabilities of a conversation, such as a [Gallery], are missing, and [Messenger] does nothing.
type Work[P, N any] struct {
	Payload   P
	Needs     N
	Session   Session
	Tool, Job string
	// Attempt counts from 1. Another one follows if the process has died or the error was repeatable.
	Attempt int
	// IdempotencyKey is unique to the job and equal in all attempts: pass it to the system that the job writes to, so
	// that attempts have a single effect.
	IdempotencyKey string
}

// BindWork adds the tool's Work function to its handler. encoding/json must encode and decode P. N must be Execute's
// type of Needs.
func BindWork[P, N any](h Handler, work func(context.Context, Work[P, N]) (Result, error)) Handler {
	h.workNeeds = reflect.TypeFor[N]()
	h.readable = func(payload json.RawMessage) error { return json.Unmarshal(payload, new(P)) }
	if work == nil {
		return h
	}
	h.work = func(ctx context.Context, in invocation, job string, attempt int) (Result, error) {
		w := Work[P, N]{Session: in.session, Tool: in.tool, Job: job, Attempt: attempt, IdempotencyKey: in.key}
		if err := json.Unmarshal(in.args, &w.Payload); err != nil {
			words := prompts.JobOfAnotherVersion(in.tool)
			return Result{}, &ToolError{Type: ErrorPermanent, Message: words.Message, Suggestion: words.Suggestion, Err: err}
		}
		setNeeds(&w.Needs, in.needs)
		return work(ctx, w)
	}
	return h
}

func setNeeds(needs any, values []reflect.Value) {
	fields := reflect.ValueOf(needs).Elem()
	for i, v := range values {
		if v.IsValid() {
			fields.Field(i).Set(v)
		}
	}
}

func (t *Tool) checkWork() (problems []string) {
	h := t.handler
	switch {
	case t.Job == nil && h.work == nil:
		return nil
	case t.Job == nil:
		return []string{"The handler has a function Work, but schema.json declares no \"job\": add it, or remove the function."}
	case h.work == nil:
		return []string{"schema.json declares a \"job\", but the handler has no function Work: write it, run `voicegw tools " +
			"build` and build the program again."}
	case h.workNeeds != h.needs:
		return []string{fmt.Sprintf("Execute needs %s and Work needs %s: both must have the same type.", h.needs, h.workNeeds)}
	}
	for _, mode := range t.AllowedModes {
		for i, s := range t.sources[mode] {
			if s.perCall != nil && s.optional == nil && !slices.Contains(CallCapabilities(), s.perCall) {
				field := h.needs.Field(i)
				problems = append(problems, fmt.Sprintf("The handler needs %s (%s), which belongs to one conversation, and "+
					"Work runs without one: make it a registry.Optional.", field.Name, field.Type))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

func (t *Tool) begun(job NewJob, data any) (*BegunJob, error) {
	switch {
	case t.Job == nil:
		return nil, fmt.Errorf("%w: it begins a job, but schema.json declares none", errBadResult)
	case data != nil:
		return nil, fmt.Errorf("%w: it has data and a job; put the text for now into Told", errBadResult)
	case strings.TrimSpace(job.Told) == "" || utf8.RuneCountInString(job.Told) > maxMessage:
		return nil, fmt.Errorf("%w: the Told of its job must have 1 to %d characters", errBadResult, maxMessage)
	}
	payload, err := document.Marshal(job.Payload)
	if err == nil {
		err = t.handler.readable(payload)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the payload of its job: %w", errBadResult, err)
	}
	if len(payload) > MaxJobPayload {
		return nil, fmt.Errorf("%w: the payload of its job has %d bytes, at most %d are allowed", errBadResult, len(payload), MaxJobPayload)
	}
	return &BegunJob{Payload: payload, Told: job.Told}, nil
}

var errJobTime = errors.New("the job took longer than its schema.json allows")

// JobRun is an attempt at a job.
type JobRun struct {
	// ID and Tool are the ids of the job and its tool; Attempt counts from 1.
	ID, Tool string
	Attempt  int
	Payload  json.RawMessage
	Key      string
	Session  Session
}

// Work makes one attempt at a job and always returns an envelope, at the latest when the longest time that
// the tool allows has passed or ctx is done. caps are the values of [CallCapabilities]. A tool that is not
// there any more, or has no long work, is NOT_FOUND. As in [Prepared.Run], a handler that does not return is
// left behind.
func (s *Snapshot) Work(ctx context.Context, run JobRun, caps ...any) Envelope {
	start := time.Now()
	t, ok := s.tools[run.Tool]
	if !ok || t.Job == nil || !t.Allows(run.Session.Mode) {
		return NotFound(document.Shorten(run.Tool, 100), s.version, time.Since(start))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.Job.Within(), errJobTime)
	defer cancel()
	p := &Prepared{tool: t, snapshot: s, mode: run.Session.Mode, args: run.Payload, key: run.Key}
	o, left := s.handle(ctx, p, run.Session, caps, func(ctx context.Context, in invocation) (Result, error) {
		return t.handler.work(ctx, in, run.ID, run.Attempt)
	})
	if o.err == nil {
		if err := o.ofWork(); err != nil {
			o = outcome{err: err}
		}
	}
	if o.late && errors.Is(o.err, errJobTime) {
		o.told = NewError(ErrorPermanent, prompts.JobOutOfTime(t.ToolID, t.Job.Longest))
		o.told.PartialSideEffects = t.Writes()
	}
	env := p.envelope(o, time.Since(start))
	s.log(ctx, p, run.Session, &env, o, left)
	return env
}

func (o outcome) ofWork() error {
	switch {
	case o.job != nil:
		return fmt.Errorf("%w: Work begins another job", errBadResult)
	case len(o.intents) > 0:
		return fmt.Errorf("%w: Work has intents, and no session to which they apply", errBadResult)
	case len(o.data) > MaxJobData:
		return fmt.Errorf("%w: the data of Work has %d bytes, at most %d are kept", errBadResult, len(o.data), MaxJobData)
	}
	return nil
}

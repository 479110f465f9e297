package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

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
		o.told.PartialSideEffects = t.SideEffects == spec.SideEffectsWrites
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

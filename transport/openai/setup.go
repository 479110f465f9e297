package openai

import (
	"cmp"
	"context"
	"slices"
	"time"

	"voicegw/transport"
)

// maxSetupEvents bounds how many events may come before the setup is answered.
const maxSetupEvents = 1000

// setUp waits for session.created, sends update and waits for session.updated. ctx
// limits all of it.
func (c *conn) setUp(ctx context.Context, update []byte) *transport.Error {
	late := func() *transport.Error { return c.fault("setup", contextKind(ctx), "", ctx.Err()) }
	stop := c.watch(ctx, late)
	err := c.exchange(update)
	if !stop() {
		return late()
	}
	return err
}

func (c *conn) exchange(update []byte) *transport.Error {
	if err := c.await(c.updated, typeSessionCreated); err != nil {
		return err
	}
	writeErr := c.write(update)
	err := c.await(c.updated, typeSessionUpdated) // even after a failed write: the read finds the reason
	if err == nil && writeErr != nil {
		return c.readError("setup", writeErr)
	}
	return err
}

// await reads events of the types that are wanted, until one is the last that was waited for. An error event is
// returned as the error.
func (c *conn) await(last func(eventType string, frame []byte) bool, wanted ...string) *transport.Error {
	defer c.releaseFrame()
	for range maxSetupEvents {
		frame, err := c.readFrame()
		if err != nil {
			return c.readError("setup", err)
		}
		switch eventType := c.typeOf(frame); {
		case slices.Contains(wanted, eventType):
			if last(eventType, frame) {
				return nil
			}
		case eventType == typeError:
			var ev event
			if c.parse(typeError, frame, &ev) {
				return c.setupRefused(&ev.Error)
			}
		case eventType == "":
			c.malformed.Add(1)
		}
	}
	return c.fault("setup", transport.KindRetry, "", errTooMany)
}

// updated takes over a session.created or session.updated.
func (c *conn) updated(eventType string, frame []byte) bool {
	var ev sessionEvent
	if !c.parse(eventType, frame, &ev) {
		return false
	}
	c.adopt(&ev)
	return true
}

// adopt takes over what the server reports about the session.
func (c *conn) adopt(ev *sessionEvent) {
	s := &ev.Session
	if s.ID != "" {
		c.info.SessionID = s.ID
	}
	if s.Model != "" {
		c.info.Model = s.Model
	}
	if s.ExpiresAt > 0 {
		c.info.ExpiresAt = time.Unix(s.ExpiresAt, 0).UTC()
	}
	if ms := cmp.Or(s.Audio.Input.TurnDetection.SilenceMS, s.TurnDetection.SilenceMS); ms != nil {
		c.silenceMS = max(*ms, 0)
	}
}

// setupRefused classifies an error event that comes during the setup. If its code is not
// retryable, the setup will not be accepted next time either, unless the server
// reports that the fault is its own.
func (c *conn) setupRefused(e *errorValue) *transport.Error {
	kind := transport.KindInvalid
	if row, ok := errorRows[e.Code]; ok && row.fatal {
		kind = row.kind
	} else if e.Code == "rate_limit_exceeded" || e.Type == "server_error" {
		kind = transport.KindRetry
	}
	return c.fault("setup", kind, e.Code, c.providerText(e.Type, e.Message, e.Param))
}

package openai

import (
	"cmp"
	"context"
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
	if err := c.await(typeSessionCreated); err != nil {
		return err
	}
	writeErr := c.write(update)
	err := c.await(typeSessionUpdated) // even after a failed write: the read finds the reason
	if err == nil && writeErr != nil {
		return c.readError("setup", writeErr)
	}
	return err
}

// await reads until an event of type want has come; an error event is returned as the error.
func (c *conn) await(want string) *transport.Error {
	defer c.releaseFrame()
	for range maxSetupEvents {
		frame, err := c.readFrame()
		if err != nil {
			return c.readError("setup", err)
		}
		switch c.typeOf(frame) {
		case want:
			var ev sessionEvent
			if !c.parse(want, frame, &ev) {
				continue
			}
			c.adopt(&ev)
			return nil
		case typeError:
			var ev event
			if !c.parse(typeError, frame, &ev) {
				continue
			}
			return c.setupRefused(&ev.Error)
		case "":
			c.malformed.Add(1)
		}
	}
	return c.fault("setup", transport.KindRetry, "", errTooMany)
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

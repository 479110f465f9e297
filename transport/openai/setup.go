package openai

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/transport"
)

// maxSetupEvents bounds how many events may come before the setup is answered.
const maxSetupEvents = 1000

// setUp waits for session.created, sends update and waits for session.updated. ctx limits all of it.
func (c *conn) setUp(ctx context.Context, update []byte) *transport.Error {
	late := func() *transport.Error {
		awaited := *c.awaited.Load()
		return c.t.fault("setup", contextKind(ctx), "no_"+strings.ReplaceAll(awaited, ".", "_"),
			fmt.Errorf("the provider did not send %s in time: %w", awaited, ctx.Err()))
	}
	c.awaits(typeSessionCreated)
	stop := c.watch(ctx, late)
	err := c.exchange(update)
	if !stop() {
		return late()
	}
	return err
}

func (c *conn) awaits(event string) { c.awaited.Store(&event) }

func (c *conn) exchange(update []byte) *transport.Error {
	if err := c.await(c.updated, typeSessionCreated); err != nil {
		return err
	}
	c.awaits(typeSessionUpdated)
	writeErr := c.write(update)
	var announced sessionEvent
	err := c.await(func(eventType string, frame []byte) bool {
		ok := c.parse(eventType, frame, &announced)
		if ok {
			c.adopt(&announced)
		}
		return ok
	}, typeSessionUpdated) // even after a failed write: the read finds the reason
	if err == nil && writeErr != nil {
		return c.readError("setup", writeErr)
	}
	if err != nil {
		return err
	}
	return c.soundsAs(&announced)
}

// codeAudioFormat is the code of a failure about an announced format of audio.
const codeAudioFormat = "audio_format"

func (c *conn) soundsAs(ev *sessionEvent) *transport.Error {
	in, out, err := ev.rates(sampleRate, sampleRate)
	if err != nil {
		return c.t.fault("setup", transport.KindInvalid, codeAudioFormat, err)
	}
	c.info.InputRate, c.info.OutputRate = in, out
	c.speech.rate, c.speech.announced = out, out
	return nil
}

// rates returns the server's rates in Hz; in and out are their defaults.
func (ev *sessionEvent) rates(in, out int) (inHz, outHz int, err error) {
	s := &ev.Session
	if inHz, err = cmp.Or(s.Audio.Input.Format, s.InputFormat).hz(in); err != nil {
		return 0, 0, fmt.Errorf("%w, for the user's speech", err)
	}
	if outHz, err = cmp.Or(s.Audio.Output.Format, s.OutputFormat).hz(out); err != nil {
		return 0, 0, fmt.Errorf("%w, for the model's speech", err)
	}
	return inHz, outHz, nil
}

// await reads events until last returns true for a wanted one. An error event is returned as the error.
func (c *conn) await(last func(eventType string, frame []byte) bool, wanted ...string) *transport.Error {
	defer c.speech.release()
	for range maxSetupEvents {
		frame, err := c.readFrame()
		if err != nil {
			return c.readError("setup", fmt.Errorf("the connection ended before %s: %w", wanted[0], err))
		}
		switch eventType := typeOf(frame); {
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
	return c.t.fault("setup", transport.KindTimeout, "no_"+strings.ReplaceAll(wanted[0], ".", "_"),
		fmt.Errorf("%w: %s is missing", errTooMany, wanted[0]))
}

func (c *conn) updated(eventType string, frame []byte) bool {
	var ev sessionEvent
	if !c.parse(eventType, frame, &ev) {
		return false
	}
	c.adopt(&ev)
	return true
}

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

// An unknown code means that the setup will not be accepted next time either.
func (c *conn) setupRefused(e *errorValue) *transport.Error {
	kind := transport.KindOfCode(e.Code, e.Type)
	if kind == 0 {
		kind = transport.KindInvalid
	}
	return c.t.reported("setup", kind, e)
}

func (t *Transport) reported(op string, kind transport.Kind, e *errorValue) *transport.Error {
	err := t.fault(op, kind, e.Code, t.providerText(e.Type, e.Message, e.Param))
	err.RetryAfter = transport.WaitIn(e.Message)
	return err
}

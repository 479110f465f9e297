package openai

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"voicegw/audio"
	"voicegw/transport"
)

// Send implements transport.Conn. A failed write does not hide why the provider
// closed: Recv still reads what had arrived and returns the reason.
func (c *conn) Send(ctx context.Context, cmd transport.Command) error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	stop := c.watchUse(ctx, "send")
	var err error
	if a, ok := cmd.(*transport.AudioIn); ok && a != nil {
		err = c.sendAudio(a.PCM)
	} else {
		err = c.sendControl(cmd)
	}
	stop()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCommand), errors.Is(err, errEncode):
		return c.t.fault("send", transport.KindInvalid, "", err)
	}
	return c.readError("send", err)
}

func (c *conn) sendControl(cmd transport.Command) error {
	switch cmd := cmd.(type) {
	case transport.AudioPause:
		return c.pause()
	case transport.UserText:
		return c.sendText(cmd.Text)
	case transport.ActivityStart:
		return c.startActivity()
	case transport.ActivityEnd:
		return c.endActivity(cmd)
	case transport.Interrupt:
		return c.cancel()
	case transport.Image:
		return c.sendImage(cmd)
	case transport.Truncate:
		return c.truncate(cmd)
	case transport.ToolResult:
		return c.sendResult(cmd)
	case transport.Respond:
		return c.respond(request{toolsOff: cmd.ToolsOff, instructions: cmd.Instructions})
	case transport.Reconfigure:
		return c.reconfigure(cmd)
	case transport.AddItem:
		return c.addItem(cmd)
	default:
		return fmt.Errorf("%w: %T", errCommand, cmd)
	}
}

func (c *conn) eventID(op string) string {
	c.upEvents++
	return op + "_" + strconv.Itoa(c.upEvents)
}

func (c *conn) writeFrame(frame []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errEncode, err)
	}
	return c.write(frame)
}

func (c *conn) sendText(text string) error {
	if err := c.cancel(); err != nil {
		return err
	}
	c.changed()
	if err := c.writeFrame(textFrame(c.eventID(opItem), text)); err != nil {
		return err
	}
	return c.respond(request{})
}

// sendImage adds a still image to the conversation. No answer is requested.
func (c *conn) sendImage(image transport.Image) error {
	if !c.info.Capabilities.Images {
		return nil
	}
	return c.writeFrame(imageFrame(c.eventID(opItem), image))
}

// startActivity begins a turn that the caller marks: the running answer stops, and
// earlier audio does not count as the user's speech.
func (c *conn) startActivity() error {
	if !c.manual {
		return nil
	}
	if err := c.cancel(); err != nil {
		return err
	}
	c.sent.buffered = 0
	return c.writeFrame(clearFrame(c.eventID(opBuffer)))
}

// endActivity commits the turn, or drops it if it is empty: the provider refuses to commit less than 100 ms of audio.
func (c *conn) endActivity(cmd transport.ActivityEnd) error {
	if !c.manual {
		return nil
	}
	enough := audio.MS(c.info.InputRate, int(c.sent.buffered)) >= minCommitMS
	c.sent.buffered = 0
	if cmd.Empty || !enough {
		return c.writeFrame(clearFrame(c.eventID(opBuffer)))
	}
	c.changed()
	if err := c.writeFrame(commitFrame(c.eventID(opBuffer))); err != nil {
		return err
	}
	return c.respond(request{})
}

// minCommitMS is the shortest audio that the provider commits.
const minCommitMS = 100

func (c *conn) cancel() error {
	c.mu.Lock()
	id, running := c.seq.withdraw(time.Now())
	c.rearm()
	c.mu.Unlock()
	if !running || !c.info.Capabilities.Cancel {
		return nil
	}
	return c.writeFrame(cancelFrame(c.eventID(opCancel), id))
}

func (c *conn) truncate(cmd transport.Truncate) error {
	c.mu.Lock()
	ms, ok := c.items.audible(cmd.Item, cmd.AudioMS)
	c.mu.Unlock()
	if !ok || !c.info.Capabilities.Truncate {
		return nil
	}
	c.truncates.Add(1)
	return c.writeFrame(truncateFrame(c.eventID(opTruncate), cmd.Item, ms))
}

// sendResult answers a call. A result for a call that is not open (answered already, or
// unknown) is dropped: the provider would refuse a second output.
func (c *conn) sendResult(cmd transport.ToolResult) error {
	c.mu.Lock()
	id, ok := c.calls.take(cmd.Call)
	c.mu.Unlock()
	if !ok {
		c.log.Warn("tool_result_dropped", "provider", c.info.Provider, "call", cmd.Call, "reason", "no open call has that name")
		return nil
	}
	c.changed()
	return c.writeFrame(resultFrame(c.eventID(opResult), id, cmd.Output))
}

func (c *conn) respond(r request) error {
	c.mu.Lock()
	send := c.seq.ask(r, time.Now(), c.progress.Load())
	c.rearm()
	c.mu.Unlock()
	if send == nil {
		return nil
	}
	return c.writeFrame(createFrame(send))
}

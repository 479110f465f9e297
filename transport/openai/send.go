package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/transport"
)

// Send: after a failed write, Recv still reads what had arrived and returns why the provider closed.
func (c *conn) Send(ctx context.Context, cmd transport.Command) error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	if ctx.Done() != nil {
		defer c.watch(ctx, func() *transport.Error {
			err := ctx.Err()
			if cause := context.Cause(ctx); !errors.Is(cause, err) {
				err = fmt.Errorf("%w: %w", err, cause)
			}
			return c.t.Fault("send", transport.KindClosed, "", err)
		})()
	}
	var err error
	if a, ok := cmd.(*transport.AudioIn); ok && a != nil {
		err = c.sendAudio(a.PCM)
	} else {
		err = c.sendControl(cmd)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCommand), errors.Is(err, errEncode):
		return c.t.Fault("send", transport.KindInvalid, "", err)
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
	case transport.PlayExact:
		return nil // not supported
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
		return err
	}
	return c.write(frame)
}

// tell sends a client event of a purpose, with its members after event_id and type.
func (c *conn) tell(op, kind string, members ...any) error {
	return c.writeFrame(encode(c.eventID(op), kind, members...))
}

func (c *conn) sendText(text string) error {
	if err := c.cancel(); err != nil {
		return err
	}
	c.changed()
	if err := c.tell(opItem, openaiwire.ItemCreate, "item", textItem("user", text)); err != nil {
		return err
	}
	return c.respond(request{})
}

func (c *conn) sendImage(image transport.Image) error {
	if !c.info.Capabilities.Images {
		return nil
	}
	url := "data:" + image.MIME + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
	return c.tell(opItem, openaiwire.ItemCreate, "item", message("user", "type", "input_image", "image_url", url))
}

// Earlier audio does not count as the user's speech.
func (c *conn) startActivity() error {
	if !c.manual {
		return nil
	}
	if err := c.cancel(); err != nil {
		return err
	}
	c.sent.buffered = 0
	return c.tell(opBuffer, openaiwire.AudioClear)
}

// endActivity commits the turn, or drops it if it is empty: the provider refuses to commit less than 100 ms of audio.
func (c *conn) endActivity(cmd transport.ActivityEnd) error {
	if !c.manual {
		return nil
	}
	enough := audio.MS(c.info.InputRate, int(c.sent.buffered)) >= minCommitMS
	c.sent.buffered = 0
	if cmd.Empty || !enough {
		return c.tell(opBuffer, openaiwire.AudioClear)
	}
	c.changed()
	if err := c.tell(opBuffer, openaiwire.AudioCommit); err != nil {
		return err
	}
	return c.respond(request{})
}

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
	it := c.items.by[cmd.Item]
	c.mu.Unlock()
	if it == nil || !c.info.Capabilities.Truncate {
		return nil
	}
	ms := max(min(cmd.AudioMS, it.bytes.Load()/bytesPerMS), 0)
	if !c.local { // it may answer nothing, and later errors are not about this
		c.truncates.Add(1)
	}
	return c.tell(opTruncate, openaiwire.ItemTruncate, "item_id", cmd.Item, "content_index", 0, "audio_end_ms", ms)
}

// A result for a call that is not open is dropped: the provider would refuse a second output.
func (c *conn) sendResult(cmd transport.ToolResult) error {
	c.mu.Lock()
	id, ok := c.calls.by[cmd.Call]
	delete(c.calls.by, cmd.Call) // a call has one answer
	c.mu.Unlock()
	if !ok {
		c.log.Warn("tool_result_dropped", "provider", c.info.Provider, "call", cmd.Call, "reason", "no open call has that name")
		return nil
	}
	c.changed()
	return c.tell(opResult, openaiwire.ItemCreate, "item", outputOf(id, cmd.Output))
}

func (c *conn) respond(r request) error {
	c.mu.Lock()
	send := c.seq.ask(r, time.Now(), c.progress.Load())
	c.rearm()
	c.mu.Unlock()
	if send == nil {
		return nil
	}
	return c.writeFrame(send.frame())
}

// pauseMarginMS is added to the silence that ends a phrase, which is unknownSilenceMS if it is not reported.
const (
	pauseMarginMS    = 200
	unknownSilenceMS = 500
	maxPads          = 64
)

type pad struct{ at, length int64 }

// padList takes added silence out of the provider's audio clock. Send adds and Recv converts, with conn.mu held.
type padList struct {
	base int64 // ms of silence added before the first of pads
	pads []pad
}

func (p *padList) add(at, length int64) {
	if len(p.pads) == maxPads {
		p.base += p.pads[0].length
	}
	p.pads = pushed(p.pads, maxPads, pad{at, length})
}

// caller returns ms without the silence added before it.
func (p *padList) caller(ms int64) int64 {
	added := p.base
	for _, pad := range p.pads {
		if ms <= pad.at {
			break
		}
		added += min(ms-pad.at, pad.length)
	}
	return max(ms-added, 0)
}

// The provider finds the end of a phrase only in the silence after it, which a muted microphone does not send.
func (c *conn) pause() error {
	if c.manual || c.sent.sincePause == 0 {
		return nil
	}
	silence := c.silenceMS
	silence = cmp.Or(silence, unknownSilenceMS)
	silence += pauseMarginMS
	at := audio.MS(c.info.InputRate, int(c.sent.total))
	c.mu.Lock()
	c.pads.add(at, silence)
	c.mu.Unlock()
	err := c.sendAudio(make([]byte, audio.Bytes(c.info.InputRate, time.Duration(silence)*time.Millisecond)))
	c.sent.sincePause = 0
	return err
}

// maxUpdates bounds how many updates may wait for their confirmation; the oldest is dropped.
const maxUpdates = 16

func (c *conn) reconfigure(cmd transport.Reconfigure) error {
	if c.info.Capabilities.Reconfigure != transport.ReconfigureLive {
		return nil
	}
	event := c.eventID(opUpdate)
	frame, err := c.t.ep.dialect.reconfigure(event, cmd)
	if err != nil {
		return err
	}
	c.expectUpdate(event)
	return c.write(frame)
}

func (c *conn) expectUpdate(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = pushed(c.updates, maxUpdates, event)
}

// The provider confirms in order and names no update. The rate of the user's speech cannot change.
func (c handler) onSessionUpdated(ev *event) {
	in, out, err := ev.Session.rates(c.info.InputRate, c.speech.rate)
	if err == nil && in != c.info.InputRate {
		err = fmt.Errorf("%w: its input has changed to %d Hz", errFormat, in)
	}
	if err != nil {
		c.fatal = c.t.Fault("recv", transport.KindRetry, codeAudioFormat, err)
		return
	}
	c.speech.rate = out
	c.mu.Lock()
	waited := len(c.updates) > 0
	if waited {
		c.updates = slices.Delete(c.updates, 0, 1)
	}
	c.mu.Unlock()
	if waited {
		c.events.Add(transport.Reconfigured{})
	}
}

func (c *conn) updateRefused(eventID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.updates, eventID)
	if at < 0 {
		return false
	}
	c.updates = slices.Delete(c.updates, at, at+1)
	return true
}

func (c *conn) addItem(cmd transport.AddItem) error {
	if c.info.Capabilities.AddItem == transport.AddItemNone {
		return nil
	}
	items, err := c.t.ep.dialect.chain(c.eventID(opAdded)+"_", cmd.Item)
	if err != nil {
		return err
	}
	return c.writeAll(items)
}

package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/transport"
)

// The fixed parts of the audio message.
const (
	audioHead = `{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"`
	audioTail = `"}}}`
)

// Messages without content of their own.
const (
	audioStreamEnd = `{"realtimeInput":{"audioStreamEnd":true}}`
	activityStart  = `{"realtimeInput":{"activityStart":{}}}`
	activityEnd    = `{"realtimeInput":{"activityEnd":{}}}`
	endOfContent   = `{"clientContent":{"turnComplete":true}}`
)

// Send implements [transport.Conn].
func (c *conn) Send(ctx context.Context, cmd transport.Command) error {
	if c.closed.Load() {
		return c.fail("send", transport.KindClosed, "", net.ErrClosed)
	}
	if final := c.final.Load(); final != nil {
		return c.fail("send", final.Kind, final.Code, final.Err)
	}
	if in, ok := cmd.(*transport.AudioIn); ok {
		c.encodeAudio(in.PCM)
		c.sent.Add(int64(len(in.PCM)))
	} else if err := c.encode(cmd); err != nil {
		return c.fail("send", transport.KindInvalid, "", err)
	}
	if len(c.buf) == 0 {
		return nil
	}
	if err := c.ws.Write(ctx, websocket.MessageText, c.buf); err != nil {
		return c.sendError(ctx, err)
	}
	if cap(c.buf) > maxPooled {
		c.buf = nil
	}
	return nil
}

// encodeAudio puts the message for a piece of speech into c.buf.
func (c *conn) encodeAudio(pcm []byte) {
	c.buf = append(c.buf[:0], audioHead...)
	c.buf = audio.AppendBase64(c.buf, pcm)
	c.buf = append(c.buf, audioTail...)
}

// sendError classes a write that failed. Recv may have seen why in the meantime.
func (c *conn) sendError(ctx context.Context, err error) *transport.Error {
	if final := c.final.Load(); final != nil && !c.closed.Load() && ctx.Err() == nil {
		return c.fail("send", final.Kind, final.Code, err)
	}
	return c.readError(ctx, "send", err)
}

// encode puts the message for cmd into c.buf, or nothing if this model has no use
// for it.
func (c *conn) encode(cmd transport.Command) error {
	c.buf = c.buf[:0]
	switch cmd := cmd.(type) {
	case transport.AudioPause:
		if !c.manual { // only the provider's own detection waits for the rest
			c.buf = append(c.buf, audioStreamEnd...)
		}
	case transport.ActivityStart:
		if c.manual {
			c.buf = append(c.buf, activityStart...)
		}
	case transport.ActivityEnd:
		if c.manual {
			c.buf = append(c.buf, activityEnd...)
		}
	case transport.Interrupt:
		if c.row.interruptByContent {
			c.buf = append(c.buf, endOfContent...)
		}
	case transport.UserText:
		return c.encodeText(cmd.Text)
	case transport.ToolResult:
		return c.encodeResult(cmd)
	case transport.Truncate, transport.Respond:
		// The service assumes that what it sent is heard in real time, and answers
		// by itself.
	}
	return nil
}

type (
	textPart struct {
		Text string `json:"text"`
	}
	textTurn struct {
		Role  string     `json:"role"`
		Parts []textPart `json:"parts"`
	}
	clientContent struct {
		Turns        []textTurn `json:"turns"`
		TurnComplete bool       `json:"turnComplete"`
	}
)

func (c *conn) encodeText(text string) error {
	if c.row.typedAsContent {
		return c.encodeJSON("clientContent", clientContent{
			Turns:        []textTurn{{Role: "user", Parts: []textPart{{Text: text}}}},
			TurnComplete: true,
		})
	}
	return c.encodeJSON("realtimeInput", textPart{Text: text})
}

func (c *conn) encodeResult(r transport.ToolResult) error {
	var scheduling string
	if c.row.caps.Scheduling {
		scheduling = strings.ToUpper(string(r.Scheduling))
	}
	answers := c.calls.result(r.Call, responseObject(r.Output), scheduling)
	if len(answers) == 0 {
		return nil
	}
	return c.encodeJSON("toolResponse", struct {
		FunctionResponses []answer `json:"functionResponses"`
	}{answers})
}

// responseObject returns output if it is an object. Anything else goes under
// "output", where the service documents it: a wrong shape would end the connection
// with 1007.
func responseObject(output json.RawMessage) json.RawMessage {
	trimmed := bytes.TrimSpace(output)
	if len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return output
	}
	var value any = string(output)
	if json.Valid(trimmed) {
		value = json.RawMessage(trimmed)
	}
	b, err := json.Marshal(map[string]any{"output": value})
	if err != nil { // a valid RawMessage and a string always marshal
		return json.RawMessage(`{}`)
	}
	return b
}

// encodeJSON puts {"key": value} into c.buf.
func (c *conn) encodeJSON(key string, value any) error {
	b, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		return err
	}
	c.buf = append(c.buf, b...)
	return nil
}

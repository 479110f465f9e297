package gemini

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/ws"
	"voicegw/transport"
)

// The fixed parts of the audio message.
const (
	audioHead = `{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"`
	audioTail = `"}}}`
)

// Messages without any content.
const (
	audioStreamEnd = `{"realtimeInput":{"audioStreamEnd":true}}`
	activityStart  = `{"realtimeInput":{"activityStart":{}}}`
	activityEnd    = `{"realtimeInput":{"activityEnd":{}}}`
	endOfContent   = `{"clientContent":{"turnComplete":true}}`
)

func (c *conn) Send(ctx context.Context, cmd transport.Command) error {
	if c.closed.Load() {
		return c.t.fail("send", transport.KindClosed, "", net.ErrClosed)
	}
	if final := c.final.Load(); final != nil {
		return c.t.fail("send", final.Kind, final.Code, final.Err)
	}
	m := ws.NewMessage()
	if in, ok := cmd.(*transport.AudioIn); ok {
		m.B = appendAudio(m.B, in.PCM)
		c.sent.Add(int64(len(in.PCM)))
	} else {
		var err error
		if m.B, err = c.encode(m.B, cmd); err != nil {
			return c.t.fail("send", transport.KindInvalid, "", err)
		}
	}
	if len(m.Payload()) == 0 {
		return nil
	}
	defer c.closeWith(ctx)()
	if err := c.ws.Send(websocket.MessageText, m); err != nil {
		return c.sendError(ctx, err)
	}
	switch cmd := cmd.(type) {
	case transport.ToolResult:
		if err := c.sendTyped(); err != nil {
			return c.sendError(ctx, err)
		}
	case transport.Reconfigure:
		c.reconfigured(cmd)
	}
	return nil
}

func appendAudio(dst, pcm []byte) []byte {
	dst = append(dst, audioHead...)
	dst = audio.AppendBase64(dst, pcm)
	return append(dst, audioTail...)
}

// appendImage appends the message for a still image, as a video frame: the service takes one a second (ai.google.dev
// Live API guide, read 2026-11-20) and does not answer it.
func appendImage(dst []byte, image transport.Image) []byte {
	dst = append(dst, `{"realtimeInput":{"video":{"mimeType":"`...)
	dst = append(dst, image.MIME...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, image.Data)
	return append(dst, audioTail...)
}

// sendError classifies a failed write. Recv may have learnt the reason in the meantime.
func (c *conn) sendError(ctx context.Context, err error) *transport.Error {
	if final := c.final.Load(); final != nil && !c.closed.Load() && ctx.Err() == nil {
		return c.t.fail("send", final.Kind, final.Code, err)
	}
	return c.readError(ctx, "send", err)
}

// encode appends the message for cmd to dst; it appends nothing if this model does not use cmd.
func (c *conn) encode(dst []byte, cmd transport.Command) ([]byte, error) {
	if _, pause := cmd.(transport.AudioPause); c.row.translates && !pause {
		return dst, nil
	}
	switch cmd := cmd.(type) {
	case transport.AudioPause, transport.ActivityStart, transport.ActivityEnd:
		return c.appendActivity(dst, cmd), nil
	case transport.Interrupt:
		// If the model cannot be stopped, the caller still holds the rest of the answer back.
		if c.row.caps.Cancel && !(c.row.deafInCall && c.calls.waiting()) {
			return append(dst, endOfContent...), nil
		}
	case transport.UserText:
		if held, err := c.hold(userTurn(cmd.Text), true); held || err != nil {
			return dst, err
		}
		return c.appendText(dst, cmd.Text)
	case transport.ToolResult:
		return c.appendResult(dst, cmd)
	case transport.Reconfigure:
		if c.row.caps.Reconfigure == transport.ReconfigureLive {
			return c.appendUpdate(dst, cmd)
		}
	case transport.AddItem:
		if c.row.caps.AddItem != transport.AddItemNone {
			return c.appendItem(dst, cmd.Item)
		}
	case transport.Image:
		if c.row.caps.Images {
			return appendImage(dst, cmd), nil
		}
	case transport.Truncate, transport.Respond:
		// The service assumes that its audio is played in real time, and answers automatically.
	}
	return dst, nil
}

func (c *conn) appendActivity(dst []byte, cmd transport.Command) []byte {
	switch cmd.(type) {
	case transport.AudioPause:
		if !c.manual { // only the provider's own speech detection waits for more audio
			return append(dst, audioStreamEnd...)
		}
	case transport.ActivityStart:
		if c.manual {
			return append(dst, activityStart...)
		}
	case transport.ActivityEnd:
		if c.manual {
			return append(dst, activityEnd...)
		}
	}
	return dst
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

func userTurn(text string) textTurn { return textTurn{Role: "user", Parts: []textPart{{Text: text}}} }

func (c *conn) appendText(dst []byte, text string) ([]byte, error) {
	if c.row.typedAsContent {
		return appendJSON(dst, "clientContent", clientContent{
			Turns:        []textTurn{userTurn(text)},
			TurnComplete: true,
		})
	}
	return appendJSON(dst, "realtimeInput", textPart{Text: text})
}

func (c *conn) appendResult(dst []byte, r transport.ToolResult) ([]byte, error) {
	var scheduling string
	if c.row.caps.Scheduling {
		scheduling = strings.ToUpper(string(r.Scheduling))
	}
	answers := c.calls.result(r.Call, responseObject(r.Output), scheduling)
	if len(answers) == 0 {
		return dst, nil
	}
	return appendJSON(dst, "toolResponse", struct {
		FunctionResponses []answer `json:"functionResponses"`
	}{answers})
}

// Any other value goes under "output", as the service documents: a wrong shape would end the connection with 1007.
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

func appendJSON(dst []byte, key string, value any) ([]byte, error) {
	b, err := json.Marshal(map[string]any{key: value})
	return append(dst, b...), err
}

// maxTyped bounds the typed text that waits for a tool, in bytes.
const maxTyped = 256 << 10

const errTyped errorText = "more than 256 KiB were typed while a tool ran"

// typed keeps text and entries until no call is open, for models that close on them (row.deafInCall).
type typed struct {
	mu    sync.Mutex
	turns []textTurn
	bytes int
	asks  bool // one of the turns wants an answer
}

// hold reports whether it kept the turn. asks means that the turn wants an answer.
func (c *conn) hold(turn textTurn, asks bool) (bool, error) {
	if !c.row.deafInCall {
		return false, nil
	}
	c.typed.mu.Lock()
	defer c.typed.mu.Unlock()
	// Checked under the lock: the goroutine that ends the last call looks here afterwards.
	if !c.calls.waiting() {
		return false, nil
	}
	for _, part := range turn.Parts {
		c.typed.bytes += len(part.Text)
	}
	if c.typed.bytes > maxTyped {
		return false, errTyped
	}
	c.typed.turns = append(c.typed.turns, turn)
	c.typed.asks = c.typed.asks || asks
	return true, nil
}

func (c *conn) sendTyped() error {
	c.typed.mu.Lock()
	defer c.typed.mu.Unlock()
	if len(c.typed.turns) == 0 || c.calls.waiting() {
		return nil
	}
	m := ws.NewMessage()
	var err error
	if m.B, err = appendJSON(m.B, "clientContent", clientContent{Turns: c.typed.turns, TurnComplete: c.typed.asks}); err != nil {
		return c.t.fail("send", transport.KindInvalid, "", err)
	}
	c.typed.turns, c.typed.bytes, c.typed.asks = nil, 0, false
	return c.ws.Send(websocket.MessageText, m)
}

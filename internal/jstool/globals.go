package jstool

import (
	"crypto/rand"
	_ "embed" // for the prelude
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/google/uuid"
	"golang.org/x/net/idna"

	"voicegw/registry/document"
)

// globalName is the variable with a bundle's exports.
const globalName = "__voicegw_tool"

// Limits of a call.
const (
	maxTimers  = 1000
	maxFetches = 8        // at a time
	maxLog     = 16 << 10 // bytes
	maxSent    = 8        // messages of ws.send
	maxRandom  = 65_536   // bytes, as in browsers
)

//go:embed prelude.js
var preludeText string

var prelude = sync.OnceValue(func() *goja.Program { return goja.MustCompile("prelude.js", preludeText, true) })

// globals adds the globals to the virtual machine, and returns the function that runs a tool. See docs/javascript-tools.md.
func (c *vmCall) globals() (goja.Callable, error) {
	made, err := c.vm.RunProgram(prelude())
	if err != nil {
		return nil, err
	}
	setup, _ := goja.AssertFunction(made)
	native := c.vm.NewObject()
	for name, f := range map[string]any{
		"log": c.log, "timer": c.timer, "clear": c.clear, "fetch": c.fetch, "send": c.send, "done": c.done, "failed": c.failed,
		"host": asciiHost, "random": c.random, "uuid": uuid.NewString, "encode": c.encode, "decode": c.decode,
		"now": func() float64 { return float64(time.Since(c.start).Microseconds()) / 1000 },
	} {
		if err := native.Set(name, f); err != nil {
			return nil, err
		}
	}
	run, err := setup(goja.Undefined(), native)
	if err != nil {
		return nil, err
	}
	f, _ := goja.AssertFunction(run)
	return f, nil
}

func (c *vmCall) log(level, text string) {
	if c.logged >= maxLog {
		return
	}
	text = document.Shorten(text, maxText)
	if c.logged += len(text) + 1; c.logged >= maxLog {
		text += " (the rest of this call's log is dropped)"
	}
	c.host.send(fromHost{Call: c.id, Log: &logMessage{level, text}})
}

// timer calls f after some milliseconds, and returns the timer's number.
func (c *vmCall) timer(f goja.Callable, ms float64) (int64, error) {
	if len(c.waiting) >= maxTimers {
		return 0, errors.New("too many timers")
	}
	c.timers++
	c.waiting[c.timers] = timer{time.Now().Add(time.Duration(max(1, min(ms, 1e9))) * time.Millisecond), f}
	return c.timers, nil
}

func (c *vmCall) clear(id int64) { delete(c.waiting, id) }

// fetch asks the gateway for a request. then gets the answer's head, as JSON, and its body.
func (c *vmCall) fetch(head string, body goja.ArrayBuffer, then goja.Callable) error {
	if len(c.fetches) >= maxFetches {
		return errors.New("too many requests at a time")
	}
	m := &fetchMessage{Body: body.Bytes()}
	if err := json.Unmarshal([]byte(head), m); err != nil {
		return err
	}
	if len(m.Body) > maxFetched || len(head) > maxFetched {
		return errors.New("the request is too large")
	}
	c.requests++
	m.Request = c.requests
	c.fetches[m.Request] = then
	c.host.send(fromHost{Call: c.id, Fetch: m})
	return nil
}

func (c *vmCall) fetched(m *fetched) error {
	then := c.fetches[m.Request]
	if then == nil {
		return nil
	}
	delete(c.fetches, m.Request)
	body := m.Body
	m.Body = nil
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = then(goja.Undefined(), c.vm.ToValue(string(head)), c.vm.ToValue(c.vm.NewArrayBuffer(body)))
	return err
}

func (c *vmCall) send(text string) error {
	if len(text) > maxText || c.sent >= maxSent {
		return errors.New("the message is too long, or the call has sent too many")
	}
	c.sent++
	c.host.send(fromHost{Call: c.id, Send: text})
	return nil
}

func (c *vmCall) done(result string) {
	switch {
	case c.result != nil:
	case len(result) > maxResult:
		c.result = &doneMessage{Failed: "the result is too large"}
	case result == "":
		c.result = &doneMessage{Result: json.RawMessage("null")}
	default:
		c.result = &doneMessage{Result: json.RawMessage(result)}
	}
}

func (c *vmCall) failed(text string) {
	t := &thrown{}
	if err := json.Unmarshal([]byte(text), t); err != nil || len(text) > maxResult {
		t = &thrown{Stack: "an error that cannot be read"}
	}
	t.Message, t.Stack = document.Shorten(t.Message, maxText), document.Shorten(t.Stack, maxText)
	if c.result == nil {
		c.result = &doneMessage{Thrown: t}
	}
}

// asciiHost returns a host as in a URL.
func asciiHost(name string) string {
	name = strings.ToLower(name)
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		return ascii
	}
	return name
}

func (c *vmCall) random(n int) (goja.ArrayBuffer, error) {
	if n < 0 || n > maxRandom {
		return goja.ArrayBuffer{}, errors.New("the array is too long for random values")
	}
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return c.vm.NewArrayBuffer(b), nil
}

func (c *vmCall) encode(s string) goja.ArrayBuffer { return c.vm.NewArrayBuffer([]byte(s)) }

func (c *vmCall) decode(b goja.ArrayBuffer, fatal bool) (string, error) {
	data := b.Bytes()
	if fatal && !utf8.Valid(data) {
		return "", errors.New("the encoded data was not valid for encoding utf-8")
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(data), "\ufffd"), "\ufeff"), nil
}

package jstool

import (
	"bytes"
	"crypto/rand"
	_ "embed" // for the prelude
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/google/uuid"
	"golang.org/x/net/idna"
	"golang.org/x/text/encoding/unicode"

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

// asciiHost returns a host as in a URL (url.spec.whatwg.org, section 3.5, read 2026-11-30); empty if it is not one.
func asciiHost(name string) string {
	if inner, is := strings.CutPrefix(name, "["); is {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || a.Zone() != "" || !a.Is6() {
			return ""
		}
		if four := a.Unmap().As4; a.Is4In6() { // such addresses have no dots there
			b := four()
			return fmt.Sprintf("[::ffff:%x:%x]", int(b[0])<<8|int(b[1]), int(b[2])<<8|int(b[3]))
		}
		return "[" + a.String() + "]"
	}
	name = strings.ToLower(name)
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	} else if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`#%/:<>?@[\]^|`, r) }) {
		return ""
	}
	parts := strings.Split(strings.TrimSuffix(name, "."), ".")
	if !number.MatchString(parts[len(parts)-1]) {
		return name
	}
	var address uint64 // the last part fills the bytes that the others leave
	for i, part := range parts {
		n, err := strconv.ParseUint(strings.TrimSuffix(part, "x"), 0, 64)
		left := 8 * (4 - i)
		if last := i == len(parts)-1; err != nil || left <= 0 || !last && n > 255 || last && n >= 1<<left {
			return ""
		} else if !last {
			n <<= 8 * (3 - i)
		}
		address |= n
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(address)))).String() //nolint:gosec // four bytes
}

var number = regexp.MustCompile(`^(\d+|0x[0-9a-f]*)$`)

func (c *vmCall) random(n int) (goja.ArrayBuffer, error) {
	if n < 0 || n > maxRandom {
		return goja.ArrayBuffer{}, errors.New("the array is too long for random values")
	}
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return c.vm.NewArrayBuffer(b), nil
}

func (c *vmCall) encode(s string) goja.ArrayBuffer { return c.vm.NewArrayBuffer([]byte(s)) }

// decode returns text, and undefined for bytes that are not UTF-8 if fatal. Others become U+FFFD, as encoding.spec.whatwg.org
// wants it.
func (c *vmCall) decode(b goja.ArrayBuffer, fatal, keepBOM bool) goja.Value {
	data := b.Bytes()
	if fatal && !utf8.Valid(data) {
		return goja.Undefined()
	}
	data, _ = unicode.UTF8.NewDecoder().Bytes(data) // never fails
	if !keepBOM {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	return c.vm.ToValue(string(data))
}

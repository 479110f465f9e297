package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

const maxBody = 32 << 20

// exchange is one request and its answer. It counts as a connection: it has its own number, seed and faults, and the
// server's group can end it. Only the request's goroutine uses it.
type exchange struct {
	// Fixed after Serve.
	Request *http.Request
	IDs     *wire.IDs
	Opts    *wire.Options
	begun   time.Time

	// Owned by the goroutine of the request.
	w         http.ResponseWriter
	ctx       context.Context //nolint:containedctx // the request's context, which also ends with the server
	dialect   wire.Dialect
	faults    *scenario.Injector
	timed     []scenario.TimedFault
	muteUntil time.Time
	mangle    bool // the next data sent is cut in the middle
	wrote     bool // the status has been sent
	stream    bool
	onCall    []scenario.Fault
	over      bool // a fault has answered it, or the client or the server is gone: nothing more happens
	status    int
}

// A respond answers one request from its body. A returned error is sent if nothing was sent before.
type respond func(x *exchange, body []byte) *Error

// serveOne runs one exchange of an API: it accepts only POST, checks the key, reads the body,
// injects the faults due at the beginning and then calls handle.
func serveOne(w http.ResponseWriter, r *http.Request, o *wire.Options, api scenario.API, d wire.Dialect, key *Error, handle respond) {
	begin := o.Begin(api)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &exchange{
		Request: r, IDs: wire.NewIDs(begin.Seed), Opts: o, begun: time.Now(), w: w, ctx: ctx, dialect: d,
		faults: begin.Faults, timed: begin.Faults.Timed(),
	}
	o.Stats.Requests.Add(1)
	log := o.Logger.With("api", string(api), "conn", begin.N)
	leave, ok := o.Group.Enter(cancel)
	if !ok {
		x.refuse(&Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: "The simulator is shutting down."})
		return
	}
	defer leave()
	o.Stats.Open.Add(1)
	defer o.Stats.Open.Add(-1)
	refused := x.serve(key, handle)
	switch {
	case refused != nil:
		o.Stats.Errors.Add(1)
		x.refuse(refused)
		log.Info("request refused", "status", refused.Status, "code", refused.Code)
	case x.over:
		log.Info("request cut off", "status", x.status)
	default:
		x.wait(time.Until(x.muteUntil)) // a silent stream must not end early
		log.Info("request answered", "status", x.status, "stream", x.stream)
	}
}

func (x *exchange) serve(key *Error, handle respond) *Error {
	x.At(scenario.Point{At: scenario.AtConnect})
	switch {
	case x.over:
		return nil
	case x.Request.Method != http.MethodPost:
		x.w.Header().Set("Allow", http.MethodPost)
		return &Error{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_supported",
			Message: "Not allowed to " + x.Request.Method + " here; use POST."}
	case key != nil:
		x.Opts.Stats.Refused.Add(1)
		return key
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.Request.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error",
			Message: fmt.Sprintf("The body has more than %d bytes.", maxBody)}
	}
	x.over = err != nil
	x.At(scenario.Point{At: scenario.AtSetup})
	if x.over {
		return nil
	}
	return handle(x, body)
}

// refuse sends an error: as the answer, or in the stream if it has begun.
func (x *exchange) refuse(e *Error) {
	if x.over {
		return
	}
	if x.wrote {
		if x.stream {
			x.raw(event("", x.dialect(e)))
		}
		return
	}
	x.head(e.Status, "application/json")
	x.raw(x.dialect(e))
}

func (x *exchange) head(status int, kind string) {
	h := x.w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Request-Id", "req_"+x.IDs.Base62(24))
	h.Set("Openai-Processing-Ms", fmt.Sprint(time.Since(x.begun).Milliseconds()))
	x.w.WriteHeader(status)
	x.wrote, x.status = true, status
}

// raw writes and flushes. If the client is gone, the request's context ends, and the next step notices it.
func (x *exchange) raw(b []byte) {
	_, _ = x.w.Write(b)
	_ = http.NewResponseController(x.w).Flush() // a recorder cannot flush and need not
}

// At reports a point and injects the faults that are due there. Faults of calls are kept for TakeCallFaults.
func (x *exchange) At(p scenario.Point) { x.Do(x.faults.At(p)) }

// Do injects faults, until one of them ends the exchange.
func (x *exchange) Do(as []scenario.Fault) {
	for _, a := range as {
		if !x.over {
			x.do(a)
		}
	}
}

func (x *exchange) do(a scenario.Fault) {
	switch a.Kind {
	case scenario.DuplicateCall, scenario.MissingID:
		x.onCall = append(x.onCall, a)
		return
	case scenario.GoAway, scenario.LateCall, scenario.CancelCall,
		scenario.Deaf, scenario.RefuseResume, scenario.Amnesia, scenario.LateHandle, scenario.NoHandle, scenario.BusyHandle,
		scenario.NoAudio, scenario.Unplaced, scenario.Undelegated:
		return // these need a session: see docs/simulator.md
	}
	x.Opts.Stats.Committed(a.Kind)
	switch a.Kind {
	case scenario.Delay, scenario.SlowRead:
		x.wait(a.For)
	case scenario.Silence:
		x.silence(a.For)
	case scenario.Malformed:
		x.mangle = true
	case scenario.UnknownEvent:
		if x.stream {
			x.raw(event(a.Event, fmt.Appendf(nil, `{"object":%q,"choices":[]}`, a.Event)))
		}
	case scenario.Quota:
		x.refuse(wire.Quota())
		x.over = true
	case scenario.HTTPError:
		if !x.wrote {
			wire.RetryAfter(x.w, a.For)
		}
		x.refuse(failure(a.Code, a.Reason))
		x.over = true
	default: // drop, close, expire: the connection is cut before the end of the answer
		panic(http.ErrAbortHandler)
	}
}

// silence sends nothing for d: an answer that has not begun waits; in a stream, what becomes due is dropped. Zero means
// forever.
func (x *exchange) silence(d time.Duration) {
	switch {
	case d == 0:
		<-x.ctx.Done()
		x.over = true
	case !x.wrote:
		x.wait(d)
	default:
		x.muteUntil = time.Now().Add(d)
	}
}

func (x *exchange) TakeCallFaults() []scenario.Fault {
	as := x.onCall
	x.onCall = nil
	for _, a := range as {
		x.Opts.Stats.Committed(a.Kind)
	}
	return as
}

// Pause waits, and injects the faults that become due.
func (x *exchange) Pause(d time.Duration) {
	until := time.Now().Add(d)
	for !x.over && len(x.timed) > 0 && !x.begun.Add(x.timed[0].After).After(until) {
		next := x.timed[0]
		x.timed = x.timed[1:]
		x.wait(time.Until(x.begun.Add(next.After)))
		x.Do([]scenario.Fault{next.Fault})
	}
	x.wait(time.Until(until))
}

func (x *exchange) wait(d time.Duration) {
	if d > 0 && !x.over {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-x.ctx.Done():
		}
	}
	x.over = x.over || x.ctx.Err() != nil
}

// JSON sends a value as the whole answer.
func (x *exchange) JSON(v any) {
	b, err := json.Marshal(v)
	x.over = x.over || err != nil // strings and numbers can always be encoded
	x.send("application/json", b)
}

func (x *exchange) send(kind string, b []byte) {
	x.At(scenario.Point{At: scenario.AtFrame, Turn: 1})
	x.Pause(0)
	if x.over {
		return
	}
	x.head(http.StatusOK, kind)
	if x.mangle {
		b = b[:len(b)/2]
	}
	x.raw(b)
}

// Stream begins an answer of server-sent events.
func (x *exchange) Stream() {
	if x.Pause(0); x.over {
		return
	}
	x.stream = true
	x.w.Header().Set("Cache-Control", "no-cache")
	x.head(http.StatusOK, "text/event-stream; charset=utf-8")
}

// Event sends one event of a stream, after the faults that are due at it. name is its name in a fault script; it is not
// sent.
func (x *exchange) Event(name string, data []byte) {
	x.At(scenario.Point{At: scenario.AtFrame, Turn: 1})
	if !x.over {
		x.At(scenario.Point{At: scenario.AtEvent, Turn: 1, Event: name})
	}
	if x.wait(0); x.over || time.Now().Before(x.muteUntil) {
		return
	}
	if x.mangle {
		x.mangle = false
		data = data[:len(data)/2]
	}
	x.raw(event("", data))
}

// event encodes a server-sent event (WHATWG HTML, 9.2). JSON contains no line breaks.
func event(name string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(name)+20)
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

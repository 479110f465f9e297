package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"voicegw/sim/fault"
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
	dialect   Dialect
	faults    *fault.Injector
	timed     []fault.Timed
	muteUntil time.Time
	mangle    bool // the next data sent is cut in the middle
	wrote     bool // the status has been sent
	stream    bool
	onCall    []fault.Action
	over      bool
	status    int
}

// A respond answers one request from its body. A returned *Error is sent as the provider's error
// if nothing was sent before; errOver means that nothing remains to be done.
type respond func(x *exchange, body []byte) error

// serveOne runs one exchange of an API: it accepts only POST, checks the key, reads the body,
// injects the faults due at the beginning and then calls handle.
func serveOne(w http.ResponseWriter, r *http.Request, o *wire.Options, api fault.API, d Dialect, key *Error, handle respond) {
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
	err := x.serve(key, handle)
	var refused *Error
	switch {
	case errors.As(err, &refused):
		o.Stats.Errors.Add(1)
		x.refuse(refused)
		log.Info("request refused", "status", refused.Status, "code", refused.Code)
	case errors.Is(err, errOver):
		log.Info("request cut off", "status", x.status)
	default:
		_ = x.wait(time.Until(x.muteUntil)) // a silent stream must not end early
		log.Info("request answered", "status", x.status, "stream", x.stream)
	}
}

func (x *exchange) serve(key *Error, handle respond) error {
	if err := x.At(fault.Point{At: fault.AtConnect}); err != nil {
		return err
	}
	if x.Request.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		return &Error{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_supported",
			Message: "Not allowed to " + x.Request.Method + " here; use POST."}
	}
	if key != nil {
		x.Opts.Stats.Refused.Add(1)
		return key
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.Request.Body, maxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error",
				Message: fmt.Sprintf("The body has more than %d bytes.", maxBody)}
		}
		return x.end()
	}
	if err := x.At(fault.Point{At: fault.AtSetup}); err != nil {
		return err
	}
	return handle(x, body)
}

func (x *exchange) end() error {
	x.over = true
	return errOver
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
func (x *exchange) At(p fault.Point) error { return x.Do(x.faults.At(p)) }

// Do injects faults. It returns errOver if one of them ends the exchange.
func (x *exchange) Do(as []fault.Action) error {
	for _, a := range as {
		if err := x.do(a); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) do(a fault.Action) error {
	switch a.Kind {
	case fault.DuplicateCall, fault.MissingID:
		x.onCall = append(x.onCall, a)
		return nil
	case fault.GoAway, fault.LateCall, fault.CancelCall,
		fault.Deaf, fault.RefuseResume, fault.Amnesia, fault.LateHandle, fault.NoHandle, fault.BusyHandle:
		return nil // these need a session: see docs/simulator.md
	case fault.Delay, fault.Drop, fault.Close, fault.Expire, fault.UnknownEvent, fault.Malformed, fault.Silence,
		fault.SlowRead, fault.Quota, fault.HTTPError:
	}
	x.Opts.Stats.Committed(a.Kind)
	switch a.Kind {
	case fault.Delay, fault.SlowRead:
		return x.wait(a.For)
	case fault.Silence:
		return x.silence(a.For)
	case fault.Malformed:
		x.mangle = true
	case fault.UnknownEvent:
		if x.stream {
			x.raw(event(a.Event, []byte(fmt.Sprintf(`{"object":%q,"choices":[]}`, a.Event))))
		}
	case fault.Quota:
		x.refuse(quota())
		return x.end()
	case fault.HTTPError:
		if !x.wrote {
			wire.RetryAfter(x.w, a.For)
		}
		x.refuse(failure(a.Code, a.Reason))
		return x.end()
	default: // drop, close, expire: the connection is cut before the end of the answer
		panic(http.ErrAbortHandler)
	}
	return nil
}

// silence sends nothing for d: an answer that has not begun waits; in a stream, what becomes
// due is dropped. Zero means forever.
func (x *exchange) silence(d time.Duration) error {
	if d == 0 {
		<-x.ctx.Done()
		return x.end()
	}
	if !x.wrote {
		return x.wait(d)
	}
	x.muteUntil = time.Now().Add(d)
	return nil
}

func (x *exchange) TakeCallFaults() []fault.Action {
	as := x.onCall
	x.onCall = nil
	for _, a := range as {
		x.Opts.Stats.Committed(a.Kind)
	}
	return as
}

// Pause waits, and injects the faults that become due.
func (x *exchange) Pause(d time.Duration) error {
	until := time.Now().Add(d)
	for len(x.timed) > 0 && !x.begun.Add(x.timed[0].After).After(until) {
		next := x.timed[0]
		x.timed = x.timed[1:]
		if err := x.wait(time.Until(x.begun.Add(next.After))); err != nil {
			return err
		}
		if err := x.do(next.Action); err != nil {
			return err
		}
	}
	return x.wait(time.Until(until))
}

func (x *exchange) wait(d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-x.ctx.Done():
		}
	}
	if x.ctx.Err() != nil {
		return x.end()
	}
	return nil
}

func (x *exchange) JSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("rest: encode the answer: %w", err)
	}
	if err := x.At(fault.Point{At: fault.AtFrame, Turn: 1}); err != nil {
		return err
	}
	if err := x.Pause(0); err != nil {
		return err
	}
	x.head(http.StatusOK, "application/json")
	if x.mangle {
		b = b[:len(b)/2]
	}
	x.raw(b)
	return nil
}

func (x *exchange) Stream() error {
	if err := x.Pause(0); err != nil {
		return err
	}
	x.stream = true
	x.w.Header().Set("Cache-Control", "no-cache")
	x.head(http.StatusOK, "text/event-stream; charset=utf-8")
	return nil
}

// Event sends one event of a stream, after the faults that are due at it. name is its name in
// a fault script; it is not sent.
func (x *exchange) Event(name string, data []byte) error {
	for _, p := range []fault.Point{{At: fault.AtFrame, Turn: 1}, {At: fault.AtEvent, Turn: 1, Event: name}} {
		if err := x.At(p); err != nil {
			return err
		}
	}
	if x.ctx.Err() != nil {
		return x.end()
	}
	if time.Now().Before(x.muteUntil) {
		return nil
	}
	if x.mangle {
		x.mangle = false
		data = data[:len(data)/2]
	}
	x.raw(event("", data))
	return nil
}

// event encodes a server-sent event (WHATWG HTML, 9.2). JSON contains no line breaks.
func event(name string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(name)+20)
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// OpenAIKeyOf returns the key of a request: Authorization: Bearer, or Azure's api-key.
func OpenAIKeyOf(r *http.Request) string {
	if k := r.Header.Get("Api-Key"); k != "" {
		return k
	}
	if scheme, k, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(k)
	}
	return ""
}

// GoogleKeyOf returns the credential of a request: query key or access_token, x-goog-api-key, or
// Authorization: Bearer or Token.
func GoogleKeyOf(r *http.Request) string {
	q := r.URL.Query()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Token") {
		token = ""
	}
	return cmp.Or(q.Get("key"), q.Get("access_token"), r.Header.Get("X-Goog-Api-Key"), OpenAIKeyOf(r), strings.TrimSpace(token))
}

// API is a provider's API whose paths begin with a version.
type API int

const (
	GeminiAPI API = iota // Google's Gemini Developer API
	VertexAI             // Google's Vertex AI
	OpenAIAPI            // OpenAI's, and the endpoints of others that are compatible with it
)

// versions has every version that an official client uses by default or the documentation recommends, with the newest
// client that does (the sources of the npm and Go packages, and the README of PyPI's google-genai, read 2026-11-29).
// The simulator serves only these.
var versions = []struct {
	api     API
	version string
	client  string
}{
	{GeminiAPI, "v1", "npm @google/genai 3.3"},
	{GeminiAPI, "v1beta", "Go genai 1.77, PyPI google-genai, npm @google/genai 2"},
	{GeminiAPI, "v1alpha", "the same, for ephemeral tokens and proactive audio"},
	{VertexAI, "v1beta1", "npm @google/genai 3.3, Go genai 1.77, PyPI google-genai"},
	{VertexAI, "v1", "the same with GOOGLE_GENAI_API_VERSION; Vertex' own pages"},
	{OpenAIAPI, "v1", "npm openai 7.59, Go openai-go 3.99, npm @openai/agents-realtime 0.20"},
	{OpenAIAPI, "openai/v1", "the same at Azure"},
	{OpenAIAPI, "v1beta/openai", "the same at Google's compatible endpoint"},
}

// Versions returns a regular expression without groups that matches the versions of some APIs.
func Versions(apis ...API) string {
	var all []string
	for _, api := range apis {
		for _, v := range versions {
			if v.api == api {
				all = append(all, regexp.QuoteMeta(v.version))
			}
		}
	}
	return "(?:" + strings.Join(all, "|") + ")"
}

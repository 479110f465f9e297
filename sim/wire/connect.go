package wire

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/fault"
)

// Serve runs one connection of an API from its handshake to its end. It injects the faults that
// come before the answer to the handshake, upgrades the request and calls run, which owns the
// connection until it returns, with the other faults of the handshake.
func (o *Options) Serve(w http.ResponseWriter, r *http.Request, api fault.API, c ConnOptions, run func(*Conn, Begin, []fault.Action)) {
	begin := o.Begin(api)
	c.Faults, c.Stats = begin.Faults, o.Stats
	ctx, end := context.WithCancel(context.Background())
	defer end()
	leave, open := o.Group.Enter(end)
	defer leave()
	if !open && !c.UpgradeFirst {
		c.Answer(fault.Action{Kind: fault.HTTPError, Code: http.StatusServiceUnavailable, Reason: unavailable})
		return
	}
	rest, ok := c.connect(ctx, w, r)
	if !ok {
		return
	}
	ws, err := Accept(w, r, c)
	if err != nil {
		o.Logger.Info("handshake failed", "api", string(api), "conn", begin.N, "error", err)
		return
	}
	defer ws.Release()
	if !open {
		ws.Close(int(websocket.StatusGoingAway), ShuttingDown)
		return
	}
	defer o.Group.Attach(r.RemoteAddr, ws)()
	defer context.AfterFunc(ctx, ws.End)()
	o.Stats.Connections.Add(1)
	o.Stats.Open.Add(1)
	defer o.Stats.Open.Add(-1)
	run(ws, begin, rest)
}

// ShuttingDown is the reason of a close by an ending server.
const ShuttingDown = "The simulator is shutting down."

const unavailable = "The service is currently unavailable."

// connect injects the faults of the handshake. It returns those that need the connection, and
// false if the request has been answered.
func (o *ConnOptions) connect(server context.Context, w http.ResponseWriter, r *http.Request) (rest []fault.Action, ok bool) {
	for _, a := range o.Faults.At(fault.Point{At: fault.AtConnect}) {
		if a.Kind == fault.HTTPError {
			RetryAfter(w, a.For)
		}
		switch {
		case a.Kind == fault.Delay || a.Kind == fault.Silence && !o.UpgradeFirst:
			o.Stats.Committed(a.Kind)
			if !pause(server, r.Context(), a) {
				o.Answer(fault.Action{Kind: fault.HTTPError, Code: http.StatusServiceUnavailable, Reason: unavailable})
				return nil, false
			}
		case a.Kind == fault.Drop:
			o.Stats.Committed(a.Kind)
			// The server closes the TCP connection without an answer.
			panic(http.ErrAbortHandler)
		case o.Answer(a):
			o.Stats.Committed(a.Kind)
			return nil, false
		default:
			rest = append(rest, a)
		}
	}
	return rest, true
}

// pause waits for the end of a delay or a silence; false if the server or the client ends first, or the silence is
// endless.
func pause(server, client context.Context, a fault.Action) bool {
	var due <-chan time.Time
	if a.Kind == fault.Delay || a.For > 0 {
		t := time.NewTimer(a.For)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
		return true
	case <-server.Done():
	case <-client.Done():
	}
	return false
}

// RetryAfter sets the headers for a retry after d, in whole seconds, rounded up, and in ms for OpenAI's clients. Zero
// sets nothing.
func RetryAfter(w http.ResponseWriter, d time.Duration) {
	if d <= 0 {
		return
	}
	w.Header().Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	w.Header().Set("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
}

// StatusName returns Google's word for an HTTP status (https://cloud.google.com/apis/design/errors, read 2026-11-20).
func StatusName(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	return "INTERNAL"
}

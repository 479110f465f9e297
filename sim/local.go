package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Local is a simulator that listens on an address of this machine.
type Local struct {
	Server *Server

	listener net.Listener
	http     *http.Server
	// served carries the result of http.Serve from its goroutine to Close; capacity 1,
	// so that the goroutine never waits. It is never closed.
	served chan error
}

// Start listens on addr ("127.0.0.1:0" if it is empty) and serves until Close.
func Start(ctx context.Context, addr string, o Options) (*Local, error) {
	addr = cmp.Or(addr, "127.0.0.1:0")
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("sim: listen on %s: %w", addr, err)
	}
	l := &Local{Server: New(o), listener: ln, served: make(chan error, 1)}
	l.http = &http.Server{Handler: l.Server, ReadHeaderTimeout: 10 * time.Second}
	go func() { l.served <- l.http.Serve(ln) }() // Close waits for this goroutine
	return l, nil
}

// Addr is the address it listens on, as host:port.
func (l *Local) Addr() string { return l.listener.Addr().String() }

// URL is the base URL for clients of a wire, "gemini" or "openai"; empty for a wire that the simulator does not speak.
func (l *Local) URL(wire string) string {
	switch wire {
	case "gemini":
		return l.GeminiURL()
	case "openai":
		return l.OpenAIURL()
	default:
		return ""
	}
}

// OpenAIURL is the base URL for clients of OpenAI: http://host:port/v1.
func (l *Local) OpenAIURL() string { return "http://" + l.Addr() + "/v1" }

// GeminiURL is the base URL for clients of Gemini: http://host:port. (For live sessions
// Google's Go client needs the same with ws://.)
func (l *Local) GeminiURL() string { return "http://" + l.Addr() }

// Close stops listening, ends all connections and waits for them.
func (l *Local) Close() error {
	err := l.http.Close()
	err = errors.Join(err, l.Server.Close())
	if served := <-l.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Package mcp speaks the Model Context Protocol, versions 2024-11-05 to 2026-07-28 (modelcontextprotocol.io, read
// 2026-11-29), as a client and as a server.
//
// A [Client] runs tools of MCP servers. A lock file, which a person reviews, names the tools that may be used and pins
// the servers' words about them. A tool that has changed since is not called.
//
// A [Server] serves the gateway's tools to MCP clients. Each call is a conversation of its own in text mode, with the
// policy, ledger, approvals and audit of text.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/bounded"
	"voicegw/internal/process"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Remote is how to reach an MCP server: by HTTP, or as a program that speaks over its standard input and output.
type Remote struct {
	URL string
	// Headers are sent with every request. UserHeader carries the user of the call, if a trusted caller named the user.
	Headers    http.Header
	UserHeader string
	// Command is the program with its arguments, Env its whole environment, as NAME=value.
	Command []string
	Env     []string
}

// Client keeps a connection to each server. It is safe for concurrent use.
type Client struct {
	logger *slog.Logger

	mu      sync.Mutex // guards the fields below
	servers map[string]*connection
}

// NewClient returns a Client without servers.
func NewClient(logger *slog.Logger) *Client {
	return &Client{logger: logger.With("component", "mcp"), servers: map[string]*connection{}}
}

// Use connects to the servers, and ends the connections to others and to servers that have changed. It waits for their end.
func (c *Client) Use(servers map[string]Remote, tools []*Tool) {
	if c == nil {
		return
	}
	var ended sync.WaitGroup
	defer ended.Wait() // after the lock is released: calls of other servers continue
	c.mu.Lock()
	defer c.mu.Unlock()
	pins := map[string]map[string]string{}
	for _, t := range tools {
		if pins[t.Server] == nil {
			pins[t.Server] = map[string]string{}
		}
		pins[t.Server][t.name] = t.Pin
	}
	for name, s := range c.servers {
		if of, keep := servers[name]; !keep || !reflect.DeepEqual(of, s.server) || !maps.Equal(pins[name], s.pins) {
			ended.Go(s.end)
			delete(c.servers, name)
		}
	}
	for name, of := range servers {
		if c.servers[name] == nil && len(pins[name]) > 0 {
			c.servers[name] = connect(name, of, pins[name], c.logger)
		}
	}
}

// Close ends all connections and programs, and waits for them.
func (c *Client) Close() {
	c.Use(nil, nil)
}

func (c *Client) server(name string) *connection {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[name]
}

// Status is the state of a server.
type Status struct {
	Server string
	Up     bool
	// Changed are the tools that the server lacks, or that it has changed since they were pinned.
	Changed int
}

// Status returns the state of each server, sorted by name.
func (c *Client) Status() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(c.servers)) {
		now := c.servers[name].now()
		s := Status{Server: name, Up: now.session != nil}
		if s.Up {
			for tool, pin := range c.servers[name].pins {
				if now.pins[tool] != pin {
					s.Changed++
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// connection is the connection to a server, which one goroutine keeps.
type connection struct {
	server Remote
	pins   map[string]string // the approved ones, by the server's names
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	relist chan struct{} // holds a value if the tools may have changed

	mu    sync.Mutex // guards the fields below
	state state
	calls map[string]registry.Progress // by token
	token int
}

// state is a connection's. Without a session and an error, it is about to be connected.
type state struct {
	session *sdk.ClientSession
	pins    map[string]string // of the server's tools, by its names
	err     error
	changed chan struct{} // closed when the state is no longer this one
}

const (
	connectTime = 20 * time.Second
	firstPause  = time.Second
	longPause   = time.Minute
	// settled is the age at which a connection that is lost is opened again at once.
	settled = 5 * time.Second
	// lookAgain is the longest time between two looks at the server's tools.
	lookAgain = 5 * time.Minute
	maxTools  = 1000
	// graceful is the time between closing the input of a program and killing it.
	graceful = 2 * time.Second
)

var (
	errTooMany = fmt.Errorf("the server has more than %d tools", maxTools)
	errEnded   = errors.New("the connection has ended")
)

func connect(name string, of Remote, pins map[string]string, logger *slog.Logger) *connection {
	ctx, cancel := context.WithCancel(context.Background())
	s := &connection{server: of, pins: pins, logger: logger.With("server", name), cancel: cancel, done: make(chan struct{}),
		relist: make(chan struct{}, 1), state: state{changed: make(chan struct{})}, calls: map[string]registry.Progress{}}
	go s.run(ctx)
	return s
}

func (s *connection) end() {
	s.cancel()
	<-s.done
}

func (s *connection) now() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *connection) become(next state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.state.changed)
	next.changed = make(chan struct{})
	s.state = next
}

// run keeps the connection until ctx ends.
func (s *connection) run(ctx context.Context) {
	defer close(s.done)
	for pause := firstPause; ctx.Err() == nil; {
		began := time.Now()
		err := s.serve(ctx)
		if time.Since(began) > settled {
			pause = firstPause
			if s.now().session != nil {
				s.become(state{}) // calls wait for the next connection
				continue
			}
		}
		s.become(state{err: err})
		if ctx.Err() != nil {
			return
		}
		s.logger.Warn("an MCP server cannot be used; calls of its tools fail", "error", err, "again_after", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, longPause)
	}
}

// serve connects, and returns when the connection has ended.
func (s *connection) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, closeAll, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	for {
		soonest := time.After(time.Second) // a server that says so all the time is asked once a second
		if err := s.look(ctx, session); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return errors.Join(errEnded, err)
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's
		case <-s.relist:
		case <-time.After(lookAgain):
		}
		select {
		case <-soonest:
		case <-ctx.Done():
		}
	}
}

// look compares the server's tools with the approved ones.
func (s *connection) look(ctx context.Context, session *sdk.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	tools, err := list(ctx, session)
	if err != nil {
		return err
	}
	pins := map[string]string{}
	for _, t := range tools {
		if pins[t.Name], err = t.Pin(); err != nil {
			s.logger.Warn("a tool cannot be used", "tool", t.Name, "error", err)
		}
	}
	was := s.now()
	if was.session == session && maps.Equal(was.pins, pins) {
		return nil
	}
	s.become(state{session: session, pins: pins})
	for _, name := range slices.Sorted(maps.Keys(s.pins)) {
		switch pin, has := pins[name]; {
		case !has:
			s.logger.Error("an approved tool is gone; it is disabled", "tool", name)
		case pin != s.pins[name]:
			s.logger.Error("a server has changed a tool since it was approved; it is disabled. See voicegw mcp diff", "tool", name)
		}
	}
	return nil
}

// list returns a server's statements about its tools.
func list(ctx context.Context, session *sdk.ClientSession) ([]Said, error) {
	var all []Said
	params := &sdk.ListToolsParams{}
	for {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("listing its tools: %w", err)
		}
		for _, t := range page.Tools {
			said, err := saidOf(t)
			if err != nil {
				return nil, err
			}
			if all = append(all, said); len(all) > maxTools {
				return nil, errTooMany
			}
		}
		if page.NextCursor == "" || page.NextCursor == params.Cursor || len(page.Tools) == 0 {
			return all, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}

// open connects to the server. closeAll ends the connection and its program.
func (s *connection) open(ctx context.Context) (session *sdk.ClientSession, closeAll func(), err error) {
	var closing func()
	var transport sdk.Transport
	if s.server.URL != "" {
		g := newGuard(&s.server)
		closing = g.close
		transport = &sdk.StreamableClientTransport{Endpoint: s.server.URL, HTTPClient: bounded.Unfollowed(g), MaxEventSize: 2 * maxEvent}
	} else {
		cmd := exec.Command(s.server.Command[0], s.server.Command[1:]...) //nolint:gosec,noctx // the operator names it; closing ends it
		cmd.Env = s.server.Env
		p, err := process.StartChild(cmd, func(line string) {
			s.logger.Debug("the program says", "line", document.OneLine(line, maxSaid))
		})
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // it says what failed
		}
		closing = func() {
			_ = p.In.Close()     // it may have ended
			_ = p.Wait(graceful) // how it ended does not matter
		}
		transport = &sdk.IOTransport{Reader: io.NopCloser(newLines(p.Out, messages(func(why string) {
			s.logger.Warn("the program wrote a line that is not JSON-RPC", "error", why)
		}))), Writer: p.In, MaxLineLength: 2 * maxEvent}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "voicegw", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case s.relist <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: s.progressed,
	})
	client.AddReceivingMiddleware(refuse)
	connecting, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	session, err = client.Connect(connecting, transport, nil)
	if err != nil {
		closing()
		return nil, nil, fmt.Errorf("connecting: %w", err)
	}
	return session, func() {
		_ = session.Close() // a server that does not answer is left
		closing()
	}, nil
}

// refuse answers requests of the server: sampling, roots and elicitation do not exist here.
func refuse(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "roots/list", "sampling/createMessage", "elicitation/create":
			return nil, errNotOffered
		}
		return next(ctx, method, req)
	}
}

var errNotOffered = errors.New("not offered")

func (s *connection) progressed(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	s.mu.Lock()
	call, known := s.calls[token]
	s.mu.Unlock()
	if !known {
		return
	}
	text, fraction := r.Params.Message, -1.0
	if r.Params.Total > 0 {
		fraction = min(max(r.Params.Progress/r.Params.Total, 0), 1)
		text = cmp.Or(text, fmt.Sprintf("%v / %v", r.Params.Progress, r.Params.Total))
	}
	call.Tell(document.CleanText(text), fraction)
}

// Ask connects to a server, and returns its statements about its tools, by name.
func Ask(ctx context.Context, name string, of Remote, logger *slog.Logger) (map[string]Said, error) {
	s := &connection{server: of, logger: logger.With("server", name)}
	session, closeAll, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	all, err := list(ctx, session)
	by := map[string]Said{}
	for _, said := range all {
		by[said.Name] = said
	}
	return by, err
}

package jstool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"

	"voicegw/internal/bounded"
	"voicegw/internal/process"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Limits of the hosts of a process.
const (
	maxHosts = 4
	// maxPrograms limits the programs that a host keeps. Then another one replaces it.
	maxPrograms = 512
	// grace is how long a host has to stop a call that should have ended.
	grace = 100 * time.Millisecond
	// freeDeaths is how many hosts may die in a row, without a completed call, before the next one has to wait.
	freeDeaths = 5
	maxPause   = 30 * time.Second
	maxQueue   = 64 // messages to a host
	idleTime   = 5 * time.Minute
)

// Hosts are the tool hosts of this process. They start when they are needed. It may be used concurrently.
type Hosts struct {
	// Fixed after New.
	command []string
	logger  *slog.Logger
	public  *bounded.Outbound
	private *bounded.Outbound
	idle    time.Duration

	mu        sync.Mutex // guards the following, and the hosts
	hosts     []*host
	calls     uint64    // the number of the last call
	deaths    int       // in a row
	notBefore time.Time // when another host may start
	closed    bool

	running sync.WaitGroup // goroutines
}

// New returns hosts that are not started yet. command are the arguments with which this program is a tool host: it calls
// [Serve]. The caller closes them.
func New(command []string, logger *slog.Logger) *Hosts {
	limits := bounded.Limits{Service: "fetch", Bytes: maxFetched}
	return &Hosts{command: command, logger: logger, idle: idleTime, public: bounded.NewOutbound(false, maxHostConns, limits),
		private: bounded.NewOutbound(true, maxHostConns, limits)}
}

// Close ends the hosts and waits for them.
func (p *Hosts) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	for _, h := range p.hosts {
		h.kill(errClosed)
	}
	p.mu.Unlock()
	p.running.Wait()
	p.public.Close()
	p.private.Close()
}

var (
	errClosed = errors.New("the gateway stops")
	errEnded  = errors.New("it ended by itself")
	errIdle   = errors.New("it had no calls for a while")
	errPause  = errors.New("tool hosts have died one after another; the next one starts soon")
)

func (p *Hosts) warn(tool, session, text string) {
	p.logger.Warn("a tool in JavaScript", "tool", tool, "session_id", session, "warning", text)
}

// host is a running host, seen from the gateway.
type host struct {
	pool  *Hosts // fixed, like the next ones
	child *process.Child
	idle  *time.Timer   // calls retire
	out   chan []byte   // lines for the host; not closed
	dead  chan struct{} // closed when the host has ended

	// Guarded by Hosts.mu.
	calls    map[uint64]*pending
	programs map[string]bool
	killed   error  // why it was killed, or errEnded; nil while it runs
	said     string // the beginning of its stderr, which says why it died
}

type pending struct {
	id       uint64
	tool     *Tool
	call     toolCall
	done     chan *doneMessage // capacity 1; not closed
	ctx      context.Context   //nolint:containedctx // of the call; fetches end with it
	fetching int               // guarded by Hosts.mu
	culprit  bool              // its host is killed because of it; guarded by Hosts.mu
}

// run runs a call and returns when it has ended or ctx is done.
func (p *Hosts) run(ctx context.Context, t *Tool, given json.RawMessage, call toolCall) (*doneMessage, error) {
	c := &pending{tool: t, call: call, done: make(chan *doneMessage, 1), ctx: ctx}
	h, err := p.begin(c, given)
	if err != nil {
		return nil, registry.Lost(t.spec, false, err, prompts.ToolHostUnavailable(t.spec.ToolID))
	}
	select {
	case done := <-c.done:
		p.mu.Lock()
		p.deaths = 0
		p.mu.Unlock()
		return done, nil
	case <-h.dead:
		return h.died(c)
	case <-ctx.Done():
		h.stop(c)
		return nil, ctx.Err() // the registry knows why
	}
}

func (p *Hosts) begin(c *pending, given json.RawMessage) (*host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.choose()
	if err != nil {
		return nil, err
	}
	p.calls++
	c.id = p.calls
	end, _ := c.ctx.Deadline() // the registry sets one
	m := &callMessage{ID: c.id, Program: c.tool.bundle.hash, Context: given, Millis: max(1, (time.Until(end) + grace/2).Milliseconds())}
	if !h.programs[m.Program] {
		m.Code = c.tool.bundle.code
	}
	if err := h.send(toHost{Call: m}); err != nil {
		return nil, err
	}
	h.calls[c.id], h.programs[m.Program] = c, true
	return h, nil
}

// choose finds a host for a call: one without calls, a new one, or the one with the fewest calls.
func (p *Hosts) choose() (*host, error) {
	if p.closed {
		return nil, errClosed
	}
	var best *host
	for _, h := range p.hosts {
		if h.usable() && (best == nil || len(h.calls) < len(best.calls)) {
			best = h
		}
	}
	if (best == nil || len(best.calls) > 0) && len(p.hosts) < maxHosts && time.Now().After(p.notBefore) {
		if h, err := p.start(); err == nil || best == nil {
			return h, err
		}
	}
	if best == nil {
		return nil, errPause
	}
	return best, nil
}

// start starts a host. The caller holds mu.
func (p *Hosts) start() (*host, error) {
	name, err := self()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(name, p.command...) //nolint:gosec,noctx // this program; it ends with the pool
	cmd.Env = []string{"GOTRACEBACK=none", "TZ=UTC"}
	cmd.Dir = "/"
	h := &host{pool: p, out: make(chan []byte, maxQueue), dead: make(chan struct{}), calls: map[uint64]*pending{},
		programs: map[string]bool{}}
	if h.child, err = process.StartChild(cmd, h.says); err != nil {
		return nil, fmt.Errorf("a tool host: %w", err)
	}
	h.idle = time.AfterFunc(p.idle, h.retire)
	p.hosts = append(p.hosts, h)
	p.running.Go(h.write)
	p.running.Go(h.read)
	p.logger.Debug("tool host started", "pid", h.child.PID())
	return h, nil
}

func (h *host) retire() {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if len(h.calls) == 0 {
		h.kill(errIdle)
	}
}

func (h *host) says(line string) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.said = document.Shorten(h.said+line+"\n", maxText)
}

func (h *host) write() {
	defer func() { _ = h.child.In.Close() }() // the host may have closed it
	for {
		select {
		case line := <-h.out:
			if _, err := h.child.In.Write(line); err != nil {
				return // the host has died, which read notices
			}
		case <-h.dead:
			return
		}
	}
}

// read takes the host's messages until it ends.
func (h *host) read() {
	p := h.pool
	failed := receive(h.child.Out, h.take)
	p.mu.Lock()
	h.kill(cmp.Or(failed, errEnded))
	p.mu.Unlock()
	ended := h.child.Wait(0)
	h.idle.Stop()
	p.mu.Lock()
	why, said := h.killed, h.said
	p.hosts = slices.DeleteFunc(p.hosts, func(other *host) bool { return other == h })
	wanted := p.closed || errors.Is(why, errIdle)
	if !wanted {
		p.deaths++
	}
	if p.deaths > freeDeaths {
		p.notBefore = time.Now().Add(min(maxPause, time.Second<<min(p.deaths-freeDeaths-1, 10)))
	}
	p.mu.Unlock()
	if !wanted {
		p.logger.Warn("a tool host has ended", "pid", h.child.PID(), "reason", why, "status", fmt.Sprint(ended), "stderr", said)
	}
	close(h.dead)
}

// usable reports whether it takes calls. With too many programs it ends after the last call.
func (h *host) usable() bool {
	full := len(h.programs) >= maxPrograms
	if full && len(h.calls) == 0 {
		h.kill(errors.New("it keeps the programs of many versions"))
	}
	return h.killed == nil && !full
}

// send sends a message, unless the host does not read.
func (h *host) send(m toHost) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	select {
	case h.out <- line:
		return nil
	default:
		return errors.New("the tool host does not read")
	}
}

// stop ends a call, and the host if that does not stop it in time.
func (h *host) stop(c *pending) {
	_ = h.send(toHost{Cancel: c.id}) // otherwise the host is killed
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-h.dead:
	case <-timer.C:
		h.pool.mu.Lock()
		c.culprit = true
		h.kill(fmt.Errorf("the tool %s did not stop", c.tool.spec.ToolID))
		h.pool.mu.Unlock()
	}
	h.drop(c.id)
}

func (h *host) drop(id uint64) *pending {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	c := h.calls[id]
	if delete(h.calls, id); len(h.calls) == 0 {
		h.idle.Reset(h.pool.idle)
	}
	return c
}

// kill kills the host. The caller holds the pool's mu.
func (h *host) kill(why error) {
	if h.killed == nil {
		h.killed = why
		h.child.Kill()
	}
}

// died returns the outcome of a call whose host has ended. If the call was not alone there, it may not be the cause.
func (h *host) died(c *pending) (*doneMessage, error) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	select {
	case done := <-c.done: // at the same moment
		return done, nil
	default:
	}
	if !errors.Is(h.killed, errEnded) && !c.culprit {
		return nil, registry.Lost(c.tool.spec, true, h.killed, prompts.ToolHostRestarted(c.tool.spec.ToolID))
	}
	return nil, fmt.Errorf("the tool host died, with %d calls", len(h.calls))
}

// take carries out a message of the host.
func (h *host) take(m fromHost) {
	if m.Done != nil {
		if c := h.drop(m.Call); c != nil {
			c.done <- m.Done
		}
		return
	}
	h.pool.mu.Lock()
	c := h.calls[m.Call]
	fetch := c != nil && m.Fetch != nil && c.fetching < maxFetches
	if fetch {
		c.fetching++
	}
	h.pool.mu.Unlock()
	switch {
	case c == nil || c.ctx.Err() != nil:
	case fetch:
		h.pool.running.Go(func() {
			answer, err := h.pool.fetch(c.ctx, c.tool, m.Fetch, c.call)
			if err != nil {
				answer = &fetched{Error: document.Shorten(err.Error(), maxText)}
			}
			answer.Call, answer.Request = c.id, m.Fetch.Request
			h.pool.mu.Lock()
			c.fetching--
			h.pool.mu.Unlock()
			_ = h.send(toHost{Fetched: answer}) // otherwise the call runs out of time
		})
	case m.Log != nil:
		var level slog.Level
		_ = level.UnmarshalText([]byte(m.Log.Level)) // otherwise it is info
		h.pool.logger.Log(c.ctx, level, "console of a tool", "tool", c.tool.spec.ToolID, "session_id", c.call.Session.ID,
			"text", m.Log.Text)
	case m.Send != "":
		h.pool.sent(c.tool, m.Send, c.call)
	}
}

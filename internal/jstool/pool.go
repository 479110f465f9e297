package jstool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"

	"voicegw/internal/bounded"
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
	maxStderr  = 2 << 10
)

// Hosts are the tool hosts of this process. They start when they are needed. It may be used concurrently.
type Hosts struct {
	// Fixed after New.
	command []string
	logger  *slog.Logger
	public  *bounded.Outbound
	private *bounded.Outbound

	mu        sync.Mutex // guards the following
	hosts     []*process
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
	return &Hosts{command: command, logger: logger, public: bounded.NewOutbound(false, maxHostConns, limits),
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
	errPause  = errors.New("tool hosts have died one after another; the next one starts soon")
)

func (p *Hosts) warn(tool, session, text string) {
	p.logger.Warn("a tool in JavaScript", "tool", tool, "session_id", session, "warning", text)
}

// process is a running host.
type process struct {
	pool *Hosts // fixed, like cmd and out
	cmd  *exec.Cmd
	out  chan []byte   // lines for the host; not closed
	dead chan struct{} // closed when the host has ended

	mu       sync.Mutex // guards the following
	calls    map[uint64]*pending
	programs map[string]bool
	killed   error // why it was killed, or errEnded; nil while it runs
}

// pending is a call in a host.
type pending struct {
	id       uint64
	tool     *Tool
	call     registry.Call[json.RawMessage, needs]
	done     chan *doneMessage // capacity 1; not closed
	ctx      context.Context   //nolint:containedctx // of the call; fetches end with it
	fetching int               // guarded by process.mu
	culprit  bool              // its host is killed because of it; guarded by process.mu
}

// run runs a call and returns when it has ended or ctx is done.
func (p *Hosts) run(ctx context.Context, t *Tool, given json.RawMessage, call registry.Call[json.RawMessage, needs]) (*doneMessage, error) {
	end, _ := ctx.Deadline() // the registry sets one
	c := &pending{tool: t, call: call, done: make(chan *doneMessage, 1), ctx: ctx}
	h, err := p.reserve(c)
	if err != nil {
		return nil, t.unavailable(err)
	}
	m := &callMessage{ID: c.id, Program: t.bundle.hash, Context: given, Millis: max(1, (time.Until(end) + grace/2).Milliseconds())}
	if err := h.call(m, t.bundle.code); err != nil {
		h.drop(c.id)
		return nil, t.unavailable(err)
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

// reserve finds a host for a call: one without calls, a new one, or the one with the fewest calls.
func (p *Hosts) reserve(c *pending) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	p.calls++
	c.id = p.calls
	var best *process
	fewest := 0
	for _, h := range p.hosts {
		if n := h.load(); best == nil || n < fewest {
			best, fewest = h, n
		}
	}
	if (best == nil || fewest > 0) && len(p.hosts) < maxHosts && time.Now().After(p.notBefore) {
		h, err := p.start()
		if err == nil {
			best = h
		} else if best == nil {
			return nil, err
		}
	}
	if best == nil {
		return nil, errPause
	}
	best.mu.Lock()
	best.calls[c.id] = c
	best.mu.Unlock()
	return best, nil
}

// start starts a host. The caller holds mu.
func (p *Hosts) start() (*process, error) {
	name, err := self()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(name, p.command...) //nolint:gosec,noctx // this program; it ends with the pool
	cmd.Env = []string{"GOTRACEBACK=none", "TZ=UTC"}
	cmd.Dir = "/"
	cmd.SysProcAttr = processAttributes()
	stderr := &head{}
	cmd.Stderr = stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := cmp.Or(inErr, outErr); err != nil {
		return nil, fmt.Errorf("starting a tool host: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a tool host: %w", err)
	}
	h := &process{pool: p, cmd: cmd, out: make(chan []byte, maxQueue), dead: make(chan struct{}),
		calls: map[uint64]*pending{}, programs: map[string]bool{}}
	p.hosts = append(p.hosts, h)
	p.running.Go(func() { h.write(in) })
	p.running.Go(func() { h.read(out, stderr) })
	p.logger.Debug("tool host started", "pid", cmd.Process.Pid)
	return h, nil
}

// head keeps the beginning of a host's stderr, which says why it died.
type head struct{ bytes.Buffer }

func (w *head) Write(b []byte) (int, error) {
	if left := maxStderr - w.Len(); left > 0 {
		w.Buffer.Write(b[:min(left, len(b))])
	}
	return len(b), nil
}

func (h *process) write(in io.WriteCloser) {
	defer func() { _ = in.Close() }() // the host may have closed it
	for {
		select {
		case line := <-h.out:
			if _, err := in.Write(line); err != nil {
				return // the host has died, which read notices
			}
		case <-h.dead:
			return
		}
	}
}

// read takes the host's messages until it ends.
func (h *process) read(out io.Reader, stderr *head) {
	why := receive(out, h.take)
	h.mu.Lock()
	h.killLocked(cmp.Or(why, errEnded))
	why = h.killed
	h.mu.Unlock()
	ended := h.cmd.Wait()
	p := h.pool
	p.mu.Lock()
	p.hosts = slices.DeleteFunc(p.hosts, func(other *process) bool { return other == h })
	closed := p.closed
	if p.deaths++; p.deaths > freeDeaths && !closed {
		p.notBefore = time.Now().Add(min(maxPause, time.Second<<min(p.deaths-freeDeaths-1, 10)))
	}
	p.mu.Unlock()
	if !closed {
		p.logger.Warn("a tool host has ended", "pid", h.cmd.Process.Pid, "reason", why, "status", fmt.Sprint(ended),
			"stderr", document.Shorten(stderr.String(), maxText))
	}
	close(h.dead)
}

// load is the number of its calls. A host with too many programs takes no more calls, and ends after the last one.
func (h *process) load() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.killed != nil:
		return 1 << 20
	case len(h.programs) < maxPrograms:
		return len(h.calls)
	case len(h.calls) == 0:
		h.killLocked(errors.New("it keeps the programs of many versions"))
	}
	return 1 << 20
}

// call sends a call.
func (h *process) call(m *callMessage, code string) error {
	h.mu.Lock()
	defer h.mu.Unlock() // so that the program is there before another call needs it
	if !h.programs[m.Program] {
		m.Code = code
	}
	err := h.send(toHost{Call: m})
	if err == nil {
		h.programs[m.Program] = true
	}
	return err
}

// send sends a message, unless the host does not read.
func (h *process) send(m toHost) error {
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
func (h *process) stop(c *pending) {
	_ = h.send(toHost{Cancel: c.id}) // otherwise the host is killed
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-h.dead:
	case <-timer.C:
		h.mu.Lock()
		c.culprit = true
		h.killLocked(fmt.Errorf("the tool %s did not stop", c.tool.spec.ToolID))
		h.mu.Unlock()
	}
	h.drop(c.id)
}

func (h *process) drop(id uint64) *pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.calls[id]
	delete(h.calls, id)
	return c
}

func (h *process) kill(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killLocked(why)
}

func (h *process) killLocked(why error) {
	if h.killed == nil {
		h.killed = why
		_ = h.cmd.Process.Kill() // it may have ended
	}
}

// died returns the outcome of a call whose host has ended. If the call was not alone there, it may not be the cause.
func (h *process) died(c *pending) (*doneMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
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
func (h *process) take(m fromHost) {
	if m.Done != nil {
		if c := h.drop(m.Call); c != nil {
			c.done <- m.Done
		}
		return
	}
	h.mu.Lock()
	c := h.calls[m.Call]
	fetch := c != nil && m.Fetch != nil && c.fetching < maxFetches
	if fetch {
		c.fetching++
	}
	h.mu.Unlock()
	switch {
	case c == nil || c.ctx.Err() != nil:
	case fetch:
		h.pool.running.Go(func() {
			answer := h.pool.fetch(c.ctx, c.tool, m.Fetch, c.call)
			answer.Call, answer.Request = c.id, m.Fetch.Request
			h.mu.Lock()
			c.fetching--
			h.mu.Unlock()
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

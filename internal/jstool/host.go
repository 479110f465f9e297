package jstool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"voicegw/registry/document"
)

// Limits of a tool host.
const (
	// maxLive limits the living objects, in bytes. Garbage may come on top, up to softMemory. The system ends a host with
	// more than dataLimit, which happens if one object is as large.
	maxLive    = 256 << 20
	softMemory = 384 << 20
	dataLimit  = 768 << 20
	// maxStack limits the stack of a goroutine, in bytes, and maxDepth the depth of calls in JavaScript.
	maxStack = 128 << 20
	maxDepth = 5000
	// matchTime limits a match of a regular expression that Go's own package cannot express. Interrupts do not stop it.
	matchTime   = 100 * time.Millisecond
	hostThreads = 2
)

// Serve runs a tool host: it reads calls from in, runs each in a virtual machine of its own, and writes the results to
// out, until in ends. It changes limits of the whole process, so nothing else may run there.
func Serve(in io.Reader, out io.Writer) error {
	regexp2.DefaultMatchTimeout = matchTime
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(softMemory)
	runtime.GOMAXPROCS(hostThreads)
	if err := limitProcess(); err != nil {
		return fmt.Errorf("limiting the tool host: %w", err)
	}
	full, done := make(chan struct{}, 1), make(chan error, 1)
	watchMemory(full)
	go func() { done <- newWorker(out).serve(in) }() // ends with the process
	select {
	case err := <-done:
		return err
	case <-full:
		return fmt.Errorf("out of memory: the tools of this host use more than %d MiB", maxLive>>20)
	}
}

// watchMemory sends to full after a garbage collection that leaves more than maxLive.
func watchMemory(full chan<- struct{}) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtime.SetFinalizer(&struct{ _ [16]byte }{}, func(*struct{ _ [16]byte }) {
		if metrics.Read(live); live[0].Value.Uint64() > maxLive {
			full <- struct{}{}
			return
		}
		watchMemory(full)
	})
}

// worker is the child's side of the protocol.
type worker struct {
	programs map[string]func() (*goja.Program, error) // only for the goroutine that reads

	mu    sync.Mutex // guards calls
	calls map[uint64]*vmCall

	outMu sync.Mutex // guards out
	out   io.Writer
}

func newWorker(out io.Writer) *worker {
	return &worker{programs: map[string]func() (*goja.Program, error){}, calls: map[uint64]*vmCall{}, out: out}
}

func (h *worker) serve(in io.Reader) error {
	return receive(in, func(m toHost) {
		switch {
		case m.Call != nil:
			h.begin(m.Call)
		case m.Fetched != nil:
			if c := h.find(m.Fetched.Call); c != nil {
				c.post(func() error { return c.fetched(m.Fetched) })
			}
		default:
			if c := h.find(m.Cancel); c != nil {
				c.cancel()
			}
		}
	})
}

func (h *worker) find(id uint64) *vmCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[id]
}

func (h *worker) send(m fromHost) {
	line, err := encode(m)
	if err != nil { // only a result may be as long
		line, _ = encode(fromHost{Call: m.Call, Done: &doneMessage{Failed: err.Error()}})
	}
	h.outMu.Lock()
	defer h.outMu.Unlock()
	_, _ = h.out.Write(line) // without the gateway, the input ends too
}

func (h *worker) begin(m *callMessage) {
	if h.programs[m.Program] == nil {
		h.programs[m.Program] = sync.OnceValues(func() (*goja.Program, error) { return compile(m.Code) })
	}
	program := h.programs[m.Program]
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(m.Millis)*time.Millisecond)
	c := &vmCall{id: m.ID, host: h, vm: goja.New(), cancel: cancel, woken: make(chan struct{}, 1), waiting: map[int64]timer{}}
	h.mu.Lock()
	h.calls[m.ID] = c
	h.mu.Unlock()
	extendProcessorTime()
	go func() {
		done := c.run(ctx, program, m)
		cancel()
		c.end()
		h.mu.Lock()
		delete(h.calls, m.ID)
		h.mu.Unlock()
		h.send(fromHost{Call: m.ID, Done: done})
	}()
}

// compile compiles a bundle, which has its source map with it. It evaluates constants without a limit, so it runs only in a
// host, where it can be killed.
func compile(code string) (*goja.Program, error) {
	tree, err := goja.Parse("bundle.js", code, parser.WithSourceMapLoader(func(string) ([]byte, error) {
		return nil, errors.New("source maps outside the bundle are not read")
	}))
	if err != nil {
		return nil, fmt.Errorf("the bundle is not valid: %w", err)
	}
	return goja.CompileAST(tree, false)
}

// vmCall is a call in the host. Its fields belong to the call's goroutine, unless noted otherwise.
type vmCall struct {
	id     uint64  // fixed
	host   *worker // fixed
	vm     *goja.Runtime
	cancel context.CancelFunc // safe for concurrent use
	start  time.Time
	result *doneMessage // nil while the promise is pending
	logged int          // bytes
	sent   int          // messages

	timers   int64 // the number of the last one
	waiting  map[int64]timer
	requests uint64 // the number of the last fetch
	fetches  map[uint64]goja.Callable

	mu    sync.Mutex // guards tasks and over
	tasks []func() error
	over  bool
	woken chan struct{} // a task was added; capacity 1, not closed
}

type timer struct {
	due time.Time
	f   goja.Callable
}

var errStopped = errors.New("the call was stopped")

// run runs the tool until its promise settles.
func (c *vmCall) run(ctx context.Context, program func() (*goja.Program, error), m *callMessage) (done *doneMessage) {
	defer func() {
		if cause := recover(); cause != nil { // a fault of the interpreter, such as a string that is too long
			done = &doneMessage{Failed: document.Shorten(fmt.Sprintf("the interpreter failed: %v", cause), maxText)}
		}
	}()
	c.start, c.fetches = time.Now(), map[uint64]goja.Callable{}
	c.vm.SetMaxCallStackSize(maxDepth)
	stop := context.AfterFunc(ctx, func() { c.vm.Interrupt(errStopped) })
	defer stop()
	run, err := c.globals()
	var code *goja.Program
	if err == nil {
		code, err = program()
	}
	if err == nil {
		_, err = c.vm.RunProgram(code)
	}
	if err == nil {
		_, err = run(goja.Undefined(), c.vm.Get(globalName), c.vm.ToValue(string(m.Context)))
	}
	for err == nil && c.result == nil {
		var task func() error
		if task, err = c.next(ctx); err == nil {
			err = task()
		}
	}
	if c.result != nil {
		return c.result
	}
	if _, deep := errors.AsType[*goja.StackOverflowError](err); deep {
		err = fmt.Errorf("functions call each other more than %d deep", maxDepth)
	}
	return &doneMessage{Failed: document.Shorten(err.Error(), maxText)}
}

var errUnsettled = errors.New("the promise of execute is never settled: no timer and no fetch is left that could do it")

// next waits for the next task of the event loop. Timers fire in the order of their times.
func (c *vmCall) next(ctx context.Context) (func() error, error) {
	for {
		c.mu.Lock()
		if len(c.tasks) > 0 {
			task := c.tasks[0]
			c.tasks = c.tasks[1:]
			c.mu.Unlock()
			return task, nil
		}
		c.mu.Unlock()
		if len(c.waiting)+len(c.fetches) == 0 {
			return nil, errUnsettled
		}
		var ring <-chan time.Time
		if len(c.waiting) > 0 {
			id := slices.MinFunc(slices.Collect(maps.Keys(c.waiting)), func(a, b int64) int {
				return cmp.Or(c.waiting[a].due.Compare(c.waiting[b].due), cmp.Compare(a, b))
			})
			first := c.waiting[id]
			if wait := time.Until(first.due); wait > 0 {
				ring = time.After(wait)
			} else {
				delete(c.waiting, id)
				return func() error { _, err := first.f(goja.Undefined()); return err }, nil
			}
		}
		select {
		case <-c.woken:
		case <-ring:
		case <-ctx.Done():
			return nil, errStopped
		}
	}
}

// post adds a task. It may be called from any goroutine.
func (c *vmCall) post(task func() error) {
	c.mu.Lock()
	if !c.over {
		c.tasks = append(c.tasks, task)
	}
	c.mu.Unlock()
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *vmCall) end() {
	c.mu.Lock()
	c.tasks, c.over = nil, true
	c.mu.Unlock()
}

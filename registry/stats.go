package registry

import (
	"context"
	"maps"
	"sync"
	"time"
)

// UnknownTool is the name under which Stats counts calls of tools that do not exist.
const UnknownTool = "(unknown)"

// ToolStats are the counters of one tool.
type ToolStats struct {
	// Calls counts the envelopes made by Run and by refusals of Prepare.
	Calls int64
	// OK counts successes.
	OK int64
	// Errors counts failures by type; it may be nil.
	Errors map[ErrorType]int64
	// Duration and Slowest are the sum and the maximum for the calls that ran.
	Duration time.Duration
	Slowest  time.Duration
	// OverBudget counts runs longer than the latency budget.
	OverBudget int64
	// Running is how many handlers are running now, LeftBehind how many of them are past
	// their deadline or cancelled.
	Running    int64
	LeftBehind int64
	// Abandoned counts all handlers that were ever left behind.
	Abandoned int64
}

// stats holds the counters of a registry. Tools that were never loaded share one entry, so
// that the map does not grow with names that models invent.
type stats struct {
	mu      sync.Mutex // guards the fields below
	tools   map[string]*ToolStats
	running int
	idle    chan struct{} // for Wait, closed when the last handler ends; nil while nothing waits

	leftOut sync.Map // of strings: tools and the empty sources of live values that were logged
}

func newStats() *stats { return &stats{tools: map[string]*ToolStats{}} }

// of must be called with mu held.
func (s *stats) of(tool string) *ToolStats {
	t := s.tools[tool]
	if t == nil {
		t = &ToolStats{}
		s.tools[tool] = t
	}
	return t
}

// done counts an envelope.
func (s *stats) done(tool string, env *Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tool)
	t.Calls++
	if env.OK {
		t.OK++
		return
	}
	if t.Errors == nil {
		t.Errors = map[ErrorType]int64{}
	}
	t.Errors[env.Error.Type]++
}

// ran counts the duration of a call.
func (s *stats) ran(tool string, took time.Duration, overBudget bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tool)
	t.Duration += took
	t.Slowest = max(t.Slowest, took)
	if overBudget {
		t.OverBudget++
	}
}

// running is one running handler; its fields are guarded by stats.mu.
type running struct {
	tool  string
	left  bool
	ended bool
}

// begin counts a handler as running; nil if too many of this tool were left
// behind and still run.
func (s *stats) begin(tool string) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tool)
	if t.LeftBehind >= maxLeftBehind && tool != ClientTool { // what waits for a client obeys its deadline
		return nil
	}
	t.Running++
	s.running++
	return &running{tool: tool}
}

// leave counts a handler as left behind; false if it has already ended.
func (s *stats) leave(r *running) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ended {
		return false
	}
	r.left = true
	t := s.of(r.tool)
	t.LeftBehind++
	t.Abandoned++
	return true
}

// end counts a handler that has returned.
func (s *stats) end(r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ended = true
	t := s.of(r.tool)
	t.Running--
	if r.left {
		t.LeftBehind--
	}
	s.running--
	if s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

func (s *stats) wait(ctx context.Context) error {
	s.mu.Lock()
	if s.running == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stats) copy() map[string]ToolStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]ToolStats, len(s.tools))
	for id, t := range s.tools {
		c := *t
		c.Errors = maps.Clone(t.Errors)
		all[id] = c
	}
	return all
}

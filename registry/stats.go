package registry

import (
	"context"
	"maps"
	"sync"
	"time"
)

// UnknownTool is the name of all unknown tools in Stats.
const UnknownTool = "(unknown)"

// ToolStats are the counters of one tool.
type ToolStats struct {
	Calls int64
	OK    int64
	// Errors counts failures by type; may be nil.
	Errors map[ErrorType]int64
	// Duration and Slowest are the sum and the maximum for the calls that ran.
	Duration   time.Duration
	Slowest    time.Duration
	OverBudget int64
	Running    int64
	LeftBehind int64
	Abandoned  int64
}

// stats holds a registry's counters. Unknown tools share an entry, so that models' invented names don't grow the map.
type stats struct {
	mu      sync.Mutex // guards the fields below
	tools   map[string]*ToolStats
	running int
	idle    chan struct{} // for Wait, closed when the last handler ends; nil while no Wait runs

	leftOut sync.Map // of strings: logged tools and empty sources of live values
}

func newStats() *stats { return &stats{tools: map[string]*ToolStats{}} }

// of requires mu.
func (s *stats) of(tool string) *ToolStats {
	t := s.tools[tool]
	if t == nil {
		t = &ToolStats{}
		s.tools[tool] = t
	}
	return t
}

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
	tool  *ToolStats
	left  bool
	ended bool
}

func (s *stats) begin(tool string) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tool)
	if t.LeftBehind >= maxLeftBehind && tool != ClientTool { // clients' tools obey their deadline
		return nil
	}
	t.Running++
	s.running++
	return &running{tool: t}
}

func (s *stats) leave(r *running) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ended {
		return false
	}
	r.left = true
	r.tool.LeftBehind++
	r.tool.Abandoned++
	return true
}

func (s *stats) end(r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ended = true
	r.tool.Running--
	if r.left {
		r.tool.LeftBehind--
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

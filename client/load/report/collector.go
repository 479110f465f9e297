package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Late is the send lag beyond which a frame was late by this program's fault.
const Late = 5 * time.Millisecond

// Collector takes in what all callers measure. Any number of goroutines may use it.
type Collector struct {
	// Fixed after New.
	figures  []*histogram // by figure.Figure
	lagNow   *histogram   // SendLag since the last Sample
	firstNow *histogram   // FirstAudio since the last Sample

	counters  []atomic.Int64 // by counter.Counter
	underruns [len(bufferSizes)]atomic.Int64
	glitchUS  [len(bufferSizes)]atomic.Int64
	live      atomic.Int64

	mu       sync.Mutex // guards the following fields
	codes    map[string]int64
	problems []Problem
	more     int64 // problems that were not kept
	kinds    map[Kind]int64
	tools    map[string]*toolCount
	series   []Point
	last     point
	segments []*segment
}

var bufferSizes = Buffers()

type toolCount struct {
	calls, failed, repeated int64
	run                     *histogram
}

// maxTools bounds the tools that are told apart.
const maxTools = 100

// New makes an empty collector.
func New() *Collector {
	c := &Collector{
		lagNow: newHistogram(), firstNow: newHistogram(),
		codes: map[string]int64{}, kinds: map[Kind]int64{}, tools: map[string]*toolCount{},
	}
	for range Figures() {
		c.figures = append(c.figures, newHistogram())
	}
	c.counters = make([]atomic.Int64, len(Counters()))
	c.segments = []*segment{{first: newHistogram()}}
	return c
}

// Record takes one value of a figure; below zero counts as zero.
func (c *Collector) Record(f Figure, d time.Duration) {
	c.figures[f].record(d)
	switch f {
	case FirstAudio:
		c.firstNow.record(d)
		c.segment().first.record(d)
	case SendLag:
		c.lagNow.record(d)
		if d > Late {
			c.Add(LateFrames, 1)
		}
	}
}

// Summary is what a figure has come to so far.
func (c *Collector) Summary(f Figure) Summary { return c.figures[f].summary() }

// Add counts n more.
func (c *Collector) Add(of Counter, n int64) { c.counters[of].Add(n) }

// Count is how often a counter has counted so far.
func (c *Collector) Count(of Counter) int64 { return c.counters[of].Load() }

// Underrun notes that a player with buffer i of Buffers has fallen silent in an answer
// for so long.
func (c *Collector) Underrun(i int, gap time.Duration) {
	c.underruns[i].Add(1)
	c.glitchUS[i].Add(gap.Microseconds())
}

// Underruns is how often the players with buffer i have fallen silent, and for how long.
func (c *Collector) Underruns(i int) (n int64, glitch time.Duration) {
	return c.underruns[i].Load(), time.Duration(c.glitchUS[i].Load()) * time.Microsecond
}

// Live says that so many sessions more (or fewer) are in progress.
func (c *Collector) Live(n int64) { c.live.Add(n) }

// LiveNow is how many sessions are in progress.
func (c *Collector) LiveNow() int64 { return c.live.Load() }

// Error counts an error by its code.
func (c *Collector) Error(code string) {
	c.Add(Errors, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[code]++
}

// Tool notes a call that has ended.
func (c *Collector) Tool(name string, ok, repeated bool, run time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tools[name]
	if t == nil {
		if len(c.tools) == maxTools {
			return
		}
		t = &toolCount{run: newHistogram()}
		c.tools[name] = t
	}
	t.calls++
	switch {
	case repeated:
		t.repeated++
	case !ok:
		t.failed++
	default:
		t.run.record(run)
	}
}

// ToolSummary is what became of the calls of one tool.
type ToolSummary struct {
	Tool     string `json:"tool"`
	Calls    int64  `json:"calls"`
	Failed   int64  `json:"failed"`
	Repeated int64  `json:"repeated"`
	// Run is the tool's own time, of those that succeeded.
	Run Summary `json:"run"`
}

// Tools are the calls by tool, the most frequent first.
func (c *Collector) Tools() []ToolSummary {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ToolSummary
	for name, t := range c.tools {
		run := t.run.summary()
		run.Curve = nil
		out = append(out, ToolSummary{Tool: name, Calls: t.calls, Failed: t.failed, Repeated: t.repeated, Run: run})
	}
	slices.SortFunc(out, func(a, b ToolSummary) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// Codes are the errors by code.
func (c *Collector) Codes() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.codes)
}

// Buffers are the sizes of the players that underruns are counted for, in ms.
func Buffers() [3]int { return [3]int{60, 100, 200} }

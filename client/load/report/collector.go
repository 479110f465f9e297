package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Late is the send lag from which a frame counts as late through this program's fault.
const Late = 5 * time.Millisecond

// Collector gathers the measurements of all callers. It is safe for concurrent use.
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
	more     int64 // problems beyond maxProblems
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

// maxTools bounds the tools with their own statistics.
const maxTools = 100

// New returns an empty collector.
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

// Record adds a value to a figure; a negative one counts as zero.
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

// Summary returns a figure's statistics so far.
func (c *Collector) Summary(f Figure) Summary { return c.figures[f].summary() }

// Add adds n to a counter.
func (c *Collector) Add(of Counter, n int64) { c.counters[of].Add(n) }

// Count returns a counter's value.
func (c *Collector) Count(of Counter) int64 { return c.counters[of].Load() }

// Underrun records a gap in an answer, in the player with buffer i of Buffers.
func (c *Collector) Underrun(i int, gap time.Duration) {
	c.underruns[i].Add(1)
	c.glitchUS[i].Add(gap.Microseconds())
}

// Underruns returns the number and total length of the gaps with buffer i.
func (c *Collector) Underruns(i int) (n int64, glitch time.Duration) {
	return c.underruns[i].Load(), time.Duration(c.glitchUS[i].Load()) * time.Microsecond
}

// Live changes the number of sessions in progress by n.
func (c *Collector) Live(n int64) { c.live.Add(n) }

// LiveNow returns the number of sessions in progress.
func (c *Collector) LiveNow() int64 { return c.live.Load() }

// Error counts an error by its code.
func (c *Collector) Error(code string) {
	c.Add(Errors, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[code]++
}

// Tool records a finished call.
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

// ToolSummary has the results of one tool's calls.
type ToolSummary struct {
	Tool     string `json:"tool"`
	Calls    int64  `json:"calls"`
	Failed   int64  `json:"failed"`
	Repeated int64  `json:"repeated"`
	// Run is the tool's own time in successful calls.
	Run Summary `json:"run"`
}

// Tools returns the calls by tool, the most frequent first.
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

// Codes returns the errors by code.
func (c *Collector) Codes() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.codes)
}

// Buffers returns the jitter buffers for which underruns are counted, in ms.
func Buffers() [3]int { return [3]int{60, 100, 200} }

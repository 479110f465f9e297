package report

import (
	"cmp"
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
	problems []Problem // at most maxProblems
	found    int64     // all problems
	kinds    map[Kind]int64
	tools    map[string]*toolCount
	series   []Point
	last     Point // the totals at the last Sample
	segments []*segment
}

var bufferSizes = Buffers()

type toolCount struct {
	ToolSummary
	run *histogram
}

// maxTools bounds the tools with their own statistics.
const maxTools = 100

// New returns an empty collector.
func New() *Collector {
	c := &Collector{
		lagNow: newHistogram(), firstNow: newHistogram(),
		codes: map[string]int64{}, kinds: map[Kind]int64{}, tools: map[string]*toolCount{},
	}
	for range figureDefinitions {
		c.figures = append(c.figures, newHistogram())
	}
	c.counters = make([]atomic.Int64, len(counterDefinitions))
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
		t = &toolCount{ToolSummary{Tool: name}, newHistogram()}
		c.tools[name] = t
	}
	t.Calls++
	switch {
	case repeated:
		t.Repeated++
	case !ok:
		t.Failed++
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

// byUse returns the calls by tool, the most frequent first.
func (c *Collector) byUse() []ToolSummary {
	var out []ToolSummary
	for _, t := range c.tools {
		t.Run = t.run.summary()
		t.Run.Curve = nil
		out = append(out, t.ToolSummary)
	}
	slices.SortFunc(out, func(a, b ToolSummary) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// Buffers returns the jitter buffers for which underruns are counted, in ms.
func Buffers() [3]int { return [3]int{60, 100, 200} }

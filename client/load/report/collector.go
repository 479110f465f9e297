package report

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/textutil"
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
	tools    map[string]*ToolSummary
	series   []Point
	last     Point // the totals at the last Sample
	segments []*Segment
}

var bufferSizes = Buffers()

const maxTools = 100

// New returns an empty collector.
func New() *Collector {
	c := &Collector{
		lagNow: newHistogram(), firstNow: newHistogram(),
		codes: map[string]int64{}, kinds: map[Kind]int64{}, tools: map[string]*ToolSummary{},
	}
	for range figureDefinitions {
		c.figures = append(c.figures, newHistogram())
	}
	c.counters = make([]atomic.Int64, len(counterDefinitions))
	c.segments = []*Segment{{first: newHistogram()}}
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
		t = &ToolSummary{Tool: name, run: newHistogram()}
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
	run *histogram
}

func (c *Collector) byUse() []ToolSummary {
	var out []ToolSummary
	for _, t := range c.tools {
		t.Run = t.run.summary()
		t.Run.Curve = nil
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b ToolSummary) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// Buffers returns the jitter buffers for which underruns are counted, in ms.
func Buffers() [3]int { return [3]int{60, 100, 200} }

// Point has the measurements of one interval.
type Point struct {
	// AtMS is the end of the interval, in ms since the run's start.
	AtMS int64 `json:"at_ms"`
	// Sessions are in progress at its end.
	Sessions int64 `json:"sessions"`
	Answers  int64 `json:"answers"`
	Problems int64 `json:"problems"`
	Tools    int64 `json:"tools"`
	// P50, P95 and Max are of first_audio, in ms; zero if nothing was answered.
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
	// LagP99 and LagMax are of send_lag, in ms.
	LagP99 float64 `json:"lag_p99"`
	LagMax float64 `json:"lag_max"`
	// CPU is the target's, in percent of one core, RSSMB its memory at the end; zero if no process is watched.
	CPU   float64 `json:"cpu,omitempty"`
	RSSMB float64 `json:"rss_mb,omitempty"`
}

// Sample ends an interval. cpu (percent) and rss (MB) are the target's, or zero.
func (c *Collector) Sample(sinceStart time.Duration, cpu, rss float64) {
	first, lag := c.firstNow.summary(), c.lagNow.summary()
	c.firstNow.reset()
	c.lagNow.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.segments[len(c.segments)-1]
	running.Sessions = max(running.Sessions, c.LiveNow())
	now := Point{Answers: c.Count(Answered) + c.Count(Interrupted), Tools: c.Count(ToolCalls), Problems: c.found}
	c.series = append(c.series, Point{
		AtMS: sinceStart.Milliseconds(), Sessions: c.LiveNow(),
		Answers: now.Answers - c.last.Answers, Problems: now.Problems - c.last.Problems, Tools: now.Tools - c.last.Tools,
		P50: first.P50, P95: first.P95, Max: first.Max, LagP99: lag.P99, LagMax: lag.Max,
		CPU: round(cpu), RSSMB: round(rss),
	})
	c.last = now
}

// Segment has the results of one step of a run.
type Segment struct {
	// FromMS and ToMS are in ms since the run's start.
	FromMS int64 `json:"from_ms"`
	ToMS   int64 `json:"to_ms"`
	// Sessions is the maximum of the samples.
	Sessions int64   `json:"sessions"`
	Problems int64   `json:"problems"`
	First    Summary `json:"first_audio"`
	before   int64   // problems before it
	first    *histogram
}

func (c *Collector) segment() *Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.segments[len(c.segments)-1]
}

// NextSegment ends the running segment and begins another one.
func (c *Collector) NextSegment(sinceStart time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endSegment(sinceStart)
	c.segments = append(c.segments, &Segment{FromMS: sinceStart.Milliseconds(), before: c.found, first: newHistogram()})
}

// endSegment records the running segment; the caller holds the mutex.
func (c *Collector) endSegment(sinceStart time.Duration) {
	s := c.segments[len(c.segments)-1]
	s.ToMS, s.Problems = sinceStart.Milliseconds(), c.found-s.before
}

// steps ends the running segment and returns all of them in order.
func (c *Collector) steps(sinceStart time.Duration) []Segment {
	c.endSegment(sinceStart)
	var out []Segment
	for _, s := range c.segments {
		s.First = s.first.summary()
		s.First.Curve = nil
		out = append(out, *s)
	}
	return out
}

// Kind is a kind of problem.
type Kind string

// The kinds of problems.
const (
	KindRefused      Kind = "refused"
	KindLost         Kind = "lost"
	KindStuck        Kind = "stuck"
	KindFailed       Kind = "failed"
	KindUnmet        Kind = "unmet"
	KindStale        Kind = "stale"
	KindLostAudio    Kind = "lost audio"
	KindLostMessage  Kind = "lost message"
	KindError        Kind = "error"
	KindProtocol     Kind = "protocol"
	KindTool         Kind = "tool"
	KindDisconnected Kind = "lost connection"
	KindResume       Kind = "resume"
)

// Problem is a problem in one session.
type Problem struct {
	// Session is the caller and Call its call, both from 1.
	Session int `json:"session"`
	Call    int `json:"call"`
	// ID is the session's id at the gateway; empty before it has one.
	ID string `json:"id,omitempty"`
	// Turn is the turn of the call, from 1; 0 if the problem is not about a turn.
	Turn int `json:"turn,omitempty"`
	// AtMS is in ms since the run's start.
	AtMS int64  `json:"at_ms"`
	Kind Kind   `json:"kind"`
	What string `json:"what"`
}

// maxProblems bounds the problems kept; later ones are only counted.
const maxProblems = 500

// maxWhat bounds a problem's description, in bytes.
const maxWhat = 600

// Problem records a problem.
func (c *Collector) Problem(p Problem) {
	p.What = textutil.Shorten(p.What, maxWhat)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[p.Kind]++
	c.found++
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, p)
	}
}

// ProblemCount returns the number of problems so far, kept or not.
func (c *Collector) ProblemCount() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

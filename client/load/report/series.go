package report

import "time"

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
	Sessions int64 `json:"sessions"`
	Problems int64 `json:"problems"`
	// First is first_audio.
	First Summary `json:"first_audio"`
}

// segment measures a segment.
type segment struct {
	Segment
	before int64 // problems before it
	first  *histogram
}

func (c *Collector) segment() *segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.segments[len(c.segments)-1]
}

// NextSegment ends the running segment and begins another one.
func (c *Collector) NextSegment(sinceStart time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endSegment(sinceStart)
	c.segments = append(c.segments, &segment{
		Segment: Segment{FromMS: sinceStart.Milliseconds()}, before: c.found, first: newHistogram(),
	})
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
		out = append(out, s.Segment)
	}
	return out
}

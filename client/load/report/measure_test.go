package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

const ms1 = time.Millisecond

// measured is the report of a collector after that time.
func measured(c *Collector, took time.Duration) *Report {
	r := &Report{}
	r.Measured(c, took)
	return r
}

// TestEveryFigureIsDefined checks for one definition in a group, with a start and an end.
func TestEveryFigureIsDefined(t *testing.T) {
	seen := map[string]bool{}
	group := 0 // of the last definition
	check := func(d Definition) {
		if at := slices.Index(Groups(), d.Group); at < group {
			t.Errorf("%s is in the group %q, which is unknown or precedes %q", d.Name, d.Group, Groups()[group])
		} else {
			group = at
		}
		if d.Name == "" || d.Title == "" || len(d.Meaning) < 10 || seen[d.Name] || strings.ToLower(d.Name) != d.Name || strings.HasSuffix(d.Meaning, ".") {
			t.Errorf("%+v is not a definition, or a duplicate", d)
		}
		seen[d.Name] = true
	}
	for _, d := range figureDefinitions {
		check(d)
	}
	group = 0
	for _, d := range counterDefinitions {
		check(d)
	}
}

func TestPercentiles(t *testing.T) {
	c := New()
	for i := range 1000 {
		c.Record(FirstAudio, time.Duration(1000-i)*ms1)
	}
	s := c.Summary(FirstAudio)
	if s.Count != 1000 || s.Min != 1 || s.Max != 1000 || s.Mean < 500 || s.Mean > 501 {
		t.Errorf("%+v", s)
	}
	for want, got := range map[float64]float64{500: s.P50, 900: s.P90, 950: s.P95, 990: s.P99} {
		if got < want || got > want*1.001+0.1 {
			t.Errorf("got %v, want %v with three digits", got, want)
		}
	}
	if len(s.Curve) != len(CurveQuantiles()) || s.Curve[0] != 1 || s.Curve[len(s.Curve)-1] != 1000 || !slices.IsSorted(s.Curve) {
		t.Errorf("the curve is %v", s.Curve)
	}
	if !slices.IsSorted(CurveQuantiles()) {
		t.Error("the quantiles are not in order")
	}
}

// TestIntervals: in about 95 of a hundred runs, the interval contains the true percentile.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	within := map[string]int{}
	const runs = 400
	for range runs {
		h := newHistogram()
		for range 500 {
			h.record(time.Duration(rng.Float64() * float64(time.Second)))
		}
		i := h.summary().Interval
		for name, p := range map[string]struct {
			Interval
			truth float64
		}{"p50": {i.P50, 500}, "p95": {i.P95, 950}, "p99": {i.P99, 990}} {
			if p.Low > p.High {
				t.Fatalf("%s: %+v", name, p)
			}
			if p.Low <= p.truth && p.truth <= p.High {
				within[name]++
			}
		}
	}
	for name, n := range within {
		if share := float64(n) / runs; share < 0.92 || share > 0.995 {
			t.Errorf("%s: %.3f of the intervals contain the true value", name, share)
		}
	}
	one := New()
	one.Record(Answer, 7*ms1)
	if s := one.Summary(Answer); s.Interval.P95 != (Interval{7, 7}) || s.P50 != 7 {
		t.Errorf("of one value: %+v", s)
	}
}

func TestOutOfRange(t *testing.T) {
	c := New()
	c.Record(LastAudio, -time.Hour)
	c.Record(LastAudio, time.Hour)
	c.Record(LastAudio, 0)
	if s := c.Summary(LastAudio); s.Count != 3 || s.Min != 0 || s.Max != 600_000 || s.P50 != 0 {
		t.Errorf("%+v", s)
	}
}

func TestLateFramesAreCounted(t *testing.T) {
	c := New()
	for _, lag := range []time.Duration{0, Late, Late + time.Microsecond, time.Second} {
		c.Record(SendLag, lag)
	}
	if got := c.Count(LateFrames); got != 2 {
		t.Errorf("%d late frames", got)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	c := New()
	for i := range maxProblems + 10 {
		c.Problem(Problem{Session: i, Kind: KindLost, What: strings.Repeat("é", maxWhat)})
	}
	r := measured(c, 0)
	kept, more, kinds := r.Problems, r.MoreProblems, r.Kinds
	if len(kept) != maxProblems || more != 10 || kinds[KindLost] != maxProblems+10 || c.ProblemCount() != maxProblems+10 {
		t.Errorf("%d kept, %d more, %v", len(kept), more, kinds)
	}
	if what := kept[0].What; len(what) > maxWhat+len("…") || !utf8.ValidString(what) {
		t.Errorf("%d bytes are kept: %.20q", len(what), what)
	}
}

func TestTools(t *testing.T) {
	c := New()
	c.Tool("b", true, false, 10*ms1)
	c.Tool("a", false, false, 0)
	c.Tool("b", true, true, 0)
	for i := range 2 * maxTools {
		c.Tool(fmt.Sprint("t", i), true, false, ms1)
	}
	tools := measured(c, 0).Tools
	if len(tools) != maxTools || tools[0].Tool != "b" || tools[0].Calls != 2 || tools[0].Repeated != 1 || tools[0].Run.Count != 1 || tools[1].Tool != "a" || tools[1].Failed != 1 {
		t.Errorf("%d tools: %+v", len(tools), tools[:2])
	}
}

// TestSeries: each point covers the time since the previous one.
func TestSeries(t *testing.T) {
	c := New()
	c.Live(3)
	c.Record(FirstAudio, 100*ms1)
	c.Record(SendLag, 2*ms1)
	c.Add(Answered, 2)
	c.Sample(time.Second, 12.5, 64)
	c.Live(-2)
	c.Add(Answered, 1)
	c.Add(Interrupted, 1)
	c.Add(ToolCalls, 1)
	c.Problem(Problem{Kind: KindLost})
	c.Error("x")
	c.Sample(2*time.Second, 0, 0)
	got := measured(c, 0).Series
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	a, b := got[0], got[1]
	if a.AtMS != 1000 || a.Sessions != 3 || a.Answers != 2 || a.P50 != 100 || a.Max != 100 || a.LagP99 != 2 || a.CPU != 12.5 || a.RSSMB != 64 || a.Problems != 0 {
		t.Errorf("the first point: %+v", a)
	}
	if b.Sessions != 1 || b.Answers != 2 || b.P50 != 0 || b.LagMax != 0 || b.Problems != 1 || b.Tools != 1 {
		t.Errorf("the second point: %+v", b)
	}
}

// TestSegments: each has its own answers, problems and sessions.
func TestSegments(t *testing.T) {
	c := New()
	c.Live(5)
	c.Sample(0, 0, 0)
	c.Record(FirstAudio, 100*ms1)
	c.NextSegment(time.Second)
	c.Live(5)
	c.Sample(0, 0, 0)
	c.Live(-10)
	c.Record(FirstAudio, 300*ms1)
	c.Record(FirstAudio, 300*ms1)
	c.Problem(Problem{Kind: KindStuck})
	got := measured(c, 3*time.Second).Segments
	if len(got) != 2 || got[0].First.Count != 1 || got[0].Sessions != 5 || got[0].ToMS != 1000 || got[0].Problems != 0 ||
		got[1].First.Count != 2 || got[1].First.P50 < 299 || got[1].Sessions != 10 || got[1].FromMS != 1000 || got[1].ToMS != 3000 || got[1].Problems != 1 {
		t.Errorf("%+v", got)
	}
}

// TestConcurrentUpdates checks that concurrent updates are not lost.
func TestConcurrentUpdates(t *testing.T) {
	c := New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				c.Record(FirstAudio, ms1)
				c.Add(FramesUp, 1)
				c.Error("x")
				c.Underrun(0, ms1)
				c.Tool("t", true, false, ms1)
				c.Problem(Problem{})
			}
			c.Sample(time.Second, 0, 0)
			c.NextSegment(time.Second)
		})
	}
	all.Wait()
	r := measured(c, 2*time.Second)
	if c.Summary(FirstAudio).Count != 4000 || c.Count(FramesUp) != 4000 || r.Errors["x"] != 4000 || r.Sound[0].Underruns != 4000 || r.Sound[0].GlitchMS != 4000 || r.Tools[0].Calls != 4000 || c.ProblemCount() != 4000 {
		t.Error("an update was lost")
	}
	total := int64(0)
	for _, s := range r.Segments {
		total += s.First.Count
	}
	if total != 4000 {
		t.Errorf("%d answers in the segments", total)
	}
}

func BenchmarkRecord(b *testing.B) {
	c := New()
	b.ReportAllocs()
	for b.Loop() {
		c.Record(SendLag, ms1)
	}
}

package report

import (
	"slices"
)

// chart is a plot, drawn by charts.js.
type chart struct {
	Title string `json:"title"`
	Note  string `json:"note"`
	// Across is the meaning of X: time of the run in ms, share of all values from 0 to 1, or number of sessions.
	Across string    `json:"across"`
	X      []float64 `json:"x"`
	// Unit is that of all lines: ms, %, MB, or empty.
	Unit  string `json:"unit"`
	Lines []line `json:"lines"`
	// Limit is a horizontal line; zero means none.
	Limit float64 `json:"limit,omitempty"`
}

// line has a value for each X; nil is a gap.
type line struct {
	Name  string     `json:"name"`
	Style string     `json:"style"`
	Class string     `json:"class"` // of the page's CSS: s1, s2, s3, bad
	Y     []*float64 `json:"y"`
}

const (
	plain = "line"
	area  = "area" // filled to the axis
	dots  = "dots" // points instead of a line
	bars  = "bars"
)

func (c chart) empty() bool {
	return len(c.X) < 2 || !slices.ContainsFunc(c.Lines, func(l line) bool {
		return slices.ContainsFunc(l.Y, func(v *float64) bool { return v != nil && *v > 0 })
	})
}

func (r *Report) charts() []chart {
	lag := r.timed("Send lag of the generator", "delay of frames caused by this program", "ms",
		r.waits("p99", "s1", plain, func(p Point) float64 { return p.LagP99 }),
		r.waits("worst", "s3", dots, func(p Point) float64 { return p.LagMax }))
	lag.Limit = float64(Late.Milliseconds())
	all := []chart{
		r.timed("First audio over time", "from the end of the user's speech to the answer's first audio, for each interval", "ms",
			r.waits("p50", "s1", plain, func(p Point) float64 { return p.P50 }),
			r.waits("p95", "s2", plain, func(p Point) float64 { return p.P95 }),
			r.waits("worst", "s3", dots, func(p Point) float64 { return p.Max })),
		distribution("How long callers waited",
			curve{"first audio", r.figure(FirstAudio)},
			curve{"end of speech noticed", r.figure(Detection)},
			curve{"answer", r.figure(Answer)}),
		r.timed("Sessions and problems", "sessions in progress, and problems in each interval", "",
			r.over("sessions", "s1", area, func(p Point) float64 { return float64(p.Sessions) }),
			r.over("answers", "s2", plain, func(p Point) float64 { return float64(p.Answers) }),
			r.over("problems", "bad", bars, func(p Point) float64 { return float64(p.Problems) })),
		distribution("How fast an interruption silences the answer",
			curve{"flush", r.figure(Flush)},
			curve{"speech noticed", r.figure(InterruptSeen)},
			curve{"last audio", r.figure(LastAudio)}),
		r.steps(),
		lag,
		r.timed("CPU of the gateway", "in percent of one core", "%",
			r.over("CPU", "s1", area, func(p Point) float64 { return p.CPU })),
		r.timed("Memory of the gateway", "resident, in MB", "MB",
			r.over("RSS", "s1", area, func(p Point) float64 { return p.RSSMB })),
	}
	return slices.DeleteFunc(all, chart.empty)
}

func (r *Report) figure(f Figure) Summary { return r.Figures[f.Definition().Name] }

func (r *Report) timed(title, note, unit string, lines ...line) chart {
	c := chart{Title: title, Note: note, Across: "time", Unit: unit, Lines: lines}
	for _, p := range r.Series {
		c.X = append(c.X, float64(p.AtMS))
	}
	return c
}

func (r *Report) over(name, class, style string, value func(Point) float64) line {
	l := line{Name: name, Class: class, Style: style}
	for _, p := range r.Series {
		v := value(p)
		l.Y = append(l.Y, &v)
	}
	return l
}

// waits returns a line of times. A zero is a gap: nothing was answered in that interval.
func (r *Report) waits(name, class, style string, value func(Point) float64) line {
	l := r.over(name, class, style, value)
	for i, v := range l.Y {
		if *v == 0 {
			l.Y[i] = nil
		}
	}
	return l
}

func (r *Report) steps() chart {
	c := chart{Title: "First audio by sessions", Note: "of each step, by the sessions that were in progress",
		Across: "sessions", Unit: "ms", Lines: []line{{Name: "p50", Class: "s1", Style: plain}, {Name: "p95", Class: "s2", Style: plain}}}
	half, most := &c.Lines[0], &c.Lines[1]
	for _, s := range r.Segments {
		c.X = append(c.X, float64(s.Sessions))
		half.Y, most.Y = append(half.Y, &s.First.P50), append(most.Y, &s.First.P95)
	}
	return c
}

type curve struct {
	name    string
	summary Summary
}

const fewest = 10

// distribution draws the share of values below each time, with most of the axis for the slow ones.
func distribution(title string, curves ...curve) chart {
	c := chart{Title: title, Note: "the share of values up to this size", Across: "share", Unit: "ms"}
	classes := []string{"s1", "s2", "s3"}
	quantiles := CurveQuantiles()
	for n, of := range curves {
		if of.summary.Count < fewest || len(of.summary.Curve) != len(quantiles) {
			continue
		}
		// Beyond it there is at most one value. The last quantile, 1, has no place on the axis.
		last := max(1-1/float64(of.summary.Count), 0.5)
		l := line{Name: of.name, Class: classes[n], Style: plain}
		for i, q := range quantiles[:len(quantiles)-1] {
			if q > last {
				break
			}
			l.Y = append(l.Y, &of.summary.Curve[i])
		}
		if len(l.Y) > len(c.X) {
			c.X = quantiles[:len(l.Y)]
		}
		c.Lines = append(c.Lines, l)
	}
	for i, l := range c.Lines { // distributions with fewer values end earlier
		c.Lines[i].Y = append(l.Y, make([]*float64, len(c.X)-len(l.Y))...)
	}
	return c
}

package report

import (
	"fmt"
	"math"
	"strconv"

	"voicegw/client/load/measure"
	"voicegw/client/load/measure/figure"
)

// charts are the plots of a report, as far as there is something to see.
func (r *Report) charts() []chart {
	var out []chart
	add := func(c chart, ok bool) {
		if ok {
			out = append(out, c)
		}
	}
	add(r.answersOverTime())
	add(distribution("How long callers waited", []curveOf{
		{"first audio", "s1", r.figure(figure.FirstAudio)},
		{"end of speech noticed", "s2", r.figure(figure.Detection)},
		{"answer", "s3", r.figure(figure.Answer)},
	}))
	add(r.sessionsOverTime())
	add(distribution("How fast an interruption silences the answer", []curveOf{
		{"flush", "s1", r.figure(figure.Flush)},
		{"speech noticed", "s2", r.figure(figure.InterruptSeen)},
		{"last audio", "s3", r.figure(figure.LastAudio)},
	}))
	add(r.steps())
	add(r.lagOverTime())
	add(r.cpuOverTime())
	add(r.memoryOverTime())
	return out
}

func (r *Report) figure(f figure.Figure) measure.Summary { return r.Figures[f.Definition().Name] }

// over is a line of the series. A zero is a gap where gaps is set.
func (r *Report) over(name, class string, gaps bool, value func(measure.Point) float64) line {
	l := line{name: name, class: class}
	for _, p := range r.Series {
		v := value(p)
		if gaps && v == 0 {
			v = math.NaN()
		}
		l.x, l.y = append(l.x, float64(p.AtMS)), append(l.y, v)
	}
	return l
}

// timed is a chart over the time of the run.
func (r *Report) timed(title, note string, label func(float64) string, lines ...line) (chart, bool) {
	top := highest(lines)
	c := chart{title: title, note: note, x: timeAxis(float64(r.TookMS)), y: niceAxis(top, 5, label), lines: lines}
	return c, len(r.Series) > 1 && top > 0
}

func msLabel(v float64) string {
	if v > 0 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64) + " ms"
	}
	return thousands(int64(v+0.5)) + " ms"
}

func plainLabel(v float64) string {
	if v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(int64(v))
}

func (r *Report) answersOverTime() (chart, bool) {
	worst := r.over("worst", "s3", true, func(p measure.Point) float64 { return p.Max })
	worst.dots = true
	return r.timed("First audio over time", "from the end of what the user said to the first audio of the answer, for each interval", msLabel,
		r.over("p50", "s1", true, func(p measure.Point) float64 { return p.P50 }),
		r.over("p95", "s2", true, func(p measure.Point) float64 { return p.P95 }), worst)
}

func (r *Report) sessionsOverTime() (chart, bool) {
	live := r.over("sessions", "s1", false, func(p measure.Point) float64 { return float64(p.Sessions) })
	live.area = true
	problems := r.over("problems", "bad", false, func(p measure.Point) float64 { return float64(p.Problems) })
	problems.bars = true
	return r.timed("Sessions and problems", "sessions in progress, and what went wrong in each interval", plainLabel,
		problems, live, r.over("answers", "s2", false, func(p measure.Point) float64 { return float64(p.Answers) }))
}

func (r *Report) lagOverTime() (chart, bool) {
	worst := r.over("worst", "s3", true, func(p measure.Point) float64 { return p.LagMax })
	worst.dots = true
	c, ok := r.timed("Send lag of the generator", "how late frames left this program, by its own fault", msLabel,
		r.over("p99", "s1", true, func(p measure.Point) float64 { return p.LagP99 }), worst)
	limit := float64(measure.Late.Milliseconds())
	c.y = niceAxis(max(highest(c.lines), limit*1.2), 5, msLabel)
	c.limit, c.limitName = limit, msLabel(limit)
	return c, ok
}

func (r *Report) cpuOverTime() (chart, bool) {
	l := r.over("CPU", "s1", false, func(p measure.Point) float64 { return p.CPU })
	l.area = true
	return r.timed("CPU of the gateway", "in percent of one core", func(v float64) string { return plainLabel(v) + " %" }, l)
}

func (r *Report) memoryOverTime() (chart, bool) {
	l := r.over("RSS", "s1", false, func(p measure.Point) float64 { return p.RSSMB })
	l.area = true
	return r.timed("Memory of the gateway", "resident, in MB", func(v float64) string { return plainLabel(v) + " MB" }, l)
}

// steps shows how the time to first audio grows from step to step.
func (r *Report) steps() (chart, bool) {
	half, most := line{name: "p50", class: "s1", marks: true}, line{name: "p95", class: "s2", marks: true}
	var ticks []float64
	for _, s := range r.Segments {
		at := float64(s.Sessions)
		half.x, half.y = append(half.x, at), append(half.y, s.First.P50)
		most.x, most.y = append(most.x, at), append(most.y, s.First.P95)
		ticks = append(ticks, at)
	}
	lines := []line{half, most}
	return chart{
		title: "First audio by sessions", note: "of each step, by the sessions that were in progress",
		x: axis{max: max(highest([]line{{y: ticks}}), 1), ticks: ticks, label: plainLabel},
		y: niceAxis(highest(lines), 5, msLabel), lines: lines,
	}, len(r.Segments) > 1 && highest(lines) > 0
}

// curveOf is a distribution to draw.
type curveOf struct {
	name, class string
	summary     measure.Summary
}

// fewest values make a curve.
const fewest = 10

// distribution draws how many of a hundred values are below what: the slow ones have most
// of the room.
func distribution(title string, of []curveOf) (chart, bool) {
	var lines []line
	rarest := 0.9
	for _, c := range of {
		if c.summary.Count < fewest || len(c.summary.Curve) != len(measure.CurveQuantiles()) {
			continue
		}
		l := line{name: c.name, class: c.class}
		// Beyond that there is one value at most.
		last := 1 - 1/float64(c.summary.Count)
		for i, q := range measure.CurveQuantiles() {
			if q > max(last, 0.5) || q == 1 {
				break
			}
			l.x, l.y = append(l.x, q), append(l.y, c.summary.Curve[i])
			rarest = max(rarest, q)
		}
		lines = append(lines, l)
	}
	x := axis{max: rarest, scale: func(q float64) float64 { return -math.Log10(1 - min(q, 0.99999)) }, label: quantileLabel}
	for _, q := range []float64{0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999} {
		if q <= rarest {
			x.ticks = append(x.ticks, q)
		}
	}
	return chart{
		title: title, note: "so many of all values are at most so large",
		x: x, y: niceAxis(highest(lines), 5, msLabel), lines: lines,
	}, len(lines) > 0 && highest(lines) > 0
}

func quantileLabel(q float64) string {
	return fmt.Sprintf("%s %%", strconv.FormatFloat(math.Round(q*1e6)/1e4, 'f', -1, 64))
}

package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The size of a chart, in the units of its viewBox: a browser scales it.
const (
	chartWidth  = 640
	chartHeight = 260
	plotLeft    = 68
	plotRight   = 24
	plotTop     = 14
	plotBottom  = 34
	plotWidth   = chartWidth - plotLeft - plotRight
	plotHeight  = chartHeight - plotTop - plotBottom

	maxDrawn = 300 // points of a line
	maxHits  = 150 // places where a chart tells its values
)

// chart is a plot with lines, drawn as SVG. Its colours are those of the page's classes,
// so that it follows light and dark.
type chart struct {
	title string
	// note is a sentence under the title.
	note  string
	x, y  axis
	lines []line
	// limit is a horizontal line with a name, where it is above zero.
	limit     float64
	limitName string
}

// line is a row of points. A NaN is a gap.
type line struct {
	name  string
	class string // of the page's style: s1, s2, s3
	x, y  []float64
	// area fills it down to the axis, marks shows where its points are, dots draws points
	// instead of a line, bars a bar for each.
	area, marks, dots, bars bool
}

// axis maps values to the plot.
type axis struct {
	min, max float64
	ticks    []float64
	label    func(float64) string
	// scale changes a value before it is mapped; nil leaves it as it is.
	scale func(float64) float64
}

// place is where a value lies on an axis, from 0 to 1.
func (a axis) place(v float64) float64 {
	low, high := a.min, a.max
	if a.scale != nil {
		v, low, high = a.scale(v), a.scale(low), a.scale(high)
	}
	if high <= low {
		return 0
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// niceAxis begins at zero and has about n ticks at round values.
func niceAxis(highest float64, n int, label func(float64) string) axis {
	if highest <= 0 || math.IsNaN(highest) || math.IsInf(highest, 0) {
		highest = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(highest/float64(n))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if highest/(step*factor) <= float64(n) {
			step *= factor
			break
		}
	}
	a := axis{max: math.Ceil(highest/step) * step, label: label}
	for i := 0; float64(i)*step <= a.max*1.0001; i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// timeAxis is for ms since the beginning of a run.
func timeAxis(ms float64) axis {
	steps := []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800}
	seconds := max(ms/1000, 1)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if seconds/s <= 8 {
			step = s
			break
		}
	}
	a := axis{max: seconds * 1000, label: func(v float64) string { return shortTime(v) }}
	for at := 0.0; at <= seconds; at += step {
		a.ticks = append(a.ticks, at*1000)
	}
	return a
}

// shortTime labels a time axis: 45 s, 3:30, 1:02:00.
func shortTime(ms float64) string {
	s := int(ms/1000 + 0.5)
	switch {
	case s >= 3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	case s >= 60:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

// highest is the largest value of all lines.
func highest(lines []line) float64 {
	top := 0.0
	for _, l := range lines {
		for _, v := range l.y {
			if v > top { // no NaN is
				top = v
			}
		}
	}
	return top
}

func (c chart) px(x float64) float64 { return plotLeft + c.x.place(x)*plotWidth }
func (c chart) py(y float64) float64 { return plotTop + (1-c.y.place(y))*plotHeight }

// num writes a coordinate.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// SVG draws the chart.
func (c chart) SVG() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight, html.EscapeString(c.title))
	c.axes(&b)
	for _, l := range slices.Backward(c.lines) { // the first is on top
		c.draw(&b, l.thinned())
	}
	if c.limit > 0 && c.limit <= c.y.max {
		y := num(c.py(c.limit))
		fmt.Fprintf(&b, `<line class="limit" x1="%d" x2="%d" y1="%s" y2="%s"/>`, plotLeft, plotLeft+plotWidth, y, y)
		fmt.Fprintf(&b, `<text class="tick" text-anchor="end" x="%d" y="%s">%s</text>`, plotLeft+plotWidth, num(c.py(c.limit)-4), html.EscapeString(c.limitName))
	}
	c.hits(&b)
	b.WriteString("</svg>") // every text in it has been escaped
	return template.HTML(b.String())
}

// axes draws the grid and its labels.
func (c chart) axes(b *strings.Builder) {
	for _, t := range c.y.ticks {
		y := c.py(t)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, plotLeft, plotLeft+plotWidth, num(y), num(y))
		fmt.Fprintf(b, `<text class="tick" text-anchor="end" x="%d" y="%s">%s</text>`, plotLeft-8, num(y+4), html.EscapeString(c.y.label(t)))
	}
	for _, t := range c.x.ticks {
		x := c.px(t)
		fmt.Fprintf(b, `<text class="tick" text-anchor="middle" x="%s" y="%d">%s</text>`, num(x), plotTop+plotHeight+20, html.EscapeString(c.x.label(t)))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, plotLeft, plotLeft+plotWidth, plotTop+plotHeight, plotTop+plotHeight)
}

// draw draws one line.
func (c chart) draw(b *strings.Builder, l line) {
	if l.bars {
		c.bars(b, l)
		return
	}
	if l.dots {
		for i := range l.x {
			if !math.IsNaN(l.y[i]) {
				fmt.Fprintf(b, `<circle class="dot %s" cx="%s" cy="%s" r="2"/>`, l.class, num(c.px(l.x[i])), num(c.py(l.y[i])))
			}
		}
		return
	}
	for from := 0; from < len(l.x); {
		to := from
		for to < len(l.x) && !math.IsNaN(l.y[to]) {
			to++
		}
		if to > from {
			c.stretch(b, l, from, to)
		}
		from = to + 1
	}
}

// stretch draws the points of a line from one gap to the next.
func (c chart) stretch(b *strings.Builder, l line, from, to int) {
	var path strings.Builder
	for i := from; i < to; i++ {
		op := "L"
		if i == from {
			op = "M"
		}
		path.WriteString(op + num(c.px(l.x[i])) + " " + num(c.py(l.y[i])))
	}
	if l.area {
		floor := plotTop + plotHeight
		fmt.Fprintf(b, `<path class="area %s" d="%sL%s %dL%s %dZ"/>`, l.class, path.String(), num(c.px(l.x[to-1])), floor, num(c.px(l.x[from])), floor)
	}
	if l.marks || to-from == 1 {
		for i := from; i < to; i++ {
			fmt.Fprintf(b, `<circle class="mark %s" cx="%s" cy="%s" r="3"/>`, l.class, num(c.px(l.x[i])), num(c.py(l.y[i])))
		}
	}
	if to-from > 1 {
		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, l.class, path.String())
	}
}

// bars draws a bar for each value that is not zero.
func (c chart) bars(b *strings.Builder, l line) {
	width := max(plotWidth/float64(len(l.x)+1)*0.7, 1.5)
	floor := float64(plotTop + plotHeight)
	for i := range l.x {
		if !(l.y[i] > 0) {
			continue
		}
		y := c.py(l.y[i])
		fmt.Fprintf(b, `<rect class="bar %s" x="%s" y="%s" width="%s" height="%s"/>`, l.class,
			num(c.px(l.x[i])-width/2), num(y), num(width), num(max(floor-y, 1)))
	}
}

// hits are the places that tell the values of all lines when the mouse is over them.
func (c chart) hits(b *strings.Builder) {
	if len(c.lines) == 0 {
		return
	}
	first := c.lines[0].x
	every := len(first)/maxHits + 1
	for i := 0; i < len(first); i += every {
		left, right := 0.0, 1.0
		if i > 0 {
			left = (c.x.place(first[i]) + c.x.place(first[i-every])) / 2
		}
		if i+every < len(first) {
			right = (c.x.place(first[i]) + c.x.place(first[i+every])) / 2
		}
		words := c.x.label(first[i])
		for _, l := range c.lines {
			if i < len(l.y) && !math.IsNaN(l.y[i]) {
				words += "\n" + l.name + " " + c.y.label(l.y[i])
			}
		}
		fmt.Fprintf(b, `<rect class="hit" x="%s" y="%d" width="%s" height="%d"><title>%s</title></rect>`,
			num(plotLeft+left*plotWidth), plotTop, num(max((right-left)*plotWidth, 0)), plotHeight, html.EscapeString(words))
	}
}

// thinned keeps the largest of each few points where there are more than can be seen.
func (l line) thinned() line {
	every := (len(l.x) + maxDrawn - 1) / maxDrawn
	if every <= 1 {
		return l
	}
	out := l
	out.x, out.y = nil, nil
	for from := 0; from < len(l.x); from += every {
		to := min(from+every, len(l.x))
		best := from
		for i := from + 1; i < to; i++ {
			if math.IsNaN(l.y[best]) || l.y[i] > l.y[best] {
				best = i
			}
		}
		out.x, out.y = append(out.x, l.x[best]), append(out.y, l.y[best])
	}
	return out
}

// Title, Note and Lines are for the page around the chart.
func (c chart) Title() string { return c.title }

// Note is the sentence under the title.
func (c chart) Note() string { return c.note }

// Legend names the lines; it is empty for a single one.
func (c chart) Legend() []struct{ Name, Class string } {
	if len(c.lines) < 2 {
		return nil
	}
	var out []struct{ Name, Class string }
	for _, l := range c.lines {
		out = append(out, struct{ Name, Class string }{l.name, l.class})
	}
	return out
}

package calls

import (
	"time"

	"voicegw/registry"
)

// progressInterval is the minimum time before the model's first progress notice about a call, and between two.
const progressInterval = 5 * time.Second

// Progressed is a running tool's progress: a text and the finished part, from 0 to 1, or negative if unknown. It may
// come at any rate, and after the call's end.
type Progressed struct {
	Call, Text string
	Fraction   float64
}

func (Progressed) input() {}

type progress struct {
	text     string
	fraction float64
	sent     bool      // the model knows it
	sentAt   time.Time // when the model last got progress; zero if never
}

// Progressed keeps the newest progress of a call for the model.
func (c *openCalls) Progressed(in Progressed) {
	if k := c.find(in.Call); k != nil && k.wantsProgress() && in.Text != "" && in.Text != k.progress.text {
		k.progress.text, k.progress.fraction, k.progress.sent = in.Text, in.Fraction, false
	}
}

// wantsProgress reports whether the model waits for the result of a running tool on this connection.
func (k *call) wantsProgress() bool { return k.state == running && k.reader == byCall && k.model != "" }

// modelProgressAt returns when the model may get the call's progress; zero without any.
func (k *call) modelProgressAt() (at time.Time) {
	if !k.wantsProgress() || k.progress.text == "" || k.progress.sent {
		return at
	}
	if k.progress.sentAt.IsZero() {
		return k.queuedAt.Add(progressInterval)
	}
	return k.progress.sentAt.Add(progressInterval)
}

// ProgressAt returns when the model may get the progress of a call; zero without any.
func (c *openCalls) ProgressAt() (first time.Time) {
	for i := range c.open {
		if at := c.open[i].modelProgressAt(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Progress is the progress of a call for the model. Fraction is that of Progressed.
type Progress struct {
	Tool, Text string
	Fraction   float64
}

// TakeProgress returns the progress that is due, and records that the model knows it.
func (c *openCalls) TakeProgress(at time.Time) (all []Progress) {
	for i := range c.open {
		k := &c.open[i]
		if due := k.modelProgressAt(); due.IsZero() || at.Before(due) {
			continue
		}
		k.progress.sent, k.progress.sentAt = true, at
		all = append(all, Progress{Tool: k.tool, Text: k.progress.text, Fraction: k.progress.fraction})
	}
	return all
}

// Holds reports whether the model waits for the answer to a call for which but is false.
func (c *openCalls) Holds(but func(*registry.Prepared) bool) bool {
	return c.first(func(k *call) bool { return !k.wasAsked() && k.reader.wants() && !but(k.prepared) }) != nil
}

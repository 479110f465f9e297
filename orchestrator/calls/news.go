package calls

import (
	"time"

	"voicegw/registry"
)

// newsEvery is the shortest time from the begin of a call until the model is told how far it is, and between
// two times at which it is: short calls cost no words.
const newsEvery = 5 * time.Second

// Progressed is what a tool says of a call that runs: what it is at, and how much is done, 0 to 1, or less than
// 0 if that is not known. It may come as often as it likes, also after the end of the call.
type Progressed struct {
	Call, Text string
	Fraction   float64
}

func (Progressed) input() {}

// news is how far a call is, for the model.
type news struct {
	text     string
	fraction float64
	told     bool      // the model knows it
	toldAt   time.Time // when the model was last told; zero before
}

// Progressed keeps the newest of what a call is at, until the model is told.
func (c *Calls) Progressed(in Progressed) {
	if k := c.find(in.Call); k != nil && k.tells() && in.Text != "" && in.Text != k.news.text {
		k.news.text, k.news.fraction, k.news.told = in.Text, in.Fraction, false
	}
}

// tells reports whether the model may be told how far the call is: it waits on this connection for the result,
// and the tool runs. A model that gets the answer in another turn, or not at all, does not wait for the call.
func (k *call) tells() bool { return k.state == running && k.reader == byCall && k.model != "" }

// newsAt returns when the model may be told how far the call is; zero if there is nothing to tell.
func (k *call) newsAt() (at time.Time) {
	if !k.tells() || k.news.text == "" || k.news.told {
		return at
	}
	if k.news.toldAt.IsZero() {
		return k.queuedAt.Add(newsEvery)
	}
	return k.news.toldAt.Add(newsEvery)
}

// NewsAt returns when there is something to tell the model about how far a call is; zero if there is nothing.
func (c *Calls) NewsAt() (first time.Time) {
	for i := range c.open {
		if at := c.open[i].newsAt(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// News is how far a call is: Fraction is that of Progressed.
type News struct {
	Tool, Text string
	Fraction   float64
}

// TakeNews returns what the model is told now about how far calls are, and notes that it knows.
func (c *Calls) TakeNews(at time.Time) (all []News) {
	for i := range c.open {
		k := &c.open[i]
		if due := k.newsAt(); due.IsZero() || at.Before(due) {
			continue
		}
		k.news.told, k.news.toldAt = true, at
		all = append(all, News{Tool: k.tool, Text: k.news.text, Fraction: k.news.fraction})
	}
	return all
}

// Holds reports whether the model waits for the answer of a call that is not one of those.
func (c *Calls) Holds(but func(*registry.Prepared) bool) bool {
	return c.first(func(k *call) bool { return !k.put() && k.reader.wants() && !but(k.prepared) }) != nil
}

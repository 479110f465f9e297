package orchestrator

import "slices"

// SpokenItem is an item spoken lately. Checkpoints contain its JSON form.
type SpokenItem struct {
	Item string `json:"item"`
	Turn int    `json:"turn"`
	// MS is its length so far; the whole length with Ended.
	MS    int64 `json:"ms,omitempty"`
	Ended bool  `json:"ended,omitempty"`
	// Cut means that it was flushed, or that the transcript has only the received part.
	Cut bool `json:"cut,omitempty"`
	// Seq is the seq of its announcement to the client; zero if not sent.
	Seq int64 `json:"seq,omitempty"`
}

// Received describes what a returning client has.
type Received struct {
	// Item is its newest item with audio, and MS the received part; may be empty.
	Item string
	MS   int64
	// Seq is the highest seq received.
	Seq int64
}

// Unheard is an item of which the client has only the first HasMS of MS.
type Unheard struct {
	Item      string
	HasMS, MS int64
}

const (
	// maxSpoken is how many items are remembered for a client that returns to another process.
	maxSpoken = 8
	// leastUnheard is how much of an answer must be missing to be repeated, in ms. Answers end in silence, and a model
	// asked for half a syllable says a sentence.
	leastUnheard = 250
)

// note adds an item to the latest ones.
func (l *line) note(id string, turn int) {
	l.recent = newest(l.recent, SpokenItem{Item: id, Turn: turn}, maxSpoken)
}

// renote changes the memory of a recent item.
func (l *line) renote(id string, change func(*SpokenItem)) {
	if i := slices.IndexFunc(l.recent, func(it SpokenItem) bool { return it.Item == id }); i >= 0 {
		l.recent = slices.Clone(l.recent)
		change(&l.recent[i])
	}
}

// received returns how much of the item at index i the client has, if its newest item is at index newest; negative if
// it has none.
func (has Received) received(all []SpokenItem, i, newest int) int64 {
	it := all[i]
	switch {
	case it.Cut:
		return it.MS
	case i == newest:
		return min(max(has.MS, 0), it.MS)
	case newest >= 0:
		if i < newest {
			return it.MS
		}
		return 0
	case it.Seq != 0 && it.Seq <= has.Seq:
		// It has begun the item. If it names no audio, that was lost with a page, as on any
		// connection; otherwise it has come to a newer item than this one.
		return it.MS
	case has.Item != "" && it.Seq == 0:
		return it.MS // the item that it names is newer than everything that is remembered
	}
	return 0
}

// Heard returns the memory adjusted to what the client has received. If a part of the last answer is missing, its turn
// counts as open: the model must answer again or continue from there. unheard are the items that the client has only in
// part. If nothing is missing, the turn counts as answered.
func (m Memory) Heard(has Received) (is Memory, unheard []Unheard) {
	t := m.Open
	if t == nil {
		t = m.Answered
	}
	if t == nil || t.Number != m.Turn {
		return m, nil
	}
	all := slices.Clone(m.Spoken)
	newest := slices.IndexFunc(all, func(it SpokenItem) bool { return it.Item == has.Item })
	some, last := false, -1
	for i := range all {
		it := &all[i]
		if it.Turn != t.Number {
			continue
		}
		last = i
		got := has.received(all, i, newest)
		some = some || got > 0
		if it.Cut || it.MS-got < leastUnheard && (got > 0 || it.MS == 0 && it.Ended) {
			continue
		}
		unheard = append(unheard, Unheard{Item: it.Item, HasMS: got, MS: it.MS})
		it.Cut, it.MS, it.Ended = true, got, true
	}
	switch {
	case len(unheard) > 0:
		open := *t
		open.Spoke, open.Untold = some, false
		m.Open, m.Answered, m.Spoken = &open, nil, all
	case last >= 0 && t.Spoke && all[last].Ended && !all[last].Cut && !m.Calls.UnderWay(t.Number):
		// Some models report the end of an answer only when they think that it was played.
		answered := *t
		answered.Untold = answered.Untold || m.Open != nil
		m.Open, m.Answered = nil, &answered
	}
	return m, unheard
}

package meter

import (
	"context"
	"maps"
	"slices"
	"time"

	"voicegw/internal/cost"
	"voicegw/store"
)

// Filter selects usage records.
type Filter struct {
	// An empty User or Key matches all.
	User, Key string
	// First and Last are UTC days, inclusive.
	First, Last time.Time
}

// Day is the usage of one day.
type Day struct {
	Date string `json:"date"`
	cost.Sum
}

// Report returns the usage by day, oldest first, without empty days. Usage of other processes in the last 5 s may be
// missing. unreadable counts the records left out because they can't be read. The error is the store's.
func (m *Meter) Report(ctx context.Context, f Filter) (days []Day, unreadable int, err error) {
	all := map[slot]cost.Sum{}
	unreadable, err = m.opts.Store.Days(ctx, f.First, f.Last, func(r store.UsageRecord) {
		if f.wants(r.User, r.Key) {
			all[slot{node: r.Writer, day: r.Day, user: r.User, key: r.Key}] = r.Sum
		}
	})
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // it names the store
	}
	first, last := dayOf(f.First), dayOf(f.Last)
	m.mu.Lock()
	for s, e := range m.dirty {
		if s.day >= first && s.day <= last && f.wants(s.user, s.key) {
			all[s] = e.sum
		}
	}
	m.mu.Unlock()
	sums := map[string]cost.Sum{}
	for s, sum := range all {
		sums[s.day] = sums[s.day].Plus(sum)
	}
	for _, date := range slices.Sorted(maps.Keys(sums)) {
		days = append(days, Day{Date: date, Sum: sums[date]})
	}
	return days, unreadable, nil
}

func (f Filter) wants(user, key string) bool {
	return (f.User == "" || f.User == user) && (f.Key == "" || f.Key == key)
}

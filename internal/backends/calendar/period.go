package calendar

import (
	"slices"
	"time"
)

// Period is the time from Start to End, half open.
type Period struct {
	Start, End time.Time
}

// Length returns how long it lasts; 0 or less for an invalid one.
func (p Period) Length() time.Duration { return p.End.Sub(p.Start) }

// Overlaps says whether the two have a common time.
func (p Period) Overlaps(q Period) bool {
	return p.Start.Before(q.End) && q.Start.Before(p.End) && p.Length() > 0 && q.Length() > 0
}

// merge returns what is covered by periods inside within: cut to it, sorted, without
// overlaps, and what touches joined to one. It leaves periods as they are.
func merge(periods []Period, within Period) []Period {
	var cut []Period
	for _, p := range periods {
		if p.Overlaps(within) {
			cut = append(cut, Period{
				slices.MaxFunc([]time.Time{p.Start, within.Start}, time.Time.Compare),
				slices.MinFunc([]time.Time{p.End, within.End}, time.Time.Compare),
			})
		}
	}
	slices.SortFunc(cut, func(a, b Period) int { return a.Start.Compare(b.Start) })
	var merged []Period
	for _, p := range cut {
		last := len(merged) - 1
		switch {
		case last < 0 || p.Start.After(merged[last].End):
			merged = append(merged, p)
		case p.End.After(merged[last].End):
			merged[last].End = p.End
		}
	}
	return merged
}

// gaps returns the times of at least least inside within that busy leaves, sorted.
// busy is as Merge returns it.
func gaps(busy []Period, within Period, least time.Duration) []Period {
	var free []Period
	add := func(start, end time.Time) {
		if p := (Period{start, end}); p.Length() > 0 && p.Length() >= least {
			free = append(free, p)
		}
	}
	from := within.Start
	for _, b := range busy {
		add(from, b.Start)
		from = b.End
	}
	add(from, within.End)
	return free
}

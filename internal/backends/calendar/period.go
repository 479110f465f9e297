package calendar

import (
	"slices"
	"time"
)

// Period is the time from Start to End, half open.
type Period struct {
	Start, End time.Time
}

// Length is 0 or less for an invalid period.
func (p Period) Length() time.Duration { return p.End.Sub(p.Start) }

// Overlaps reports whether p and q have common time.
func (p Period) Overlaps(q Period) bool {
	return p.Start.Before(q.End) && q.Start.Before(p.End) && p.Length() > 0 && q.Length() > 0
}

// merge cuts copies of the periods to within, sorts them, and joins those that overlap or touch.
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

// gaps returns the periods of at least least between the busy ones inside within. busy is a result of merge.
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

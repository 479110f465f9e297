package voice

import "time"

// outages schedules the disconnections of Options.Outages.
type outages struct {
	list   []Outage // fixed
	counts []int    // how often each occurred or was skipped
}

// at returns when an outage is due; zero before the session begins.
func (s *outages) at(i int, began time.Time) time.Time {
	if began.IsZero() {
		return time.Time{}
	}
	return began.Add(s.list[i].First + time.Duration(s.counts[i])*s.list[i].Every)
}

// take returns an outage that is due.
func (s *outages) take(now, began time.Time) (o Outage, ok bool) {
	for i, o := range s.list {
		if s.at(i, began).After(now) {
			continue
		}
		for !s.at(i, began).After(now) {
			s.counts[i]++
		}
		return o, true
	}
	return Outage{}, false
}

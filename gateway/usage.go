package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// Usage counts what users and keys use; *meter.Meter implements and documents it.
type Usage interface {
	Allows(who meter.Who) *meter.Refusal
	Report(ctx context.Context, f meter.Filter) (days []meter.Day, unreadable int, err error)
}

func (s *Server) spent(w http.ResponseWriter, r *http.Request, who user.User) *problem {
	if s.opts.Usage == nil {
		return nil
	}
	no := s.opts.Usage.Allows(meter.Who{User: who.String(), Key: auth.From(r.Context()).ID})
	if no == nil {
		return nil
	}
	return s.limited(w, r, no)
}

func (s *Server) limited(w http.ResponseWriter, r *http.Request, no *meter.Refusal) *problem {
	s.seldom.Info("refused by a limit", no.Limit, "addr", s.clientAddr(r).String(), "route", r.Pattern)
	limitHeaders(w.Header(), no)
	if no.Day() {
		return refusal(http.StatusTooManyRequests, protocol.CodeBudget,
			"Your quota is exhausted. Come back later.").until(time.Now().Add(no.RetryIn))
	}
	return refusal(http.StatusTooManyRequests, protocol.CodeLimit,
		"You have too many sessions, or start them too fast. End one, or try again in a moment.")
}

// limitHeaders sets the headers of draft-ietf-httpapi-ratelimit-headers-11 (read 2026-11-25): quota q, window w,
// remainder r, and seconds t until there is more. q is in micro-dollars for a cost limit, and seconds for one of
// minutes.
func limitHeaders(h http.Header, no *meter.Refusal) {
	seconds := int64(math.Ceil(no.RetryIn.Seconds()))
	h.Set("Retry-After", fmt.Sprint(max(seconds, 1)))
	policy := fmt.Sprintf("%q;q=%d", no.Limit, no.Quota)
	if no.Window > 0 {
		policy += fmt.Sprintf(";w=%d", int64(no.Window.Seconds()))
	}
	h.Set("RateLimit-Policy", policy)
	h.Set("RateLimit", fmt.Sprintf("%q;r=0;t=%d", no.Limit, max(seconds, 1)))
}

type usageDay struct {
	Date string `json:"date,omitempty"`
	// USDMicros is in millionths of a dollar. Unpriced counts usage reports without a price, which it excludes.
	USDMicros int64      `json:"usd_micros"`
	Unpriced  int64      `json:"unpriced"`
	Estimated int64      `json:"estimated,omitempty"` // usage that no model reported
	Sessions  int64      `json:"sessions"`
	Turns     int64      `json:"turns"`
	VoiceMS   int64      `json:"voice_ms"`
	Tokens    cost.Usage `json:"tokens"`
}

func dayLine(date string, sum cost.Sum) usageDay {
	return usageDay{Date: date, USDMicros: int64(sum.Micros), Unpriced: sum.Unpriced, Estimated: sum.Estimated,
		Sessions: sum.Sessions, Turns: sum.Turns, VoiceMS: sum.VoiceMS, Tokens: sum.Tokens}
}

const (
	usageDays     = 30
	mostUsageDays = 100
)

func (s operatorAPI) showUsage(w http.ResponseWriter, r *http.Request) *problem {
	f, wrong := usageFilter(r.URL.Query(), time.Now())
	if wrong != "" {
		return invalid(wrong)
	}
	if only := mine(r.Context()); !only.IsZero() {
		f.User = only.String() // overrides the parameter
	}
	days, unreadable, err := s.opts.Usage.Report(r.Context(), f)
	if err != nil {
		return s.storeFailed("reading the usage failed", err)
	}
	var all cost.Sum
	lines := make([]usageDay, 0, len(days))
	for _, d := range days {
		all = all.Plus(d.Sum)
		lines = append(lines, dayLine(d.Date, d.Sum))
	}
	return answer(w, http.StatusOK, map[string]any{"days": lines, "total": dayLine("", all),
		"prices":     s.live.Load().Prices,
		"unreadable": unreadable})
}

func usageFilter(q url.Values, now time.Time) (f meter.Filter, wrong string) {
	f = meter.Filter{Key: q.Get("key"), First: now.AddDate(0, 0, 1-usageDays), Last: now}
	if f.User, wrong = listParameters(q, "key", "since"); wrong != "" {
		return f, wrong
	}
	if since := q.Get("since"); since != "" {
		day, err := time.Parse(time.DateOnly, since)
		if err != nil {
			return f, "The parameter since must be a day in UTC, such as 2026-11-25."
		}
		f.First = day
	}
	if oldest := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-mostUsageDays); f.First.Before(oldest) || f.First.After(now) {
		return f, fmt.Sprintf("The parameter since must be a day from %s to today: usage is kept for %d days.",
			oldest.Format(time.DateOnly), mostUsageDays)
	}
	return f, ""
}

package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store/storetest"
)

// fakeUsage refuses one user, and returns a given report.
type fakeUsage struct {
	refused string
	no      *meter.Refusal
	days    []meter.Day
	err     error
	asked   meter.Filter
}

func (f *fakeUsage) Allows(who meter.Who) *meter.Refusal {
	if who.User != f.refused {
		return nil
	}
	return f.no
}

func (f *fakeUsage) Report(_ context.Context, asked meter.Filter) ([]meter.Day, int, error) {
	f.asked = asked
	return f.days, 1, f.err
}

// TestUsedUpBudget: each endpoint refuses a user with a used-up budget with 429 and the limit's numbers.
func TestUsedUpBudget(t *testing.T) {
	f := &fakeUsage{refused: "ada", no: &meter.Refusal{Limit: meter.LimitUserCost, Quota: 5_000_000, Window: 24 * time.Hour, RetryIn: 90*time.Minute + 300*time.Millisecond}}
	s := everyRoute(t, func(o *Options) { o.Usage = f })
	for path, body := range map[string]string{
		"/v1/chat":             `{"message":"hello","user":"ada"}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"hello"}],"user":"ada"}`,
		"/v1/sessions":         `{"user":"ada"}`,
	} {
		ask := func(body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+testKey)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		w := ask(body)
		if code, _ := problemOf(t, w); w.Code != http.StatusTooManyRequests || code != "budget" {
			t.Errorf("%s: %d %s", path, w.Code, code)
		}
		for name, want := range map[string]string{"Retry-After": "5401", "RateLimit-Policy": `"user-day-cost";q=5000000;w=86400`, "RateLimit": `"user-day-cost";r=0;t=5401`} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q instead of %q", path, name, got, want)
			}
		}
		if !strings.Contains(w.Body.String(), `"until"`) {
			t.Errorf("%s: %s", path, w.Body)
		}
		if w := ask(strings.ReplaceAll(body, "ada", "bob")); w.Code == http.StatusTooManyRequests {
			t.Errorf("%s: another user is refused: %s", path, w.Body)
		}
	}
}

// TestUsageForOperators: operators, and no other callers, get the days with their sums.
func TestUsageForOperators(t *testing.T) {
	f := &fakeUsage{days: []meter.Day{
		{Date: "2026-11-24", Sum: cost.Sum{Amount: cost.Amount{Micros: 5, Unpriced: 1}, Turns: 2, Tokens: cost.Usage{InputText: 7}}},
		{Date: "2026-11-25", Sum: cost.Sum{Amount: cost.Amount{Micros: 6}, Sessions: 1, VoiceMS: 900, Tokens: cost.Usage{InputText: 1}}},
	}}
	s := everyRoute(t, func(o *Options) { o.Usage, o.Prices = f, "2026-11-25" })
	ask := func(query, key string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/usage"+query, nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := ask("", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", w.Code, w.Body)
	}
	const want = `{"days":[{"date":"2026-11-24","usd_micros":5,"unpriced":1,"sessions":0,"turns":2,"voice_ms":0,"tokens":{"input_text":7}},` +
		`{"date":"2026-11-25","usd_micros":6,"unpriced":0,"sessions":1,"turns":0,"voice_ms":900,"tokens":{"input_text":1}}],` +
		`"prices":"2026-11-25","total":{"usd_micros":11,"unpriced":1,"sessions":1,"turns":2,"voice_ms":900,"tokens":{"input_text":8}},"unreadable":1}`
	if w := ask("?user=ada&key=key:1", testKey); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if f.asked.User != "ada" || f.asked.Key != "key:1" || f.asked.Last.Sub(f.asked.First) != 29*24*time.Hour {
		t.Errorf("asked for %+v", f.asked)
	}
	for _, wrong := range []string{"?since=yesterday", "?since=1999-01-01", "?since=2999-01-01", "?users=ada", "?user=%00"} {
		if w := ask(wrong, testKey); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, w.Code, w.Body)
		}
	}
	f.err = errors.New("away")
	if w := ask("", testKey); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "away") {
		t.Errorf("without the store: %d %s", w.Code, w.Body)
	}
}

// TestUsageSince: a day in UTC, at most 100 days ago.
func TestUsageSince(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 30, 0, 0, time.FixedZone("Kiritimati", 14*3600)) // in UTC it is the 24th
	for since, ok := range map[string]bool{"2026-11-24": true, "2026-11-25": false, "2026-08-17": true, "2026-08-16": false} {
		f, wrong := usageFilter(url.Values{"since": {since}}, now)
		if (wrong == "") != ok {
			t.Errorf("%s: %+v, %q", since, f, wrong)
		}
	}
}

// TestUsedUpAtTheHandshake: a key with a used-up budget is refused before the upgrade; a client with a ticket, with
// another key, or with a session to resume is let in.
func TestUsedUpAtTheHandshake(t *testing.T) {
	spent, fresh := auth.NewAPIKey(), auth.NewAPIKey()
	in, err := auth.New(auth.Options{Keys: []auth.Key{
		{ID: spent.ID(), Name: "spent", Hash: spent.Hash(), Scopes: auth.ScopeVoice}, {ID: fresh.ID(), Name: "fresh", Hash: fresh.Hash(), Scopes: auth.ScopeVoice},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	m, err := meter.New(t.Context(), meter.Options{Store: storetest.NewUsage(), Node: "a", Key: func(id string) auth.Limits {
		if id == "key:"+spent.ID() {
			return auth.Limits{CostPerDay: 1}
		}
		return auth.Limits{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	opts := sessionOptions()
	opts.Usage, opts.Handoffs, opts.Policy.ResumeGrace = m, inspecting{}, time.Minute
	reasons := make(chan string, 100)
	opts.Observe = func(string, string) func(session.Event) {
		return func(e session.Event) {
			if refused, ok := e.(session.Refused); ok {
				reasons <- refused.Reason
			}
		}
	}
	srv, _ := startOf(t, opts, func(o *Options) { o.Auth = auth.Only(in) })
	who := meter.Who{User: "key:" + spent.ID(), Key: "key:" + spent.ID()}
	m.Turn(who, cost.Amount{Micros: 1_000_000}, cost.Usage{})
	show := func(key auth.APIKey) http.Header { return http.Header{"Authorization": {"Bearer " + key.Reveal()}} }
	if got := speaks(t, srv, protocol.DialOptions{Header: show(spent)}); got != "429" {
		t.Errorf("the key that is used up: %s", got)
	}
	if got := <-reasons; got != "budget" {
		t.Errorf("it was refused for %s", got)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/voice", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = show(spent)
	answered, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	if h := answered.Header; h.Get("Retry-After") == "" || !strings.HasPrefix(h.Get("RateLimit-Policy"), `"key-day-cost";q=1000000;w=86400`) || !strings.HasPrefix(h.Get("RateLimit"), `"key-day-cost";r=0;t=`) {
		t.Errorf("the headers are %v", h)
	}
	for name, o := range map[string]protocol.DialOptions{"another key": {Header: show(fresh)}, "a ticket": {Header: show(spent), Ticket: "plain"}} {
		if got := speaks(t, srv, o); got != "speaks" {
			t.Errorf("%s: %s", name, got)
		}
	}
	running, no := m.Enter(who, true)
	if no != nil {
		t.Fatal(no)
	}
	if got := speaks(t, srv, protocol.DialOptions{Header: show(spent)}); got != "4029" {
		t.Errorf("with a session that runs, a new one: %s", got)
	}
	running.Leave()
}

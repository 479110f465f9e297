package gateway

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestRequestsAreObserved: the observer gets each answered request, by the pattern of its route and never by its path.
func TestRequestsAreObserved(t *testing.T) {
	wrong := func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }
	var refused []string
	type asked struct {
		route  string
		status int
	}
	var reply []asked
	s := everyRoute(t, func(o *Options) {
		o.Refused = func(why string) { refused = append(refused, why) }
		o.Observe = func(route string, status int, took time.Duration) {
			if took < 0 {
				t.Errorf("%s took %v", route, took)
			}
			reply = append(reply, asked{route, status})
		}
	})
	ask(s, "GET", "/healthz", nil)
	ask(s, "GET", "/v1/sessions/somebody-s", nil)
	ask(s, "GET", "/v1/sessions", wrong)
	ask(s, "GET", "/healthz", host("evil.test"))
	want := []asked{{"GET /healthz", 200}, {"GET /v1/sessions/{id}", 404}, {"GET /v1/sessions", http.StatusUnauthorized}, {"", http.StatusMisdirectedRequest}}
	if !slices.Equal(reply, want) {
		t.Errorf("the observations are %v, want %v", reply, want)
	}
	if !slices.Equal(refused, []string{"form"}) {
		t.Errorf("wrong credentials are observed as %q", refused)
	}
	for range 200 {
		ask(s, "GET", "/v1/sessions", wrong)
	}
	if !slices.Contains(refused, TooManyWrong) {
		t.Errorf("too many wrong credentials are observed as %q", refused)
	}
	if n := len(s.routes.patterns); n > 80 {
		t.Errorf("there are %d routes: metrics.TestSeriesAreBounded counts 80", n)
	}
}

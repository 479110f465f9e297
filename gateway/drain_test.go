package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// fakeDrain records the time limit of its start.
type fakeDrain struct {
	begun []time.Duration
	at    protocol.DrainProgress
}

func (d *fakeDrain) Begin(limit time.Duration) {
	d.begun = append(d.begun, limit)
	d.at.Draining = true
}

func (d *fakeDrain) Progress() protocol.DrainProgress { return d.at }

// TestDrainByAnOperator: an operator starts the drain with or without a time, and reads its progress. An invalid request
// starts nothing, and other callers are refused.
func TestDrainByAnOperator(t *testing.T) {
	d := &fakeDrain{at: protocol.DrainProgress{Sessions: 3, Away: 1, Moved: 4, Carried: 2, Messages: 5, Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) { o.Drain, o.Auth = d, operators(testKey) })
	key := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) }
	for _, body := range []string{`{"timeout_ms":-1}`, `{"timeout_ms":86400001}`, `{"timeout":1}`, `{"timeout_ms":"1s"}`, `[]`, `{`} {
		if w := send(s, "/v1/drain", body, key); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "invalid_message") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if w := ask(s, method, "/v1/drain", noKey); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", method, w.Code)
		}
	}
	if w := ask(s, "GET", "/v1/drain", nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"draining":false`) || len(d.begun) != 0 {
		t.Errorf("before the drain: %d %s, begun %v", w.Code, w.Body, d.begun)
	}
	for _, body := range []string{"", `{}`, `{"timeout_ms":1500}`} {
		if w := send(s, "/v1/drain", body, key); w.Code != http.StatusAccepted {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	}
	if want := []time.Duration{0, 0, 1500 * time.Millisecond}; !cmp.Equal(d.begun, want) {
		t.Errorf("it was begun with %v, want %v", d.begun, want)
	}
	var got map[string]any
	w := ask(s, "GET", "/v1/drain", nil)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"draining": true, "done": false, "until": "2026-01-02T03:04:05Z", "sessions": 3.0, "away": 1.0, "moved": 4.0, "carried": 2.0, "messages": 5.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
}

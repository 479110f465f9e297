package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"
)

func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSmoke(t *testing.T) {
	start := time.Now()
	s := openTest(t, Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Log("open", time.Since(start))
	l := s.Ledger()
	e, fresh, err := l.Reserve(t.Context(), Reservation{Key: "a", Tool: "x", Session: "s", Lease: time.Second})
	t.Log(e, fresh, err)
	t.Log(l.Finish(t.Context(), e, json.RawMessage(`{"a":"<b>"}`)))
	t.Log(l.Reserve(t.Context(), Reservation{Key: "a", Tool: "x", Session: "s", Lease: time.Second}))
	t.Log(s.Blocks().Block(t.Context(), "ada", time.Now().Add(time.Hour)))
	t.Log(s.Blocks().Unblock(t.Context(), "ada"))
	t.Log(s.Audit().Append(t.Context(), []byte("hallo")))
	t.Log(s.Audit().Read(t.Context(), time.Time{}, func(b []byte) error { t.Log(string(b)); return nil }))
	t.Log(time.Since(start))
}

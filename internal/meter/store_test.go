package meter

import (
	"context"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/testutil"
	"voicegw/store"
)

// TestOnAStore: two processes share one limit over a real store, and a third one that starts after both have ended has
// their counts.
func TestOnAStore(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	limits := auth.Limits{CostPerDay: 0.001, Sessions: 3}
	begin := func(node string) *Meter {
		t.Helper()
		m, err := New(t.Context(), Options{Store: s.Usage, Node: node, User: limits})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	a, b := begin("a"), begin("b")
	sa, sb := enter(t, a, ada), enter(t, b, ada)
	testutil.WaitUntil(t, "a knows of both sessions", func() bool {
		third, no := a.Enter(ada, false)
		if no == nil {
			third.Leave()
		}
		fourth, no := b.Enter(ada, false)
		if no == nil {
			fourth.Leave()
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.totals[subject{user, "ada"}].running == 2
	})
	sa.Used(spend(600), cost.Usage{OutputText: 6})
	sb.Used(spend(400), cost.Usage{OutputText: 4})
	for name, m := range map[string]*Meter{"a": a, "b": b} {
		testutil.WaitUntil(t, name+" refuses", func() bool { no := m.Allows(ada); return no != nil && no.Limit == LimitUserCost })
	}
	sa.Leave()
	sb.Leave()
	for _, m := range []*Meter{a, b} {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := begin("c")
	refused(t, c, ada, LimitUserCost)
	days, unreadable, err := c.Report(t.Context(), Filter{User: "ada", First: time.Now(), Last: time.Now()})
	if err != nil || unreadable != 0 || len(days) != 1 || days[0].Micros != 1000 || days[0].Tokens.OutputText != 10 {
		t.Errorf("%v, %d unreadable: %+v", err, unreadable, days)
	}
}

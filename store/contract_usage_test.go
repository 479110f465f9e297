package store

import (
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/cost"
	"voicegw/internal/testutil"
)

// testUsage: each process overwrites its own record of a day, and all records are read.
func testUsage(t *testing.T, s *Store) {
	u := s.Usage
	today := time.Date(2026, 11, 25, 13, 0, 0, 0, time.UTC)
	record := func(day time.Time, writer string, micros cost.Micros) UsageRecord {
		return UsageRecord{Day: day.Format(time.DateOnly), Writer: writer, User: key(t, "ada"), Key: "k1", Sum: cost.Sum{Amount: cost.Amount{Micros: micros, Unpriced: 1}, Turns: 2, Tokens: cost.Usage{InputText: 3}}}
	}
	save := func(r UsageRecord, known uint64) uint64 {
		t.Helper()
		revision, err := u.Save(t.Context(), r, known)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	first := save(record(today, "a", 5), 0)
	save(record(today, "a", 7), first)
	save(record(today, "a", 9), first) // the previous acknowledgement was lost
	save(record(today, "b", 100), 0)
	save(record(today.AddDate(0, 0, -1), "a", 1000), 0)
	save(record(today.AddDate(0, 0, -3), "a", 10_000), 0)
	sum := func(first, last time.Time) (all cost.Sum) {
		t.Helper()
		_, err := u.Days(t.Context(), first, last, func(r UsageRecord) {
			if r.User == key(t, "ada") {
				all = all.Plus(r.Sum)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := cost.Sum{Amount: cost.Amount{Micros: 109, Unpriced: 2}, Turns: 4, Tokens: cost.Usage{InputText: 6}}
	settles(t, s, "today", want, func() cost.Sum { return sum(today, today) })
	settles(t, s, "three days", 1109, func() cost.Micros { return sum(today.AddDate(0, 0, -2), today).Micros })
	for _, days := range []int{-1, 100} {
		if _, err := u.Days(t.Context(), today, today.AddDate(0, 0, days), nil); err == nil || !strings.Contains(err.Error(), "1 to 100") {
			t.Errorf("%d days more: %v", days, err)
		}
	}
	for _, wrong := range []UsageRecord{{Day: "today", Writer: "a"}, {Day: "2026-11-25"}, {Day: "2026-11-25", Writer: "a", Sum: cost.Sum{Amount: cost.Amount{Micros: -1}}}} {
		if _, err := u.Save(t.Context(), wrong, 0); err == nil {
			t.Errorf("%+v was saved", wrong)
		}
	}
}

// testUsageNotices: a listener receives the notices of all processes until it stops.
func testUsageNotices(t *testing.T, s *Store) {
	u := s.Usage
	var mu sync.Mutex
	heard := map[string]int{}
	stop, err := u.Hear(func(data []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard[string(data)]++
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		mu.Lock()
		defer mu.Unlock()
		return heard[text]
	}
	send := func(text string) {
		t.Helper()
		if err := u.Tell([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WaitUntil(t, "a notice arrives", func() bool { send("a"); return count("a") > 0 })
	stop()
	again, err := u.Hear(func(data []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard["again "+string(data)]++
	})
	if err != nil {
		t.Fatal(err)
	}
	defer again()
	testutil.WaitUntil(t, "a second listener gets a notice", func() bool { send("b"); return count("again b") > 0 })
	if n := count("b"); n > 0 {
		t.Errorf("a stopped listener got %d notices", n)
	}
}

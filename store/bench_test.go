package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkStore measures each operation on an embedded store, by one caller and by 32, with both ways of syncing.
// p50 and p99 are for one operation; with 32 callers they include its wait for the others.
func BenchmarkStore(b *testing.B) {
	for _, operation := range []struct {
		name string
		// make prepares n operations and returns them.
		make func(b *testing.B, s *Store, n int) func(i int) error
	}{
		{"reserve", benchReserve},
		{"finish", benchFinish},
		{"confirm-create", benchCreate},
		{"resolve", benchResolve},
		{"block", benchBlock},
		{"blocked", benchBlocked},
		{"audit-append", benchAppend},
	} {
		for _, mode := range []struct {
			name string
			sync Sync
		}{{"always", SyncAlways}, {"interval", SyncInterval}} {
			for _, writers := range []int{1, 32} {
				b.Run(fmt.Sprintf("%s/%s/writers=%d", operation.name, mode.name, writers), func(b *testing.B) {
					s := openTest(b, Options{Dir: b.TempDir(), Sync: mode.sync, MostBlocks: 1 << 30})
					run(b, writers, operation.make(b, s, b.N))
				})
			}
		}
	}
}

// run divides b.N operations among writers and reports the time of one.
func run(b *testing.B, writers int, operation func(i int) error) {
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				begun := time.Now()
				if err := operation(i); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(begun)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))]) / float64(time.Microsecond)
	}
	b.ReportMetric(at(0.50), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
}

// prepare runs unmeasured operations, several at once.
func prepare(b *testing.B, n int, operation func(i int) error) {
	b.Helper()
	errs := make([]error, 32)
	racers(32, func(w int) {
		for i := w; i < n; i += 32 {
			errs[w] = errors.Join(errs[w], operation(i))
		}
	})
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

func benchReserve(_ *testing.B, s *Store, _ int) func(int) error {
	return func(i int) error {
		_, _, err := s.Ledger.Reserve(context.Background(), Reservation{Key: fmt.Sprint(i), Tool: "t", Session: "s", Lease: time.Minute})
		return err
	}
}

func benchFinish(b *testing.B, s *Store, n int) func(int) error {
	entries := make([]Entry, n)
	prepare(b, n, func(i int) (err error) {
		entries[i], _, err = s.Ledger.Reserve(context.Background(), Reservation{Key: fmt.Sprint(i)})
		return err
	})
	envelope, _ := json.Marshal(fmt.Sprintf("%0300d", 0))
	return func(i int) error { return s.Ledger.Finish(context.Background(), entries[i], envelope) }
}

func benchQuestion(i int) Confirmation {
	now := time.Now()
	return Confirmation{Token: fmt.Sprint(i), Session: "s", Tool: "t", Args: json.RawMessage(`{"title":"Tea"}`), CreatedAt: now, ExpiresAt: now.Add(5 * time.Minute)}
}

func benchCreate(_ *testing.B, s *Store, _ int) func(int) error {
	return func(i int) error { return s.Confirmations.Create(context.Background(), benchQuestion(i)) }
}

func benchResolve(b *testing.B, s *Store, n int) func(int) error {
	prepare(b, n, benchCreate(b, s, n))
	return func(i int) error {
		_, err := s.Confirmations.Resolve(context.Background(), fmt.Sprint(i), "s", true, time.Now())
		return err
	}
}

func benchBlock(_ *testing.B, s *Store, _ int) func(int) error {
	until := time.Now().Add(time.Hour)
	return func(i int) error { return s.Blocks.Block(context.Background(), fmt.Sprint(i), until) }
}

func benchBlocked(b *testing.B, s *Store, _ int) func(int) error {
	prepare(b, 1000, benchBlock(b, s, 0))
	return func(i int) error {
		if _, ok := s.Blocks.Blocked(fmt.Sprint(i % 1000)); !ok {
			return errors.New("not blocked")
		}
		return nil
	}
}

func benchAppend(_ *testing.B, s *Store, _ int) func(int) error {
	line := fmt.Appendf(nil, `{"event":"tool_execution","args":"%0300d"}`, 0)
	return func(int) error { return s.Audit.AppendAll(context.Background(), [][]byte{line}) }
}

package capability

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBlockEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewMemoryBlocks(0)
		until := time.Now().Add(time.Minute)
		if err := b.Block(t.Context(), "ada", until); err != nil {
			t.Fatal(err)
		}
		if got, ok, _ := b.Blocked(t.Context(), "ada"); !ok || !got.Equal(until) {
			t.Errorf("blocked until %v, %t; want %v", got, ok, until)
		}
		if _, ok, _ := b.Blocked(t.Context(), "Ada"); ok {
			t.Error("another user is blocked")
		}
		<-time.After(time.Minute)
		if _, ok, _ := b.Blocked(t.Context(), "ada"); ok {
			t.Error("the block has not ended")
		}
		if list, _ := b.List(t.Context()); len(list) != 0 {
			t.Errorf("the list still holds %v", list)
		}
	})
}

func TestLongerBlockStays(t *testing.T) {
	b := NewMemoryBlocks(0)
	long := time.Now().Add(time.Hour)
	for _, until := range []time.Time{long.Add(-time.Minute), long, long.Add(-30 * time.Minute)} {
		if err := b.Block(t.Context(), "ada", until); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, _ := b.Blocked(t.Context(), "ada"); !got.Equal(long) {
		t.Errorf("blocked until %v, want %v", got, long)
	}
}

func TestUnblockAndList(t *testing.T) {
	b := NewMemoryBlocks(0)
	until := time.Now().Add(time.Hour)
	for _, user := range []string{"c", "a", "b"} {
		if err := b.Block(t.Context(), user, until); err != nil {
			t.Fatal(err)
		}
	}
	if was, _ := b.Unblock(t.Context(), "b"); !was {
		t.Error("b was not blocked")
	}
	if was, _ := b.Unblock(t.Context(), "b"); was {
		t.Error("b was blocked twice")
	}
	list, _ := b.List(t.Context())
	if diff := cmp.Diff([]Block{{"a", until}, {"c", until}}, list); diff != "" {
		t.Error(diff)
	}
}

// TestBlocksAreBounded: what has ended makes room, what runs is never forgotten.
func TestBlocksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewMemoryBlocks(2)
		block := func(user string, d time.Duration) error {
			return b.Block(t.Context(), user, time.Now().Add(d))
		}
		if err := errors.Join(block("a", time.Minute), block("b", time.Hour), block("b", 2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := block("c", time.Hour); !errors.Is(err, ErrFull) {
			t.Errorf("the third user: %v", err)
		}
		<-time.After(time.Minute)
		if err := block("c", time.Hour); err != nil {
			t.Errorf("after a block has ended: %v", err)
		}
		if _, ok, _ := b.Blocked(t.Context(), "b"); !ok {
			t.Error("a block that runs was forgotten")
		}
	})
}

func TestBlockRefusesStrangeUsers(t *testing.T) {
	b := NewMemoryBlocks(0)
	for _, user := range []string{"", strings.Repeat("x", maxUser+1)} {
		if err := b.Block(t.Context(), user, time.Now().Add(time.Hour)); !errors.Is(err, ErrUser) {
			t.Errorf("%.10q: %v", user, err)
		}
	}
}

func TestBlocksTogether(t *testing.T) {
	b := NewMemoryBlocks(4)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			user := string(rune('a' + i))
			for range 100 {
				_ = b.Block(t.Context(), user, time.Now().Add(time.Hour))
				_, _, _ = b.Blocked(t.Context(), user)
				_, _ = b.List(t.Context())
				_, _ = b.Unblock(t.Context(), user)
			}
		})
	}
	all.Wait()
	if list, _ := b.List(t.Context()); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

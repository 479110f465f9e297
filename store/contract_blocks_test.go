package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/user"
)

func testBlocks(t *testing.T, s *Store) {
	b := s.Blocks
	until := time.Now().Add(time.Hour)
	names := []string{key(t, "c*.> \""), key(t, "a"), key(t, "b")}
	for _, user := range names {
		for _, u := range []time.Time{until.Add(-time.Minute), until, until.Add(-30 * time.Minute), time.Now().Add(-time.Hour)} {
			if err := b.Block(t.Context(), user, u); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := b.Blocked(user); !ok || !got.Equal(until) {
			t.Errorf("%q is blocked until %v, %t; want %v", user, got, ok, until)
		}
	}
	if _, ok := b.Blocked(key(t, "A")); ok {
		t.Error("another user is blocked")
	}
	for _, want := range []bool{true, false} {
		if was, err := b.Unblock(t.Context(), names[2]); was != want || err != nil {
			t.Errorf("unblocked: %t %v; want %t", was, err, want)
		}
		if _, ok := b.Blocked(names[2]); ok {
			t.Error("is still blocked")
		}
	}
	var mine []Block
	list := b.List()
	for _, one := range list {
		if strings.HasPrefix(one.User, t.Name()+" ") {
			mine = append(mine, one)
		}
	}
	if diff := cmp.Diff([]Block{{User: names[1], Until: until}, {User: names[0], Until: until}}, mine); diff != "" {
		t.Error(diff)
	}
	for _, user := range []string{"", "c\x00", "a\u200b", strings.Repeat("x", user.MaxBytes+1)} {
		if err := b.Block(t.Context(), user, until); !errors.Is(err, ErrUser) {
			t.Errorf("%.10q: %v", user, err)
		}
	}
	if err := b.Block(t.Context(), strings.Repeat("x", user.MaxBytes), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Errorf("the longest name, for many years: %v", err)
	}
}

func testBlocksRace(t *testing.T, s *Store) {
	b := s.Blocks
	longest := time.Now().Add(time.Hour)
	racers(16, func(i int) {
		if err := b.Block(t.Context(), key(t, "one"), longest.Add(-time.Duration(i)*time.Second)); err != nil {
			t.Error(err)
		}
		user := key(t, fmt.Sprint(i%4))
		for range 5 {
			if err := b.Block(t.Context(), user, longest); err != nil {
				t.Error(err)
			}
			_, _ = b.Blocked(user)
			_ = b.List()
			if _, err := b.Unblock(t.Context(), user); err != nil {
				t.Error(err)
			}
		}
	})
	if got, ok := b.Blocked(key(t, "one")); !ok || !got.Equal(longest) {
		t.Errorf("the longest block was lost: %v %t", got, ok)
	}
	for i := range 4 {
		if _, ok := b.Blocked(key(t, fmt.Sprint(i))); ok {
			t.Errorf("user %d is still blocked", i)
		}
	}
}

// testWrongBlock: a foreign record in the bucket blocks no user, and is overwritten.
func testWrongBlock(t *testing.T, s *Store) {
	b, user := s.Blocks, key(t, "a")
	for _, wrong := range []string{`garbage`, `{"user":"somebody else","until":"2999-01-01T00:00:00Z"}`} {
		if _, err := b.bucket.create(t.Context(), keyOf(user), []byte(wrong), time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, ok := b.Blocked(user); ok {
			t.Error("blocked by a wrong record")
		}
		if err := b.Block(t.Context(), user, time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		if _, ok := b.Blocked(user); !ok {
			t.Error("not blocked")
		}
		if _, err := b.Unblock(t.Context(), user); err != nil {
			t.Error(err)
		}
	}
}

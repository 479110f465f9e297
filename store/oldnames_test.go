package store

import (
	"testing"
	"time"
)

// TestABlockOfAnOldName: a block recorded under an unnormalised name, from before names were normalised, still blocks
// that user, and ends when an operator removes it. Another user's is not changed.
func TestABlockOfAnOldName(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	b, ctx := s.Blocks, t.Context()
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	for _, old := range []string{" ada ", "ａｄａ", "eve"} {
		data, err := encode(block{User: old, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.bucket.create(ctx, keyOf(old), data, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		b.see(keyOf(old), copied[block]{value: block{User: old, Until: until}, revision: h.revision})
	}
	for _, name := range []string{"ada", " ada", "ａｄａ", "eve"} {
		if got, is := b.Blocked(name); !is || !got.Equal(until) {
			t.Errorf("%q: blocked %t until %s", name, is, got)
		}
	}
	if was, err := b.Unblock(ctx, "ada"); err != nil || !was {
		t.Errorf("the block was not ended: %t, %v", was, err)
	}
	for name, want := range map[string]bool{"ada": false, " ada ": false, "eve": true} {
		if _, is := b.Blocked(name); is != want {
			t.Errorf("after the end of Ada's, %q is blocked: %t", name, is)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.odd); n != 0 {
		t.Errorf("%d old names are left", n)
	}
}

package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// audited reads the lines of one test.
func audited(t *testing.T, s *Store, since time.Time) []string {
	t.Helper()
	var lines []string
	err := s.Audit.Read(t.Context(), since, func(line []byte) error {
		if bytes.HasPrefix(line, []byte(t.Name()+" ")) {
			lines = append(lines, string(line))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func testAudit(t *testing.T, s *Store) {
	if lines := audited(t, s, time.Now().Add(time.Hour)); len(lines) != 0 {
		t.Errorf("lines of the future: %q", lines)
	}
	var want []string
	var many [][]byte
	for i := range 4 {
		want = append(want, key(t, fmt.Sprint(i)))
		if err := s.Audit.AppendAll(t.Context(), [][]byte{[]byte(want[i])}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 { // more than fits in one pack
		line := key(t, fmt.Sprint(i, strings.Repeat("x", 20_000)))
		want, many = append(want, line), append(many, []byte(line))
	}
	if err := s.Audit.AppendAll(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, audited(t, s, time.Time{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, audited(t, s, time.Now().Add(-time.Hour))); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"", "two\nlines"} {
		if err := s.Audit.AppendAll(t.Context(), [][]byte{[]byte(wrong)}); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	enough := errors.New("enough")
	if err := s.Audit.Read(t.Context(), time.Time{}, func([]byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a reader that stops: %v", err)
	}
}

// testAuditRace: each line of many writers is recorded once, in its writer's order.
func testAuditRace(t *testing.T, s *Store) {
	racers(32, func(i int) {
		for n := range 20 {
			if err := s.Audit.AppendAll(t.Context(), [][]byte{fmt.Appendf(nil, "%s %d %d", t.Name(), i, n)}); err != nil {
				t.Error(err)
			}
		}
	})
	next := make([]int, 32)
	for _, line := range audited(t, s, time.Time{}) {
		var i, n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(line, t.Name()), "%d %d", &i, &n); err != nil || n != next[i] {
			t.Fatalf("%q: %v; want number %d", line, err, next[i])
		}
		next[i]++
	}
	for i, n := range next {
		if n != 20 {
			t.Errorf("%d lines of writer %d", n, i)
		}
	}
}

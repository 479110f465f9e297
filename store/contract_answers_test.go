package store

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func testAnswers(t *testing.T, s *Store) {
	a, name := s.Answers, t.Name()+" a"
	if _, rev, err := a.Load(t.Context(), name); !errors.Is(err, ErrUnknown) || rev != 0 {
		t.Fatalf("before it was saved: %d %v", rev, err)
	}
	first, err := a.Save(t.Context(), name, []byte("open"), 0, time.Hour)
	if err != nil || first == 0 {
		t.Fatal(first, err)
	}
	if _, err := a.Save(t.Context(), name, []byte("again"), 0, time.Hour); !errors.Is(err, ErrChanged) {
		t.Errorf("made a second time: %v", err)
	}
	second, err := a.Save(t.Context(), name, []byte("done"), first, time.Hour)
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	if _, err := a.Save(t.Context(), name, []byte("late"), first, time.Hour); !errors.Is(err, ErrChanged) {
		t.Errorf("with a stale revision: %v", err)
	}
	if data, rev, err := a.Load(t.Context(), name); err != nil || string(data) != "done" || rev != second {
		t.Errorf("%q %d %v", data, rev, err)
	}
	if _, err := a.Save(t.Context(), t.Name()+" b", []byte(strings.Repeat("x", s.most()+1)), 0, time.Hour); !errors.Is(err, ErrTooBig) {
		t.Errorf("too large: %v", err)
	}
}

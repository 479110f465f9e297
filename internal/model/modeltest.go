package model

import (
	"flag"
	"testing"
	"time"
)

var deep = flag.Bool("model.deep", false, "explore the models at their full bounds")

const maxStates = 4_000_000

// Deep reports whether to explore models at their full bounds.
func Deep() bool { return *deep }

// Keeps fails the test with a trace if p breaks a promise, and logs the statistics.
func Keeps[S comparable](t *testing.T, p Protocol[S]) {
	t.Helper()
	if v := explore(t, p).Violation; v != nil {
		t.Error(v)
	}
}

// Breaks fails the test unless p, a protocol with a known fault, breaks the named promise; it returns the violation.
func Breaks[S comparable](t *testing.T, p Protocol[S], promise string) *Violation {
	t.Helper()
	v := explore(t, p).Violation
	switch {
	case v == nil:
		t.Fatalf("no promise is broken; %q should be", promise)
	case v.Promise != promise:
		t.Fatalf("%q should be broken, but\n%v", promise, v)
	default:
		t.Log(v)
	}
	return v
}

func explore[S comparable](t *testing.T, p Protocol[S]) Report {
	t.Helper()
	began := time.Now()
	r, err := Explore(p, maxStates)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, in %v", r, time.Since(began).Round(time.Millisecond))
	return r
}

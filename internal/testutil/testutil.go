// Package testutil has test helpers: waiting for events, free ports, an in-memory network, a fault-injecting proxy,
// audio signals, a search for leaked secrets, the race detector, models of protocols, and a schema.json.
package testutil

import (
	_ "embed"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

// WaitLimit is how long the Wait functions wait before failing the test, far longer than any event takes on a busy
// machine.
const WaitLimit = 3 * time.Minute

// WaitUntil calls happened every 5 ms, on the caller's goroutine, until it returns true. Prefer a channel.
func WaitUntil(t testing.TB, what string, happened func() bool) {
	t.Helper()
	limit := time.After(WaitLimit)
	for !happened() {
		select {
		case <-limit:
			t.Fatalf("it never happened: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// WaitNext returns a channel's next value. It fails the test if the channel is closed.
func WaitNext[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v, open := <-from:
		if !open {
			t.Fatalf("the channel is closed: %s", what)
		}
		return v
	case <-time.After(WaitLimit):
		t.Fatalf("it never came: %s", what)
		panic("unreachable")
	}
}

// WaitClosed waits until a channel is closed. It fails the test if a value arrives.
func WaitClosed[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	select {
	case v, open := <-ch:
		if open {
			t.Fatalf("%v came instead of the end: %s", v, what)
		}
	case <-time.After(WaitLimit):
		t.Fatalf("it never ended: %s", what)
	}
}

const sample = 10 // the divisor for cases under the race detector

// SampleUnderRace returns how many of n similar cases to run: all, or a tenth under the race detector, which is up to
// ten times slower. scripts/test-norace.sh runs all without it.
func SampleUnderRace(n int) int {
	if RaceEnabled {
		return max(1, n/sample)
	}
	return n
}

// KBSearchSchema is a tool's schema.json with every kind of argument.
//
//go:embed kb_search.json
var KBSearchSchema string

// ChangeJSON sets top-level keys of a JSON object: each change is "key: JSON"; null removes the key.
func ChangeJSON(t testing.TB, schema string, changes ...string) string {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(schema), &object); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		key, value, _ := strings.Cut(c, ": ")
		object[key] = json.RawMessage(value)
		if value == "null" {
			delete(object, key)
		}
	}
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var updateDocs = flag.Bool("update-docs", false, "write the generated parts of the docs, as make docs does")

// Generated fails unless file has the text that its source gives. make docs writes the file.
func Generated(t testing.TB, file, text string) {
	t.Helper()
	if *updateDocs {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else if string(old) != text {
		t.Errorf("%s is out of date; run make docs", file)
	}
}

// GeneratedPart is [Generated] for the text between the marks <!-- name: … --> and <!-- end --> of a page.
func GeneratedPart(t testing.TB, page, name, text string) {
	t.Helper()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(old), "<!-- "+name+":")
	mark, rest, closed := strings.Cut(rest, "-->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !closed || !ended {
		t.Fatalf("%s has no marks <!-- %s: … --> and <!-- end -->", page, name)
	}
	Generated(t, page, before+"<!-- "+name+":"+mark+"-->\n\n"+text+"\n<!-- end -->"+after)
}

package e2e

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"voicegw/internal/audit"
)

// journal is an in-memory audit; tests can wait for its records.
type journal struct {
	mu      sync.Mutex // guards the following fields
	records []audit.Record
	foreign int
	grown   chan struct{} // closed and replaced at every write
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

// Write takes whole lines, as audit.Options.Lines promises.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range bytes.Lines(p) {
		r, err := audit.ParseLine(line)
		if err != nil {
			j.foreign++
			continue
		}
		j.records = append(j.records, r)
	}
	close(j.grown)
	j.grown = make(chan struct{})
	return len(p), nil
}

// Close implements audit.Options.Lines.
func (j *journal) Close() error { return nil }

// of returns the records about a tool so far, and a channel for the next ones.
func (j *journal) of(tool string) ([]audit.Record, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []audit.Record
	for _, r := range j.records {
		if r.ToolID == tool {
			out = append(out, r)
		}
	}
	return out, j.grown
}

// events returns the records of an event so far.
func (j *journal) events(event audit.Event) (out []audit.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if r.Event == event {
			out = append(out, r)
		}
	}
	return out
}

// wait returns the records about a tool once there are this many, and fails for more.
func (j *journal) wait(t testing.TB, tool string, many int) []audit.Record {
	t.Helper()
	late := time.After(patience)
	for {
		got, grown := j.of(tool)
		if len(got) > many {
			t.Fatalf("%d records about %s, want %d: %+v", len(got), tool, many, got)
		}
		if len(got) == many {
			return got
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("%d records about %s, want %d: %+v", len(got), tool, many, got)
		}
	}
}

package reportmake

import (
	"testing"
	"time"

	"voicegw/registry"
)

// progress ignores all reports.
type progress struct{}

func (progress) Tell(string, float64) {}

func TestReport(t *testing.T) {
	call := registry.Call[Args, Needs]{Args: Args{Year: 2025}, Session: registry.Session{Now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}}
	begun, err := Execute(t.Context(), call)
	if err != nil || begun.Job == nil || begun.Job.Payload != (Payload{Year: 2025}) {
		t.Fatalf("begun: %+v, %v", begun, err)
	}
	for attempt := range 2 {
		got, err := Work(t.Context(), registry.Work[Payload, Needs]{
			Payload: Payload{Year: 2025}, Needs: Needs{Progress: progress{}}, Attempt: attempt + 1, IdempotencyKey: "vg-0123456789abcdef",
		})
		if err != nil || got.Data != (Output{Number: "R-2025-01234567", Pages: 12}) {
			t.Errorf("attempt %d: %+v, %v", attempt+1, got, err)
		}
	}
	call.Args.Year = 2026
	if _, err := Execute(t.Context(), call); err == nil {
		t.Error("a year that is not over has a report")
	}
}

package transport

import (
	"testing"
	"time"
)

func TestEndOfModel(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-realtime": "2027-01-20", "gpt-realtime-2025-08-28": "2027-01-20", "gpt-realtime-mini-2025-12-15": "2027-01-20",
		"gpt-realtime-2": "", "gpt-realtime-2.1": "", "gpt-realtime-1.5": "", "gpt-realtime-whisper": "",
		"gpt-4o-mini-transcribe": "2027-02-26", "gpt-image-1-mini": "2026-12-01", "gpt-image-1": "2026-10-23", "gpt-image-2": "",
		"gpt-5": "2026-12-11", "gpt-5.6-sol": "", "models/gemini-2.5-flash": "2026-12-01", "gemini-2.5-flash-image": "2026-10-02",
		"publishers/google/models/imagen-4.0-generate-001": "2026-06-24", "imagen-4.0-fast-generate-001": "2026-06-24",
		"gemini-3.8-live": "", "gemini-3.1-flash-live-preview": "", "my-deployment": "", "": "",
	} {
		end, known := EndOfModel(model)
		if known != (want != "") || end.Date != want {
			t.Errorf("%q ends on %q, want %q", model, end.Date, want)
		}
	}
}

// TestModelEndRows: each row has a day, a source, and a successor without an announced end.
func TestModelEndRows(t *testing.T) {
	for _, r := range modelEnds {
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil || r.Source == "" || r.Successor == "" {
			t.Errorf("%s: %+v, %v", r.names, r.ModelEnd, err)
		}
		if end, known := EndOfModel(r.Successor); known {
			t.Errorf("%s: its successor %s ends on %s", r.names, r.Successor, end.Date)
		}
	}
}

func TestPast(t *testing.T) {
	end := ModelEnd{Date: "2027-01-20"}
	if end.Past(time.Date(2027, 1, 19, 23, 59, 59, 0, time.UTC)) || !end.Past(time.Date(2027, 1, 20, 0, 0, 0, 0, time.UTC)) {
		t.Error("the model does not end on its day")
	}
}

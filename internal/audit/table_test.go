package audit

import (
	"bytes"
	"strings"
	"testing"

	"voicegw/registry"
)

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		want, colour string
		r            Record
	}{
		{"ok", green, Record{OK: true, Delivered: true}},
		{"cached", yellow, Record{OK: true, CacheHit: true, Delivered: true}},
		{"cached, not delivered", yellow, Record{OK: true, CacheHit: true}},
		{"not delivered", yellow, Record{OK: true}},
		{"TRANSIENT", red, Record{ErrorType: registry.ErrorTransient, Delivered: true}},
		{"TRANSIENT, not delivered", red, Record{ErrorType: registry.ErrorTransient}},
		{"failed", red, Record{Delivered: true}},
		{"expired", yellow, Record{Event: EventConfirmation, Approval: Approval{Confirmation: "expired"}}},
		{"refused A,B", yellow, Record{Event: EventIntent, Refused: []registry.IntentType{"A", "B"}}},
		{"a future outcome", yellow, Record{Event: "a future outcome"}},
	} {
		if tt.r.Event == "" {
			tt.r.Event = EventTool
		}
		if got, colour := outcomeOf(tt.r); got != tt.want || colour != tt.colour {
			t.Errorf("%+v: %q %q, want %q %q", tt.r, got, colour, tt.want, tt.colour)
		}
	}
}

// TestOnATerminal: the outcome is coloured, and a line without its colours is not wider than the terminal.
func TestOnATerminal(t *testing.T) {
	r := Record{Event: EventTool, ToolID: "kb_search", SessionID: "voice-1", OK: true, Delivered: true, Approval: Approval{Confirmation: strings.Repeat("x", 300)}}
	for _, width := range []int{0, 40, 80, 120, 160} {
		var b bytes.Buffer
		a := NewTable(&b, TableOptions{Width: width, Colour: true})
		if err := a.Record(r, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.CaughtUp(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			plain := strings.NewReplacer(green, "", "\x1b[0m", "").Replace(strings.TrimSuffix(line, "\n"))
			if n := len([]rune(plain)); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, plain)
			}
		}
		if coloured := strings.Contains(b.String(), green+"ok\x1b[0m"); coloured != (width == 0 || width >= 80) {
			t.Errorf("width %d: %q", width, b.String())
		}
	}
}

package scenario

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPress covers default and given durations, and refusals with their field.
func TestPress(t *testing.T) {
	for name, tc := range map[string]struct {
		do    string
		d     *time.Duration
		code  int
		want  Fault
		field string // of a refusal
	}{
		"as it is":                   {do: "drop", want: Fault{Kind: Drop}},
		"its own duration":           {do: "delay", want: Fault{Kind: Delay, For: 2 * time.Second}},
		"another duration":           {do: "delay", d: ms(300), want: Fault{Kind: Delay, For: 300 * time.Millisecond}},
		"for ever":                   {do: "silence", d: ms(0), want: Fault{Kind: Silence}},
		"closed as by a fault":       {do: "close", want: Fault{Kind: Close, Code: 1011}},
		"closed with a code":         {do: "close", code: 4001, want: Fault{Kind: Close, Code: 4001}},
		"disconnect with a code":     {do: "goaway", code: 1008, d: ms(5), want: Fault{Kind: GoAway, Code: 1008, For: 5 * time.Millisecond}},
		"once more":                  {do: "duplicate_call", want: Fault{Kind: DuplicateCall, Times: 1}},
		"refused with a code":        {do: "refuse_resume", code: 1007, want: Fault{Kind: RefuseResume, Code: 1007}},
		"refused":                    {do: "refuse_resume", want: Fault{Kind: RefuseResume, Code: 1008}},
		"forgotten":                  {do: "amnesia", want: Fault{Kind: Amnesia}},
		"late":                       {do: "late_handle", want: Fault{Kind: LateHandle, For: 5 * time.Second}},
		"unknown":                    {do: "unknown_event", want: Fault{Kind: UnknownEvent, Event: "sim.unknown"}},
		"no sound":                   {do: "no_audio", want: Fault{Kind: NoAudio, For: 5 * time.Second}},
		"one is lost":                {do: "unplaced", want: Fault{Kind: Unplaced, Times: 1}},
		"a day":                      {do: "late_call", d: ms(86_400_000), want: Fault{Kind: LateCall, For: 24 * time.Hour}},
		"nothing":                    {do: "", field: "do"},
		"something else":             {do: "explode", field: "do"},
		"of a request, not of these": {do: "http_error", field: "do"},
		"no duration there":          {do: "drop", d: ms(1), field: "for_ms"},
		"negative":                   {do: "delay", d: ms(-1), field: "for_ms"},
		"more than a day":            {do: "delay", d: ms(86_400_001), field: "for_ms"},
		"no code there":              {do: "delay", code: 1011, field: "code"},
		"a code that is never sent":  {do: "close", code: 1006, field: "code"},
		"an invalid code":            {do: "close", code: 77, field: "code"},
		"a code beyond":              {do: "close", code: 5000, field: "code"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PressFault(tc.do, tc.d, tc.code)
			var no *PressError
			if tc.field == "" && (err != nil || got != tc.want) {
				t.Errorf("%+v, %v", got, err)
			}
			if tc.field != "" && (!errors.As(err, &no) || no.Field != tc.field || !strings.Contains(no.Error(), tc.field)) {
				t.Errorf("%v, want a refusal of %s", err, tc.field)
			}
		})
	}
}

func ms(n int64) *time.Duration {
	d := time.Duration(n) * time.Millisecond
	return &d
}

// TestButtons: each works without a duration, is a name in scripts, has a label, and is listed in docs/simulator.md.
func TestButtons(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## By hand\n")
	for _, b := range FaultButtons() {
		a, err := PressFault(string(b.Do), nil, 0)
		if err != nil || a.For != b.For || b.Label == "" {
			t.Errorf("%+v: %+v, %v", b, a, err)
		}
		if !strings.Contains(section, "`"+string(b.Do)+"`") {
			t.Errorf("docs/simulator.md lacks %s", b.Do)
		}
	}
	if len(FaultButtons()) != len(kinds)-1 { // http_error needs a request
		t.Errorf("%d buttons for %d kinds", len(FaultButtons()), len(kinds))
	}
}

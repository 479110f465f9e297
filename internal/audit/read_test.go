package audit

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
)

func TestRead(t *testing.T) {
	line := func(n int) string { return string(lineOf(t, n)) }
	for _, tt := range []struct {
		name string
		text string
		want []string
		told Report
	}{
		{"nothing", "", nil, Report{}},
		{"two", line(0) + line(1), calls(0, 2), Report{Records: 2}},
		{"a last line without its break", line(0) + strings.TrimSpace(line(1)), calls(0, 2), Report{Records: 2}},
		{"a torn last line", line(0) + line(1)[:40], calls(0, 1), Report{Records: 1, Torn: true}},
		{"a torn line between", line(0) + line(1)[:40] + "\n" + line(2), []string{"0", "2"}, Report{Records: 2, Foreign: 1}},
		{"foreign lines", "voicegw listens\n\n" + line(0) + `{"time":"2026-11-20T10:00:00Z","level":"INFO","msg":"x"}` + "\n[1]\nnull\n" + line(1), calls(0, 2), Report{Records: 2, Foreign: 4}},
		{"breaks of another system", strings.ReplaceAll(line(0)+line(1), "\n", "\r\n"), calls(0, 2), Report{Records: 2}},
		{"a line that is too long", line(0) + strings.Repeat("x", 3*MaxLine) + "\n" + line(1), calls(0, 2), Report{Records: 2, TooLong: 1}},
		{"the longest line", line(0) + strings.Repeat("x", MaxLine-1) + "\n" + line(1), calls(0, 2), Report{Records: 2, Foreign: 1}},
		{"one byte more", line(0) + strings.Repeat("x", MaxLine) + "\n" + line(1), calls(0, 2), Report{Records: 2, TooLong: 1}},
		{"a last line that is too long", line(0) + strings.Repeat("x", 2*MaxLine+5), calls(0, 1), Report{Records: 1, TooLong: 1}},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.text), "halves": iotest.HalfReader(strings.NewReader(tt.text)), "with the end": iotest.DataErrReader(strings.NewReader(tt.text)),
		} {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				var ids []string
				report, err := Read(r, func(r Record, line []byte) error {
					ids = append(ids, r.CallID)
					if want := strings.TrimSpace(string(lineOf(t, int(r.Time.UnixMilli()%1000)))); strings.TrimSpace(string(line)) != want {
						t.Errorf("line %s, want %s", line, want)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, ids) + cmp.Diff(tt.told, report); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
	stop := errors.New("enough")
	if report, err := Read(strings.NewReader(line(0)+line(1)), func(Record, []byte) error { return stop }); !errors.Is(err, stop) || report.Records != 1 {
		t.Errorf("an error of the caller's: %v, %+v", err, report)
	}
	if _, err := Read(iotest.ErrReader(stop), nil); !errors.Is(err, stop) {
		t.Errorf("an error of the reader's: %v", err)
	}
}

func TestFilter(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	base := Record{Event: EventTool, Time: at, ToolID: "kb_search", SessionID: "voice-abc", UserID: "ada", OK: true, Delivered: true}
	failed := base
	failed.OK, failed.ErrorType, failed.Delivered = false, registry.ErrorTransient, false
	denied := Record{Event: EventConfirmation, Time: at, ToolID: "kb_search", SessionID: "voice-abc"}
	for _, tt := range []struct {
		name   string
		filter Filter
		record Record
		want   bool
	}{
		{"all", Filter{}, base, true},
		{"session", Filter{Session: "voice-abc"}, base, true},
		{"how a session begins", Filter{Session: "voice-a"}, base, true},
		{"another session", Filter{Session: "voice-abcd"}, base, false},
		{"user", Filter{User: "ada"}, base, true},
		{"how a user begins", Filter{User: "a"}, base, false},
		{"tool", Filter{Tool: "kb_search"}, base, true},
		{"another tool", Filter{Tool: "kb_get"}, base, false},
		{"event", Filter{Event: EventTool}, base, true},
		{"another event", Filter{Event: EventIntent}, base, false},
		{"since then", Filter{Since: at}, base, true},
		{"since later", Filter{Since: at.Add(time.Millisecond)}, base, false},
		{"until then", Filter{Until: at}, base, false},
		{"until later", Filter{Until: at.Add(time.Millisecond)}, base, true},
		{"failed", Filter{Failed: true}, failed, true},
		{"not failed", Filter{Failed: true}, base, false},
		{"a type", Filter{Errors: []registry.ErrorType{registry.ErrorConflict, registry.ErrorTransient}}, failed, true},
		{"another type", Filter{Errors: []registry.ErrorType{registry.ErrorConflict}}, failed, false},
		{"no failure", Filter{Errors: []registry.ErrorType{registry.ErrorConflict}}, base, false},
		{"undelivered", Filter{Undelivered: true}, failed, true},
		{"delivered", Filter{Undelivered: true}, base, false},
		{"nothing to deliver", Filter{Undelivered: true}, denied, false},
		{"one of two", Filter{Tool: "kb_search", User: "grace"}, base, false},
	} {
		if got := tt.filter.Match(tt.record); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCalls(t *testing.T) {
	for budget, want := range map[string][3]any{
		`{"total":{"used":2,"limit":3}}`: {int64(2), int64(3), true},
		`{"total":2}`:                    {int64(0), int64(0), false},
		`{}`:                             {int64(0), int64(0), false},
		``:                               {int64(0), int64(0), false},
	} {
		used, limit, ok := Record{Budget: []byte(budget)}.Calls()
		if got := [3]any{used, limit, ok}; got != want {
			t.Errorf("%q: %v, want %v", budget, got, want)
		}
	}
}

// FuzzParseLine: any line is a record or is refused; a record can be written again, within the limits, and read as the
// same.
func FuzzParseLine(f *testing.F) {
	r := fullRecord()
	f.Add(bytes.TrimSpace(encode(&r, ArgumentsFull)))
	f.Add([]byte(`{"event":"tool_execution","time":"2026-11-20T10:00:00.000Z"}`))
	f.Add([]byte(`{"event":"x","time":"9999-12-31T23:59:59-01:00"}`))
	f.Add([]byte(`{"event":"x","time":"0000-01-01T00:00:00+01:00","clamped":{"a":{"requested":1e999,"applied":1}}}`))
	f.Add([]byte(`{"event":"x","time":"2026-11-20T10:00:00Z","args":{"a":[1,{"b":null}]},"budget":[]}`))
	f.Add([]byte(`{"time":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseLine(line)
		if err != nil {
			if !errors.Is(err, ErrForeign) {
				t.Errorf("%v is not ErrForeign", err)
			}
			return
		}
		for _, a := range []Arguments{ArgumentsNone, ArgumentsRedacted, ArgumentsFull} {
			once := encode(&r, a)
			if len(once) > MaxLine || bytes.Count(once, []byte{'\n'}) != 1 {
				t.Fatalf("a line of %d bytes: %.200q", len(once), once)
			}
			again, err := ParseLine(once)
			if err != nil {
				t.Fatalf("%s cannot be read back: %v", once, err)
			}
			if a == ArgumentsRedacted {
				continue // the kinds of kinds are another text
			}
			if twice := encode(&again, a); !bytes.Equal(once, twice) {
				t.Errorf("written twice it differs:\n%s%s", once, twice)
			}
		}
	})
}

package orchestrator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

// epoch is when every golden conversation begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestGoldenConversations replays the conversations of testdata. Each is prose
// that says what it pins, a script of inputs at their times in ms, and the actions
// that followed.
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, section(ar, "script"))
			if *update {
				setSection(ar, "want", got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(section(ar, "want"), got); diff != "" {
				t.Errorf("the conversation went another way (-want +got):\n%s", diff)
			}
		})
	}
}

func section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(ar *txtar.Archive, name, data string) {
	for i := range ar.Files {
		if ar.Files[i].Name == name {
			ar.Files[i].Data = []byte(data)
			return
		}
	}
	ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(data)})
}

// replay runs a script. Ticks that fall due between two lines are taken when they
// are due, as the session's clock would.
func replay(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	var s State
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		w := parseWords(t, line)
		if w.at < 0 {
			s = NewState(w.caps(), w.policy(), toolbox(), epoch)
			continue
		}
		at := epoch.Add(time.Duration(w.at) * time.Millisecond)
		for due := s.WakeAt(); !due.IsZero() && due.Before(at); due = s.WakeAt() {
			s = take(&out, s, due, Tick{}, "tick")
			if next := s.WakeAt(); !next.After(due) && !next.IsZero() {
				t.Fatalf("at %s a tick left itself due", due.Sub(epoch))
			}
		}
		s = take(&out, s, at, w.input(), line[strings.IndexByte(line, ' ')+1:])
	}
	return out.String()
}

func take(out *strings.Builder, s State, at time.Time, in Input, name string) State {
	next, actions := Step(s, at, in)
	if _, ok := in.(Tick); ok && len(actions) == 0 {
		return next
	}
	fmt.Fprintf(out, "%d %s\n", at.Sub(epoch).Milliseconds(), name)
	for _, a := range actions {
		fmt.Fprintf(out, "    %s\n", show(a))
	}
	return next
}

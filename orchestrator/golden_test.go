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

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

// epoch is the start of every golden conversation.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testMark is the mark of the gateway's own words in these conversations.
var testMark = prompts.MarkFor([]byte("golden conversations"), "tests")

// TestGoldenConversations replays the conversations of testdata. Each has a description, a script of inputs at their
// times in ms, and the resulting actions.
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
				t.Errorf("the conversation differs (-want +got):\n%s", diff)
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

// replay runs a script. Ticks that become due between two lines are taken at their time, as by the session's clock.
func replay(t *testing.T, script string) string {
	t.Helper()
	p := player{t: t, ran: map[string]*registry.Prepared{}, lengths: lengths(t, script)}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		w := parseWords(t, line)
		if w.at < 0 {
			p.state, p.views = NewState(w.caps(), NewRules(w.policy()), box(w), testMark, epoch), w.has("views")
			continue
		}
		at := epoch.Add(time.Duration(w.at) * time.Millisecond)
		p.ticksBefore(at)
		w.state = p.state
		p.take(at, p.sends(at, w.input()), line[strings.IndexByte(line, ' ')+1:])
	}
	return p.out.String()
}

// player does the session's part: it feeds the step and records the actions.
type player struct {
	t     *testing.T
	state State
	views bool                          // record each change of the view too
	ran   map[string]*registry.Prepared // by call
	out   strings.Builder

	lengths map[string]time.Duration // of the items that end
	clock   PlayClock
}

// lengths finds the lengths of a script's items.
func lengths(t *testing.T, script string) map[string]time.Duration {
	all := map[string]time.Duration{}
	for line := range strings.Lines(script) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if w := parseWords(t, line); w.verb == "audio.ended" {
			all[w.id("item")] = w.ms("ms")
		}
	}
	return all
}

// sends completes an AudioSent. Without a length it means the whole item, or ten seconds of an item that does not
// end.
func (p *player) sends(at time.Time, in Input) Input {
	sent, ok := in.(AudioSent)
	if !ok {
		return in
	}
	if sent.Sent == 0 {
		sent.Sent = 10 * time.Second
		if d, ends := p.lengths[sent.Item]; ends {
			sent.Sent = d
		}
	}
	more := sent.Sent
	if i := p.state.line.index(sent.Item); i >= 0 {
		more -= p.state.line.items[i].sent
	}
	sent.Until = p.clock.Add(at, more)
	return sent
}

func (p *player) ticksBefore(at time.Time) {
	p.t.Helper()
	for due := p.state.WakeAt(); !due.IsZero() && due.Before(at); due = p.state.WakeAt() {
		p.take(due, Tick{}, "tick")
		if next := p.state.WakeAt(); !next.After(due) && !next.IsZero() {
			p.t.Fatalf("at %s a tick left itself due", due.Sub(epoch))
		}
	}
}

func (p *player) take(at time.Time, in Input, name string) {
	if done, ok := bareInput(in).(calls.Finished); ok && p.ran[done.Call] != nil {
		// The executor reports lowered arguments in its answer.
		done.Envelope.Meta.Clamped = p.ran[done.Call].Clamp(nil)
		in = OfCall{done}
	}
	if back, ok := in.(ClientBack); ok {
		for _, a := range back.Again {
			p.clock.Hold(0, p.state.line.items[p.state.line.index(a.Item)].sent-a.Has)
		}
		p.clock.Hold(at.Sub(p.state.absence.since), 0)
	}
	before := p.state.View()
	next, actions := Step(p.state, at, in)
	p.state = next
	changed := p.views && next.View() != before
	if _, ok := in.(Tick); ok && len(actions) == 0 && !changed {
		return
	}
	fmt.Fprintf(&p.out, "%d %s\n", at.Sub(epoch).Milliseconds(), name)
	for _, a := range actions {
		fmt.Fprintf(&p.out, "    %s\n", show(a))
		if _, ok := a.(FlushItem); ok {
			p.clock.Cut(at)
		}
		if run, ok := bare(a).(calls.Run); ok {
			p.ran[run.Call] = run.Prepared
		}
	}
	if changed {
		fmt.Fprintf(&p.out, "    = %s\n", showView(next.View()))
	}
}

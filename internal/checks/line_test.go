package checks

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

// TestConversations plays the scripts of testdata on a line. Lines with > are its actions after each input. The inputs:
//
//	hold MS | patient                     the hold-back
//	word|pattern|remote|claims NAME [block] TEXT a check; "booked" is untrue before the event "call"
//	MS begin | event NAME                 at that time, an answer begins, or another event comes
//	MS words ITEM "TEXT" [final]
//	MS audio ITEM MS                      sound of that length
//	MS pass|refuse|fail N                 the verdict of the N-th request
//	MS interrupt | tick
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(data) {
				t.Errorf("got:\n%s\nwant:\n%s", got, data)
			}
		})
	}
}

type noRemote struct{}

func (noRemote) Check(context.Context, Text) (bool, error) { panic("a line makes no requests") }

type player struct {
	l    line[string]
	asks []*ask[string]
	made bool // the event "call" was released
	out  strings.Builder
}

func play(t *testing.T, script string) string {
	t.Helper()
	var p player
	hold, patient, begun := time.Duration(0), false, false
	var rules []*Rule
	for text := range strings.Lines(script) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "  >") {
			continue
		}
		fmt.Fprintln(&p.out, text)
		f := strings.Fields(text)
		switch {
		case len(f) == 0 || f[0] == "#":
		case f[0] == "hold":
			hold = ms(t, f[1])
		case f[0] == "patient":
			patient = true
		case len(f) > 1 && strings.Contains("word pattern remote claims", f[0]):
			rules = append(rules, ruleOf(t, f))
		default:
			if !begun {
				set, err := New(hold, nil, rules...)
				if err != nil {
					t.Fatal(err)
				}
				p.l, begun = newLine[string](set, patient), true
			}
			p.take(t, time.UnixMilli(0).Add(ms(t, f[0])), f[1:], text)
		}
	}
	return p.out.String()
}

func ruleOf(t *testing.T, f []string) *Rule {
	r, f0 := &Rule{Name: f[1], Outcome: Cut}, f[0]
	f = f[2:]
	if len(f) > 0 && f[0] == "block" {
		r.Block, f = true, f[1:]
	}
	text := strings.Join(f, " ")
	switch {
	case f0 == "claims":
		r.Claims = true
	case text == "":
		r.Remote = noRemote{}
	case strings.HasPrefix(text, "/"):
		r.Patterns = []*regexp.Regexp{regexp.MustCompile(strings.Trim(text, "/"))}
	default:
		r.Words = strings.Split(text, ",")
	}
	return r
}

func ms(t *testing.T, text string) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Millisecond
}

func (p *player) take(t *testing.T, at time.Time, f []string, text string) {
	t.Helper()
	l := &p.l
	switch f[0] {
	case "begin":
		l.other(at, true, "begin")
	case "event":
		l.other(at, false, f[1])
	case "words":
		quoted := text[strings.Index(text, `"`):]
		words, final := strings.CutSuffix(quoted, " final")
		words, err := strconv.Unquote(words)
		if err != nil {
			t.Fatal(err)
		}
		l.words(at, f[1], words, final, f[1])
	case "audio":
		l.audio(at, f[1], ms(t, f[2]), "sound of "+f[1])
	case "interrupt":
		l.interrupt(l.answer.n)
	case "tick":
	default:
		n, err := strconv.Atoi(f[1])
		if err != nil || n > len(p.asks) {
			t.Fatalf("%s: no such request", text)
		}
		l.verdict(p.asks[n-1], f[0] == "pass", f[0] == "fail")
	}
	l.pump(at)
	for p.show(); l.claim != nil; p.show() {
		a := l.claim
		l.claim = nil
		fmt.Fprintf(&p.out, "  > compare %q\n", a.text[a.from:])
		l.compared(a, !p.made && strings.Contains(a.text[a.from:], "booked"))
		l.pump(at)
	}
	for _, a := range l.asked {
		p.asks = append(p.asks, a)
		fmt.Fprintf(&p.out, "  > ask %s (%d) %q\n", a.rule.Name, len(p.asks), a.text[a.from:])
	}
	l.asked = nil
	if at := l.wakeAt(); !at.IsZero() {
		fmt.Fprintf(&p.out, "  > wakes at %d\n", at.UnixMilli())
	}
}

// show prints the released and the stopped values of the line.
func (p *player) show() {
	l := &p.l
	for _, r := range l.out {
		if s := r.stop; s != nil {
			fmt.Fprintf(&p.out, "  > STOP %s by %s: %s\n", s.Item, s.Rule.Name, s.Why)
		} else if r.Words {
			final := ""
			if r.Final {
				final = " final"
			}
			fmt.Fprintf(&p.out, "  > words %s %q%s\n", r.Value, r.Text, final)
		} else {
			p.made = p.made || r.Value == "call"
			fmt.Fprintf(&p.out, "  > %s\n", r.Value)
		}
	}
	l.out = nil
}

// TestDisguises: a check finds its words in letters of another script, with invisible characters, and in a long text.
func TestDisguises(t *testing.T) {
	words := ruleOf(t, []string{"word", "rude", "darn"})
	number := ruleOf(t, []string{"pattern", "card", `/\b\d{4}( ?\d{4}){3}\b/`})
	for _, r := range []*Rule{words, number} {
		if err := r.prepare(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		rule *Rule
		text string
		want bool
	}{
		{words, "A d\u0430rn one", true}, // Cyrillic a
		{words, "A da\u034frn one", true},
		{words, "A da\ufe0frn one", true},
		{words, "A \u24d3\u24d0\u24e1\u24dd one", true},
		{words, "A darned one", false},
		{number, "It is 12\u200b34 5678\u00a01234 \uff15\uff16\uff17\uff18.", true},
		{number, "It is 1234 5678 1234 5678. " + strings.Repeat("A long text. ", 1000), true},
		{number, "It is 1234 5678 1234 567.", false},
	} {
		if got, _ := tt.rule.match(tt.text, 0, true); got != tt.want {
			t.Errorf("%.40q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

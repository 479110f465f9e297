package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

func checking(t *testing.T, rules ...*checks.Rule) fixtureSetting {
	t.Helper()
	set, err := checks.New(time.Second, testutil.Logger(nil), rules...)
	if err != nil {
		t.Fatal(err)
	}
	return fixtureSetting{options: Options{Checks: set}}
}

func rude(outcome checks.Outcome, say string) *checks.Rule {
	return &checks.Rule{Name: "rude", Outcome: outcome, Say: say, Words: []string{"damn"}}
}

// streams answers in pieces, and waits to be stopped if the last piece is empty.
func streams(pieces ...string) step {
	return func(ctx context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
		for _, p := range pieces {
			if p == "" {
				<-ctx.Done()
				return textmodel.Reply{}, context.Cause(ctx)
			}
			delta(p)
		}
		return textmodel.Reply{Text: strings.Join(pieces, "")}, nil
	}
}

// TestTextIsChecked: the client never gets refused words, and always gets an answer or an error.
func TestTextIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		rule  *checks.Rule
		steps []step
		shown string // the deltas, with | between
		types string
		code  string
	}{
		"it passes": {rule: rude(checks.Cut, ""), steps: []step{streams("Hello ", "dam", "s. ", "Bye")},
			shown: "Hello |dams. |Bye", types: "text.done usage done"},
		"it is replaced": {rule: rude(checks.Replace, "Let us be polite."), steps: []step{streams("Hello ", "da", "mn you", "")},
			shown: "Hello |\n\nLet us be polite.", types: "answer.stopped text.done usage done"},
		"all of it is replaced": {rule: rude(checks.Replace, "Let us be polite."), steps: []step{streams("Damn you", "")},
			shown: "Let us be polite.", types: "answer.stopped text.done usage done"},
		"it is cut off": {rule: rude(checks.Cut, ""), steps: []step{streams("Hello ", "damn you", "")},
			shown: "Hello ", types: "answer.stopped text.done usage done"},
		"all of it is cut off": {rule: rude(checks.Cut, ""), steps: []step{streams("Damn you", ""), says("Sorry.")},
			shown: "Sorry.", types: "answer.stopped text.done usage done"},
		"the model insists": {rule: rude(checks.Cut, ""), steps: []step{says("Damn."), says("Damn.")},
			types: "answer.stopped answer.stopped error usage done", code: protocol.CodeContentFilter},
		"the end": {rule: rude(checks.End, "Goodbye."), steps: []step{streams("Hello ", "damn you", "")},
			shown: "Hello |\n\nGoodbye.", types: "answer.stopped text.done usage done"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, checking(t, tt.rule), func(t *testing.T, f *fixture) {
				sent, err := f.respond(t.Context(), Request{Message: "Hi"}, tt.steps...)
				if err != nil {
					t.Fatal(err)
				}
				var shown []string
				for _, d := range of[*protocol.TextDelta](sent) {
					shown = append(shown, d.Text)
				}
				if got := strings.Join(shown, "|"); got != tt.shown || sent.types() != tt.types {
					t.Errorf("shown %q, want %q; %s, want %s", got, tt.shown, sent.types(), tt.types)
				}
				for _, d := range of[*protocol.TextDone](sent) {
					if d.Text != strings.Join(shown, "") {
						t.Errorf("text.done has %q", d.Text)
					}
				}
				for _, e := range of[*protocol.Error](sent) {
					if e.Code != tt.code {
						t.Errorf("the client got the error %s", e.Code)
					}
				}
				stops := 0
				for _, r := range f.audited() {
					if r.Event == audit.EventStopped && r.Check == "rude" && r.Why == "matched" {
						stops++
					}
				}
				if stops != len(of[*protocol.AnswerStopped](sent)) {
					t.Errorf("%d stops were audited", stops)
				}
				f.say("And now?", says("Nothing."))
				for _, m := range f.last().Messages {
					if strings.Contains(strings.ToLower(m.Text), "damn") {
						t.Errorf("the model got %+v", m)
					}
				}
			})
		})
	}
}

// TestClaimIsNotShown: the client gets no claim without a matching call, and one record of it. The model learns the
// reason. After a matching call, the same words are shown.
func TestClaimIsNotShown(t *testing.T) {
	book := callsTools(nth(1), "book", `{"name":"a"}`)
	untrue := func(o checks.Outcome, say string) *checks.Rule {
		return &checks.Rule{Name: "untrue", Outcome: o, Say: say, Claims: true}
	}
	for name, tt := range map[string]struct {
		rule    *checks.Rule
		steps   []step
		shown   string
		types   string
		notices int // requests that have the notice
	}{
		"it is cut off": {rule: untrue(checks.Cut, ""), steps: []step{streams("I've ", "booked it. ", ""), book, says("Now I've booked it.")},
			shown: "Now I've booked it.", types: "answer.stopped tool.started tool.ended text.done usage done", notices: 2},
		"after other words": {rule: untrue(checks.Cut, ""), steps: []step{streams("Sure. ", "I've booked it. ", "")},
			shown: "Sure. ", types: "answer.stopped text.done usage done"},
		"it is replaced": {rule: untrue(checks.Replace, "It is not booked."), steps: []step{says("I've booked it.")},
			shown: "It is not booked.", types: "answer.stopped text.done usage done"},
		"the model insists": {rule: untrue(checks.Cut, ""), steps: []step{says("I've booked it."), says("I've booked it.")},
			types: "answer.stopped answer.stopped error usage done", notices: 1},
		"it was done": {rule: untrue(checks.Cut, ""), steps: []step{book, streams("I've ", "booked it.")},
			shown: "I've booked it.", types: "tool.started tool.ended text.done usage done"},
	} {
		t.Run(name, func(t *testing.T) {
			setting := checking(t, tt.rule)
			setting.options.Claims = claimSetting(t).options.Claims
			bubble(t, setting, func(t *testing.T, f *fixture) {
				sent, err := f.respond(t.Context(), Request{Message: "Book it"}, tt.steps...)
				if err != nil {
					t.Fatal(err)
				}
				var shown strings.Builder
				for _, d := range of[*protocol.TextDelta](sent) {
					shown.WriteString(d.Text)
				}
				if shown.String() != tt.shown || sent.types() != tt.types || f.claimed(sent) != "" {
					t.Errorf("shown %q, want %q; %s, want %s", shown.String(), tt.shown, sent.types(), tt.types)
				}
				n := 0
				for _, p := range f.model.prompts {
					for _, m := range p.Messages {
						if m.Role == textmodel.RoleUser && strings.Contains(m.Text, `You said "I've booked it", but no tool`) {
							n++
						}
					}
				}
				if n != tt.notices {
					t.Errorf("%d requests have the notice, want %d", n, tt.notices)
				}
			})
		})
	}
}

type remote func(ctx context.Context, t checks.Text) (bool, error)

func (r remote) Check(ctx context.Context, t checks.Text) (bool, error) { return r(ctx, t) }

// TestSlowCheckOfText: text waits for its verdict, for at most two requests in a row: two run at once, and the rest
// is joined.
func TestSlowCheckOfText(t *testing.T) {
	for name, tt := range map[string]struct {
		check remote
		block bool
		shown string
		after time.Duration
	}{
		"slow": {check: func(ctx context.Context, text checks.Text) (bool, error) {
			select {
			case <-time.After(time.Second * time.Duration(1+strings.Count(text.Text, "Two"))):
			case <-ctx.Done():
			}
			return text.Text != "One. Two. " || text.New != "Two. ", nil
		}, shown: "One. ", after: 2 * time.Second},
		"hanging, passes": {check: func(ctx context.Context, _ checks.Text) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}, shown: "One. Two. Three.", after: 20 * time.Second},
		"failing, blocks": {check: func(context.Context, checks.Text) (bool, error) { return false, errors.New("no") }, block: true},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &checks.Rule{Name: "judge", Outcome: checks.Replace, Say: "No.", Remote: tt.check, Block: tt.block, Timeout: 10 * time.Second}
			bubble(t, checking(t, rule), func(t *testing.T, f *fixture) {
				began := time.Now()
				sent, err := f.respond(t.Context(), Request{Message: "Hi"}, streams("One. ", "Two. ", "Three."))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				want := tt.shown
				if !strings.HasSuffix(want, "Three.") {
					want = strings.TrimPrefix(want+"\n\nNo.", "\n\n")
				}
				if done := of[*protocol.TextDone](sent); len(done) != 1 || done[0].Text != want {
					t.Errorf("the client got %+v, want %q", done, want)
				}
				if took := time.Since(began); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
			})
		})
	}
}

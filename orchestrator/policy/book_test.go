package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
)

// TestDecideInOrder: one Book, one call after another of one turn of voice.
func TestDecideInOrder(t *testing.T) {
	b := voiceBook()
	for i, c := range []struct {
		tool, args string
		verdict    Verdict
		err        registry.ErrorType
		account    Account
	}{
		{"rocket", `{}`, Answered, registry.ErrorNotFound, Account{0, 1, 0}},
		{"text_only", `{}`, Answered, registry.ErrorModeRestricted, Account{0, 2, 0}},
		{"search", `{"top_k":"x"}`, Answered, registry.ErrorValidation, Account{1, 3, 0}},
		{"search", `{"top_k":"x"}`, Answered, registry.ErrorBudgetExceeded, Account{2, 4, 0}}, // not VALIDATION: it is to speak
		{"text_only", `{}`, Answered, registry.ErrorModeRestricted, Account{2, 5, 0}},
		{"time", `{}`, Answered, registry.ErrorBudgetExceeded, Account{2, 6, 0}},
	} {
		d := b.Decide(call(fmt.Sprint(i), "", c.tool, c.args))
		if d.Verdict != c.verdict || d.Envelope.Error == nil || d.Envelope.Error.Type != c.err || b.account != c.account {
			t.Errorf("%d, %s %s: verdict %d, error %+v, account %+v", i, c.tool, c.args, d.Verdict, d.Envelope.Error, b.account)
		}
		over := c.err == registry.ErrorBudgetExceeded
		if d.OverBudget != over || (d.Envelope.Meta.Budget != nil) != over || over && d.Envelope.Error.Suggestion == "" {
			t.Errorf("%d, %s: over budget %t, told %s", i, c.tool, d.OverBudget, d.Envelope.Meta.Budget)
		}
		if string(d.Budget) != string(c.account.Encode(b.Budget())) || d.Envelope.Meta.DurationMS != 0 {
			t.Errorf("%d, %s: the decision says %s, took %d ms", i, c.tool, d.Budget, d.Envelope.Meta.DurationMS)
		}
	}
	b.BeginTurn()
	if d := b.Decide(call("next", "", "search", `{}`)); d.Verdict != Run || string(d.Prepared.Args()) != `{"top_k":3}` {
		t.Errorf("in the next turn: %+v", d)
	}
}

func TestClampOfAMode(t *testing.T) {
	for _, c := range []struct {
		mode registry.Mode
		args string
		want string
	}{
		{registry.ModeVoice, `{}`, `{"top_k":3}`},
		{registry.ModeVoice, `{"top_k":10}`, `{"top_k":3}`},
		{registry.ModeVoice, `{"top_k":2}`, `{"top_k":2}`},
		{registry.ModeText, `{}`, `{"top_k":5}`},
		{registry.ModeText, `{"top_k":20}`, `{"top_k":10}`},
	} {
		b := NewBook(toolbox(), Rules{Mode: c.mode})
		d := b.Decide(call("1", "", "search", c.args))
		if d.Verdict != Run || string(d.Prepared.Args()) != c.want {
			t.Errorf("%s %s runs with %s, want %s", c.mode, c.args, d.Prepared.Args(), c.want)
		}
	}
}

// TestDuplicates: what a second call is beside a first one that runs, and after it.
func TestDuplicates(t *testing.T) {
	const a, b, short = "call_aaaaaaaaaa", "call_bbbbbbbbbb", "id1"
	for _, c := range []struct {
		name          string
		first, second Call
		beside, after Verdict
		failed        Verdict // after a first one that has failed
	}{
		{"same id", call("1", a, "get", `{"id":"x"}`), call("2", a, "get", ` {"id": "x"}`), Repeated, Answered, Run},
		{"same id, other arguments", call("1", a, "get", `{"id":"x"}`), call("2", a, "get", `{"id":"y"}`), Run, Run, Run},
		{"same id, other tool", call("1", a, "time", `{}`), call("2", a, "get", `{}`), Run, Run, Run},
		{"other id", call("1", a, "get", `{"id":"x"}`), call("2", b, "get", `{"id":"x"}`), Joined, Run, Run},
		{"no ids", call("1", "", "get", `{"id":"x"}`), call("2", "", "get", `{"id":"x"}`), Joined, Answered, Run},
		{"short id again", call("1", short, "get", `{"id":"x"}`), call("2", short, "get", `{"id":"x"}`), Joined, Answered, Run},
		{"short id, other arguments", call("1", short, "get", `{"id":"x"}`), call("2", short, "get", `{"id":"y"}`), Run, Run, Run},
		{"equal after defaults", call("1", a, "search", `{}`), call("2", b, "search", `{"top_k":9}`), Joined, Run, Run},
		{"business key", call("1", a, "book", `{"who":"A"}`), call("2", b, "book", `{"who":"A","note":"n"}`), Joined, Answered, Run},
		{"other business key", call("1", a, "book", `{"who":"A"}`), call("2", b, "book", `{"who":"B"}`), Run, Run, Run},
		{"a question", call("1", a, "pay", `{"amount":1}`), call("2", b, "pay", `{"amount":1}`), Joined, Ask, Ask},
	} {
		for state, want := range map[string]Verdict{"beside": c.beside, "after": c.after, "failed": c.failed} {
			book := voiceBook()
			first := book.Decide(c.first)
			switch state {
			case "after":
				book.Finished("1", good(`{"n":1}`), 0)
			case "failed":
				book.Finished("1", bad(), 0)
			}
			if state == "after" && first.Verdict == Ask {
				continue // its answer is never good
			}
			used := book.account
			d := book.Decide(c.second)
			if d.Verdict != want {
				t.Errorf("%s, %s: verdict %d, want %d", c.name, state, d.Verdict, want)
			}
			if d.Verdict != Run && d.Verdict != Ask && book.account != used {
				t.Errorf("%s, %s: a duplicate has cost %+v", c.name, state, book.account)
			}
			if d.Verdict == Answered && (!d.Envelope.Meta.CacheHit || d.Envelope.Meta.OriginalTurn != 1 || string(d.Envelope.Data) != `{"n":1}`) {
				t.Errorf("%s, %s: the stored answer is %+v", c.name, state, d.Envelope)
			}
			if (d.Verdict == Joined || d.Verdict == Repeated) && d.Into != "1" {
				t.Errorf("%s, %s: it goes into %q", c.name, state, d.Into)
			}
		}
	}
}

// TestAcrossTurns: of what runs, only a deed that writes is joined from another turn; a
// trusted id and a business key stand for longer.
func TestAcrossTurns(t *testing.T) {
	const a, b = "call_aaaaaaaaaa", "call_bbbbbbbbbb"
	for _, c := range []struct {
		name, tool, args, second string
		beside, after            Verdict
	}{
		{"a read, no id", "get", `{"id":"x"}`, "", Run, Run},
		{"a read, another id", "get", `{"id":"x"}`, b, Run, Run},
		{"a read, the same id", "get", `{"id":"x"}`, a, Repeated, Answered},
		{"a write, another id", "write", `{"text":"x"}`, b, Joined, Run},
		{"a deed with a key", "book", `{"who":"A"}`, b, Joined, Answered},
	} {
		for state, want := range map[string]Verdict{"beside": c.beside, "after": c.after} {
			book := voiceBook()
			book.Decide(call("1", a, c.tool, c.args))
			if state == "after" {
				book.Finished("1", good(`{}`), 0)
			}
			book.BeginTurn()
			second := call("2", c.second, c.tool, c.args)
			second.Turn = 2
			if d := book.Decide(second); d.Verdict != want {
				t.Errorf("%s, %s: verdict %d, want %d", c.name, state, d.Verdict, want)
			}
		}
	}
}

// TestJoinedIdIsKept: an id that has joined a running call is answered from the store
// like that of the call itself, and is one announcement with its own repeat.
func TestJoinedIdIsKept(t *testing.T) {
	b := voiceBook()
	b.Decide(call("1", "call_aaaaaaaaaa", "write", `{"text":"x"}`))
	b.Decide(call("2", "call_bbbbbbbbbb", "write", `{"text":"x"}`))
	if d := b.Decide(call("3", "call_bbbbbbbbbb", "write", `{"text":"x"}`)); d.Verdict != Repeated || d.Into != "1" || d.First != "2" {
		t.Errorf("announced again while it waits: %+v", d)
	}
	answers := b.Finished("1", good(`{"n":1}`), 0)
	if len(answers) != 2 || answers[0].Call != "1" || answers[0].Joined || answers[1].Call != "2" || !answers[1].Joined || !answers[1].Envelope.Meta.CacheHit {
		t.Errorf("the answers are %+v", answers)
	}
	if d := b.Decide(call("4", "call_bbbbbbbbbb", "write", `{"text":"x"}`)); d.Verdict != Answered || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("after its end: %+v", d)
	}
}

// TestIdOfTwoCalls: an id that came with other arguments is a call of its own, and its
// repeat is recognised all the same.
func TestIdOfTwoCalls(t *testing.T) {
	b := voiceBook()
	b.Decide(call("1", "call_aaaaaaaaaa", "write", `{"text":"x"}`))
	b.Finished("1", good(`{"n":1}`), 0)
	b.Decide(call("2", "call_aaaaaaaaaa", "write", `{"text":"y"}`))
	b.Finished("2", good(`{"n":2}`), 0)
	if d := b.Decide(call("3", "call_aaaaaaaaaa", "write", `{"text":"y"}`)); d.Verdict != Answered || string(d.Envelope.Data) != `{"n":2}` {
		t.Errorf("the repeat of the second: %+v", d)
	}
	if d := b.Decide(call("4", "call_aaaaaaaaaa", "write", `{"text":"x"}`)); d.Verdict != Answered || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("the repeat of the first: %+v", d)
	}
}

// TestOriginalTurn: an answer names the turn it was made in, however often it is given,
// and never an account of another moment.
func TestOriginalTurn(t *testing.T) {
	b := NewBook(toolbox(), Rules{Mode: registry.ModeVoice, Budget: Budget{Total: 1}})
	b.Decide(call("1", "call_aaaaaaaaaa", "time", `{}`))
	if a := b.Finished("1", good(`{}`), time.Hour); a[0].Envelope.Meta.Budget == nil || a[0].Envelope.Meta.CacheHit {
		t.Errorf("the first answer is %+v", a[0].Envelope.Meta)
	}
	for turn := 2; turn < 5; turn++ {
		b.BeginTurn()
		c := call(fmt.Sprint(turn), "call_aaaaaaaaaa", "time", `{}`)
		c.Turn = turn
		d := b.Decide(c)
		if m := d.Envelope.Meta; !m.CacheHit || m.OriginalTurn != 1 || m.Budget != nil {
			t.Errorf("in turn %d: %+v", turn, m)
		}
	}
	if again(again(good(`{}`), 3), 4).Meta.OriginalTurn != 3 {
		t.Error("given twice, the answer names the second turn")
	}
}

// TestStoredElsewhere: an answer that was stored by somebody else is not this Book's.
func TestStoredElsewhere(t *testing.T) {
	b := voiceBook()
	b.Decide(call("1", "call_aaaaaaaaaa", "time", `{}`))
	env := good(`{}`)
	env.Meta.CacheHit = true
	b.Finished("1", env, 0)
	if len(b.stored) != 0 {
		t.Errorf("it keeps %+v", b.stored)
	}
	if b.Finished("1", env, 0) != nil || b.Finished("never", env, 0) != nil || b.Asked("never", "tok", env) != nil {
		t.Error("an unknown call has answers")
	}
}

func TestHundredAnswers(t *testing.T) {
	b := voiceBook()
	id := func(i int) string { return fmt.Sprintf("call_%010d", i) }
	for i := range maxAnswers + 1 {
		b.BeginTurn()
		b.Decide(call(id(i), id(i), "time", `{}`))
		b.Finished(id(i), good(`{}`), 0)
	}
	if len(b.stored) != maxAnswers {
		t.Fatalf("it keeps %d answers", len(b.stored))
	}
	b.BeginTurn()
	for i, want := range map[int]Verdict{0: Run, 1: Answered, maxAnswers: Answered} {
		if d := b.Decide(call(fmt.Sprint("again", i), id(i), "time", `{}`)); d.Verdict != want {
			t.Errorf("call %d again: verdict %d, want %d", i, d.Verdict, want)
		}
	}
}

func TestAnswersAreBoundedInBytes(t *testing.T) {
	b := voiceBook()
	keep := func(id string, size int) {
		b.BeginTurn()
		b.Decide(call(id, "", "get", `{"id":"`+id+`"}`))
		b.Finished(id, good(`"`+strings.Repeat("x", size-2)+`"`), 0)
	}
	kept := func() (ids []string) {
		for _, s := range b.stored {
			ids = append(ids, s.asked)
		}
		return ids
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		keep(id, maxAnswerBytes/4)
	}
	if len(b.stored) != 4 {
		t.Fatalf("within the bound it keeps %v", kept())
	}
	keep("e", 10)
	if diff := cmp.Diff([]string{`{"id":"b"}`, `{"id":"c"}`, `{"id":"d"}`, `{"id":"e"}`}, kept()); diff != "" {
		t.Error(diff)
	}
	keep("huge", 2*maxAnswerBytes) // one alone is always kept
	if diff := cmp.Diff([]string{`{"id":"huge"}`}, kept()); diff != "" {
		t.Error(diff)
	}
}

// TestQuestions: one that waits is not asked again, until it is resolved.
func TestQuestions(t *testing.T) {
	b := NewBook(toolbox(), Rules{Mode: registry.ModeVoice, Budget: Budget{Total: 9}, Confirm: []string{"write"}})
	if d := b.Decide(call("w", "", "write", `{}`)); d.Verdict != Ask {
		t.Errorf("a tool that is confirmed by configuration: %+v", d)
	}
	d := b.Decide(call("1", "", "pay", `{"amount":1}`))
	required := b.Refuse("pay", &registry.Error{Type: registry.ErrorConfirmationRequired})
	if a := b.Asked("1", "tok", required); len(a) != 1 || a[0].Envelope.Error.Type != registry.ErrorConfirmationRequired {
		t.Errorf("the answers are %+v", a)
	}
	if again := b.Decide(call("2", "", "pay", `{"amount":1}`)); again.Verdict != Answered || !again.Envelope.Meta.CacheHit {
		t.Errorf("asked again: %+v", again)
	}
	if other := b.Decide(call("3", "", "pay", `{"amount":2}`)); other.Verdict != Ask {
		t.Errorf("another amount: %+v", other)
	}
	b.Resolved("tok")
	run := b.Confirmed(call("4", "", "pay", `{"amount":1}`), "ref", d.Prepared)
	if run.Verdict != Run || run.Keys.Idempotency != "confirmation:ref" || run.Prepared != d.Prepared {
		t.Errorf("approved: %+v", run)
	}
	if beside := b.Decide(call("5", "", "pay", `{"amount":1}`)); beside.Verdict != Joined || beside.Into != "4" {
		t.Errorf("beside what was approved: %+v", beside)
	}
	b.Finished("4", good(`{}`), 0)
	if after := b.Decide(call("6", "call_aaaaaaaaaa", "pay", `{"amount":1}`)); after.Verdict != Ask {
		t.Errorf("after it: %+v", after)
	}
}

// TestApprovedTwice: two questions about one deed with a key do it once.
func TestApprovedTwice(t *testing.T) {
	b := NewBook(toolbox(), Rules{Mode: registry.ModeVoice, Confirm: []string{"book"}})
	one := b.Decide(call("1", "", "book", `{"who":"A"}`)).Prepared
	b.Asked("1", "tok1", b.Refuse("book", &registry.Error{Type: registry.ErrorConfirmationRequired}))
	two := b.Decide(call("2", "", "book", `{"who":"A","note":"n"}`)).Prepared
	if one == nil || two == nil {
		t.Fatal("both are to be asked about: they differ in what is shown")
	}
	b.Confirmed(call("3", "", "book", ``), "ref1", one)
	if d := b.Confirmed(call("4", "", "book", ``), "ref2", two); d.Verdict != Joined {
		t.Errorf("the second beside the first: %+v", d)
	}
	b.Finished("3", good(`{"n":1}`), 0)
	if d := b.Confirmed(call("5", "", "book", ``), "ref3", two); d.Verdict != Answered || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("the second after the first: %+v", d)
	}
}

func TestNoTools(t *testing.T) {
	b := NewBook(nil, Rules{Mode: registry.ModeVoice})
	if d := b.Decide(call("1", "", "time", `{}`)); d.Verdict != Answered || d.Envelope.Error.Type != registry.ErrorNotFound {
		t.Errorf("without tools: %+v", d)
	}
	e := &registry.Error{Type: registry.ErrorRateLimit}
	if env := b.Refuse("time", e); env.Error != e || env.Meta.Tool != "time" {
		t.Errorf("refused: %+v", env)
	}
	if got := string(b.Charge("time")); got != string(Account{Total: 2}.Encode(b.Budget())) || b.Tools() != nil {
		t.Errorf("charged: %s", got)
	}
}

// TestBookIsAValue: a copy stays as it was, whatever becomes of the other.
func TestBookIsAValue(t *testing.T) {
	b := NewBook(toolbox(), Rules{Mode: registry.ModeVoice, Budget: Budget{Total: 50, Retrieval: 50}})
	for i := range 6 {
		id := fmt.Sprint("r", i)
		b.Decide(call(id, "", "get", `{"id":"`+id+`"}`))
		b.Decide(call(id+"j", "", "get", `{"id":"`+id+`"}`))
	}
	b.Decide(call("p", "", "pay", `{}`))
	b.Asked("p", "tok", bad())
	b.Finished("r0", good(`{}`), 0)

	changes := map[string]func(*Book){
		"join":     func(b *Book) { b.Decide(call("x", "", "get", `{"id":"r1"}`)) },
		"run":      func(b *Book) { b.Decide(call("x", "", "get", `{"id":"new"}`)) },
		"refuse":   func(b *Book) { b.Decide(call("x", "", "rocket", ``)) },
		"finish":   func(b *Book) { b.Finished("r2", good(`{}`), time.Second) },
		"fail":     func(b *Book) { b.Finished("r3", bad(), 0) },
		"ask":      func(b *Book) { b.Decide(call("x", "", "pay", `{"amount":2}`)); b.Asked("x", "tok2", bad()) },
		"resolve":  func(b *Book) { b.Resolved("tok") },
		"new turn": func(b *Book) { b.BeginTurn() },
		"approve":  func(b *Book) { b.Approved("pay", "tok") },
		"forget":   func(b *Book) { b.Forget("tok") },
	}
	for name, change := range changes {
		before := show(b)
		one, two := b, b
		change(&one)
		changed := show(one)
		for _, other := range changes {
			other(&two)
		}
		if show(b) != before || show(one) != changed {
			t.Errorf("%s: a copy has changed with the other", name)
		}
		if changed == before {
			t.Errorf("%s has changed nothing", name)
		}
	}
}

// show writes all that a Book holds, envelopes by their data.
func show(b Book) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%+v %+v %+v", b.account, b.running, b.unapproved)
	for _, s := range b.stored {
		fmt.Fprintf(&out, " stored %+v %s %s %s %d", s.keys, s.tool, s.asked, s.envelope.Data, s.turn)
	}
	for _, a := range b.asked {
		fmt.Fprintf(&out, " asked %s %s %s %d", a.token, a.tool, a.args, a.turn)
	}
	return out.String()
}

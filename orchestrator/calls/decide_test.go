package calls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestDecideInOrder: several calls in one turn of voice.
func TestDecideInOrder(t *testing.T) {
	b := voiceDesk()
	for i, c := range []struct {
		tool, args string
		verdict    verdict
		err        registry.ErrorType
		account    Account
	}{
		{"rocket", `{}`, answeredNow, registry.ErrorNotFound, Account{Retrieval: 0, Total: 1}},
		{"text_only", `{}`, answeredNow, registry.ErrorModeRestricted, Account{Retrieval: 0, Total: 2}},
		{"search", `{"top_k":"x"}`, answeredNow, registry.ErrorValidation, Account{Retrieval: 1, Total: 3}},
		{"search", `{"top_k":"x"}`, answeredNow, registry.ErrorBudgetExceeded, Account{Retrieval: 2, Total: 4}}, // not VALIDATION: the model is to speak
		{"text_only", `{}`, answeredNow, registry.ErrorModeRestricted, Account{Retrieval: 2, Total: 5}},
		{"time", `{}`, answeredNow, registry.ErrorBudgetExceeded, Account{Retrieval: 2, Total: 6}},
	} {
		d := b.Decide(calling(fmt.Sprint(i), "", c.tool, c.args))
		if d.Verdict != c.verdict || d.Envelope.Error == nil || d.Envelope.Error.Type != c.err || b.book.Account() != c.account {
			t.Errorf("%d, %s %s: verdict %s, error %+v, account %+v", i, c.tool, c.args, d.Verdict, d.Envelope.Error, b.book.Account())
		}
		over := c.err == registry.ErrorBudgetExceeded
		if d.OverBudget != over || (d.Envelope.Meta.Budget != nil) != over || over && d.Envelope.Error.Suggestion == "" {
			t.Errorf("%d, %s: over budget %t, budget %s", i, c.tool, d.OverBudget, d.Envelope.Meta.Budget)
		}
		if string(d.Budget) != string(c.account.Encode(b.book.Budget())) || d.Envelope.Meta.DurationMS != 0 {
			t.Errorf("%d, %s: the decision says %s, took %d ms", i, c.tool, d.Budget, d.Envelope.Meta.DurationMS)
		}
	}
	b.book.BeginTurn()
	if d := b.Decide(calling("next", "", "search", `{}`)); d.Verdict != runs || string(d.Prepared.Args()) != `{"top_k":3}` {
		t.Errorf("in the next turn: %+v", d)
	}
}

func TestClampOfAMode(t *testing.T) {
	for _, c := range []struct {
		mode spec.Mode
		args string
		want string
	}{
		{spec.ModeVoice, `{}`, `{"top_k":3}`},
		{spec.ModeVoice, `{"top_k":10}`, `{"top_k":3}`},
		{spec.ModeVoice, `{"top_k":2}`, `{"top_k":2}`},
		{spec.ModeText, `{}`, `{"top_k":5}`},
		{spec.ModeText, `{"top_k":20}`, `{"top_k":10}`},
	} {
		b := newDesk(toolbox(), Policy{Mode: c.mode})
		d := b.Decide(calling("1", "", "search", c.args))
		if d.Verdict != runs || string(d.Prepared.Args()) != c.want {
			t.Errorf("%s %s runs with %s, want %s", c.mode, c.args, d.Prepared.Args(), c.want)
		}
	}
}

// TestDuplicates: the decision about a second call during a first one, and after it.
func TestDuplicates(t *testing.T) {
	const a, b, short = "call_aaaaaaaaaa", "call_bbbbbbbbbb", "id1"
	for _, c := range []struct {
		name          string
		first, second testCall
		during, after verdict
		failed        verdict // after a first one that has failed
	}{
		{"same id", calling("1", a, "get", `{"id":"x"}`), calling("2", a, "get", ` {"id": "x"}`), again, answeredNow, runs},
		{"same id, other arguments", calling("1", a, "get", `{"id":"x"}`), calling("2", a, "get", `{"id":"y"}`), runs, runs, runs},
		{"same id, other tool", calling("1", a, "time", `{}`), calling("2", a, "get", `{}`), runs, runs, runs},
		{"other id", calling("1", a, "get", `{"id":"x"}`), calling("2", b, "get", `{"id":"x"}`), joins, runs, runs},
		{"no ids", calling("1", "", "get", `{"id":"x"}`), calling("2", "", "get", `{"id":"x"}`), joins, answeredNow, runs},
		{"short id again", calling("1", short, "get", `{"id":"x"}`), calling("2", short, "get", `{"id":"x"}`), joins, answeredNow, runs},
		{"short id, other arguments", calling("1", short, "get", `{"id":"x"}`), calling("2", short, "get", `{"id":"y"}`), runs, runs, runs},
		{"equal after defaults", calling("1", a, "search", `{}`), calling("2", b, "search", `{"top_k":9}`), joins, runs, runs},
		{"business key", calling("1", a, "book", `{"who":"A"}`), calling("2", b, "book", `{"who":"A","note":"n"}`), joins, answeredNow, runs},
		{"other business key", calling("1", a, "book", `{"who":"A"}`), calling("2", b, "book", `{"who":"B"}`), runs, runs, runs},
		{"a question", calling("1", a, "pay", `{"amount":1}`), calling("2", b, "pay", `{"amount":1}`), joins, asks, asks},
	} {
		for state, want := range map[string]verdict{"during": c.during, "after": c.after, "failed": c.failed} {
			book := voiceDesk()
			first := book.Decide(c.first)
			switch state {
			case "after":
				book.ended("1", good(`{"n":1}`), 0)
			case "failed":
				book.ended("1", bad(), 0)
			}
			if state == "after" && first.Verdict == asks {
				continue // its answer is never good
			}
			used := book.book.Account()
			d := book.Decide(c.second)
			if d.Verdict != want {
				t.Errorf("%s, %s: verdict %s, want %s", c.name, state, d.Verdict, want)
			}
			if d.Verdict != runs && d.Verdict != asks && book.book.Account() != used {
				t.Errorf("%s, %s: a duplicate has cost %+v", c.name, state, book.book.Account())
			}
			if d.Verdict == answeredNow && (!d.Envelope.Meta.CacheHit || d.Envelope.Meta.OriginalTurn != 1 || string(d.Envelope.Data) != `{"n":1}`) {
				t.Errorf("%s, %s: the stored answer is %+v", c.name, state, d.Envelope)
			}
			if (d.Verdict == joins || d.Verdict == again) && d.Into != "1" {
				t.Errorf("%s, %s: it goes into %q", c.name, state, d.Into)
			}
		}
	}
}

// TestRepeatedJob: the stored answer of a call that began a job is not repeated, because the job may have ended. The
// call runs with that answer, without a question and without a charge.
func TestRepeatedJob(t *testing.T) {
	const id = "call_aaaaaaaaaa"
	for _, c := range []struct {
		name          string
		first, second testCall
	}{
		{"the same id", calling("1", id, "get", `{"id":"x"}`), calling("2", id, "get", `{"id":"x"}`)},
		{"no ids", calling("1", "", "get", `{"id":"x"}`), calling("2", "", "get", `{"id":"x"}`)},
		{"a business key", calling("1", id, "book", `{"who":"A"}`), calling("2", "call_bbbbbbbbbb", "book", `{"who":"A"}`)},
		{"the same id, with an approval", calling("1", id, "pay", `{"amount":1}`), calling("2", id, "pay", `{"amount":1}`)},
	} {
		book := voiceDesk()
		began := good(`{"job":"job-1","state":"started"}`)
		began.Meta.Job = "job-1"
		if d := book.Decide(c.first); d.Verdict == asks {
			book.book.Keep(Stored{Keys: d.Keys, Tool: c.first.Tool, Asked: string(c.first.Args), Envelope: began, Turn: 1})
			book.remove(book.names["1"])
		} else {
			book.ended("1", began, 0)
		}
		used := book.book.Account()
		d := book.Decide(c.second)
		if d.Verdict != runs || book.book.Account() != used {
			t.Errorf("%s: verdict %s, the account is %+v and was %+v", c.name, d.Verdict, book.book.Account(), used)
		}
		if again := book.find(book.names["2"]).run().Repeats; again == nil || again.Meta.Job != "job-1" || !again.Meta.CacheHit {
			t.Errorf("%s: it runs with %+v", c.name, again)
		}
	}
}

// TestAcrossTurns: in another turn, a call joins only a running one that writes; a trusted id and a business key are
// valid longer.
func TestAcrossTurns(t *testing.T) {
	const a, b = "call_aaaaaaaaaa", "call_bbbbbbbbbb"
	for _, c := range []struct {
		name, tool, args, second string
		during, after            verdict
	}{
		{"a read, no id", "get", `{"id":"x"}`, "", runs, runs},
		{"a read, another id", "get", `{"id":"x"}`, b, runs, runs},
		{"a read, the same id", "get", `{"id":"x"}`, a, again, answeredNow},
		{"a write, another id", "write", `{"text":"x"}`, b, joins, runs},
		{"a write with a key", "book", `{"who":"A"}`, b, joins, answeredNow},
	} {
		for state, want := range map[string]verdict{"during": c.during, "after": c.after} {
			book := voiceDesk()
			book.Decide(calling("1", a, c.tool, c.args))
			if state == "after" {
				book.ended("1", good(`{}`), 0)
			}
			book.book.BeginTurn()
			second := calling("2", c.second, c.tool, c.args)
			second.Turn = 2
			if d := book.Decide(second); d.Verdict != want {
				t.Errorf("%s, %s: verdict %s, want %s", c.name, state, d.Verdict, want)
			}
		}
	}
}

// TestJoinedIdIsKept: a joined id is answered from the store like the call's own, and its repeat gets no answer of
// its own.
func TestJoinedIdIsKept(t *testing.T) {
	b := voiceDesk()
	b.Decide(calling("1", "call_aaaaaaaaaa", "write", `{"text":"x"}`))
	b.Decide(calling("2", "call_bbbbbbbbbb", "write", `{"text":"x"}`))
	if d := b.Decide(calling("3", "call_bbbbbbbbbb", "write", `{"text":"x"}`)); d.Verdict != again || d.Into != "1" || d.Wanted {
		t.Errorf("announced again while it waits: %+v", d)
	}
	answers := b.ended("1", good(`{"n":1}`), 0)
	if len(answers) != 3 || answers[2].reader != repeated || answers[0].Call != "c1" || !answers[0].Ran || answers[1].Call != "c2" || answers[1].Ran || !answers[1].Envelope.Meta.CacheHit {
		t.Errorf("the answers are %+v", answers)
	}
	if d := b.Decide(calling("4", "call_bbbbbbbbbb", "write", `{"text":"x"}`)); d.Verdict != answeredNow || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("after its end: %+v", d)
	}
}

// TestIdOfTwoCalls: an id that is reused with other arguments is a different call, and its repeat is recognised.
func TestIdOfTwoCalls(t *testing.T) {
	b := voiceDesk()
	b.Decide(calling("1", "call_aaaaaaaaaa", "write", `{"text":"x"}`))
	b.ended("1", good(`{"n":1}`), 0)
	b.Decide(calling("2", "call_aaaaaaaaaa", "write", `{"text":"y"}`))
	b.ended("2", good(`{"n":2}`), 0)
	if d := b.Decide(calling("3", "call_aaaaaaaaaa", "write", `{"text":"y"}`)); d.Verdict != answeredNow || string(d.Envelope.Data) != `{"n":2}` {
		t.Errorf("the repeat of the second: %+v", d)
	}
	if d := b.Decide(calling("4", "call_aaaaaaaaaa", "write", `{"text":"x"}`)); d.Verdict != answeredNow || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("the repeat of the first: %+v", d)
	}
}

// TestOriginalTurn: a repeated answer names its original turn, and never an old budget.
func TestOriginalTurn(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 1}})
	b.Decide(calling("1", "call_aaaaaaaaaa", "time", `{}`))
	if a := b.ended("1", good(`{}`), time.Hour); a[0].Envelope.Meta.Budget == nil || a[0].Envelope.Meta.CacheHit {
		t.Errorf("the first answer is %+v", a[0].Envelope.Meta)
	}
	for turn := 2; turn < 5; turn++ {
		b.book.BeginTurn()
		c := calling(fmt.Sprint(turn), "call_aaaaaaaaaa", "time", `{}`)
		c.Turn = turn
		d := b.Decide(c)
		if m := d.Envelope.Meta; !m.CacheHit || m.OriginalTurn != 1 || m.Budget != nil {
			t.Errorf("in turn %d: %+v", turn, m)
		}
	}
	if Again(Again(good(`{}`), 3), 4).Meta.OriginalTurn != 3 {
		t.Error("given twice, the answer names the second turn")
	}
}

// TestStoredElsewhere: an answer that was stored elsewhere is not stored here.
func TestStoredElsewhere(t *testing.T) {
	b := voiceDesk()
	b.Decide(calling("1", "call_aaaaaaaaaa", "time", `{}`))
	env := good(`{}`)
	env.Meta.CacheHit = true
	b.ended("1", env, 0)
	if d := b.Decide(calling("2", "call_aaaaaaaaaa", "time", `{}`)); d.Verdict != runs {
		t.Errorf("it stores %+v", d.Envelope)
	}
	if b.ended("1", env, 0) != nil || b.ended("never", env, 0) != nil || b.asked("never", "tok") != nil {
		t.Error("an unknown call has answers")
	}
}

// TestQuestions: an open question is not asked again until it is resolved.
func TestQuestions(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 9}, Confirm: []string{"write"}})
	if d := b.Decide(calling("w", "", "write", `{}`)); d.Verdict != asks {
		t.Errorf("a tool that is confirmed by configuration: %+v", d)
	}
	d := b.Decide(calling("1", "", "pay", `{"amount":1}`))
	if a := b.asked("1", "tok"); len(a) != 1 || a[0].Envelope.Error.Type != registry.ErrorConfirmationRequired {
		t.Errorf("the answers are %+v", a)
	}
	if again := b.Decide(calling("2", "", "pay", `{"amount":1}`)); again.Verdict != answeredNow || !again.Envelope.Meta.CacheHit {
		t.Errorf("asked again: %+v", again)
	}
	if other := b.Decide(calling("3", "", "pay", `{"amount":2}`)); other.Verdict != asks {
		t.Errorf("another amount: %+v", other)
	}
	b.over("tok")
	run := b.Confirmed("4", "pay", "ref", d.Prepared)
	if run.Verdict != runs || run.Keys.Idempotency != "confirmation:ref" || run.Prepared != d.Prepared {
		t.Errorf("approved: %+v", run)
	}
	if during := b.Decide(calling("5", "", "pay", `{"amount":1}`)); during.Verdict != joins || during.Into != "4" {
		t.Errorf("during the approved call: %+v", during)
	}
	b.ended("4", good(`{}`), 0)
	if after := b.Decide(calling("6", "call_aaaaaaaaaa", "pay", `{"amount":1}`)); after.Verdict != asks {
		t.Errorf("after it: %+v", after)
	}
}

// TestHowLongAQuestionWaits: the metrics include how long the user took to answer, and how long the approved call
// then waited for its handler.
func TestHowLongAQuestionWaits(t *testing.T) {
	put := time.Unix(1000, 0)
	for outcome, ended := range map[Outcome]time.Duration{OutcomeApproved: 7 * time.Second, OutcomeDenied: 2 * time.Second, OutcomeExpired: time.Minute} {
		c := newDesk(toolbox(), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 9}})
		c.Called(put, Called{Turn: 1, Provider: "p", Tool: "pay", Args: []byte(`{"amount":1}`)})
		call := c.open[0].id
		c.Recorded(put, Recorded{Call: call, Token: "tok", Name: "tok", Reference: "ref", ExpiresAt: put.Add(time.Hour)})
		c.Answered("tok", outcome == OutcomeApproved)
		waited := time.Duration(-1)
		for _, do := range c.Resolved(put.Add(ended), Resolved{Token: "tok", Outcome: outcome, By: ByClient}) {
			switch do := do.(type) {
			case Declined:
				waited = do.Record.Waited
			case Approved:
				waited = do.Waited
				c.Approve(put.Add(ended), 2, do)
				env := good(`{}`)
				answers, ok := c.Finished(Finished{Call: c.open[0].id, Envelope: env, BegunAt: put.Add(ended + time.Second)})
				r := answers[0].(Answer).Record(put, Effect{})
				if !ok || r.Waited != ended || r.Queued != time.Second || r.Confirmation != "approved" {
					t.Errorf("the call that was approved is recorded as %+v", r)
				}
			}
		}
		if waited != ended {
			t.Errorf("%s: it has waited %v, want %v", outcome, waited, ended)
		}
	}
}

// TestApprovedTwice: two approvals of one side effect with a business key run it once.
func TestApprovedTwice(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeVoice, Confirm: []string{"book"}})
	one := b.Decide(calling("1", "", "book", `{"who":"A"}`)).Prepared
	b.asked("1", "tok1")
	two := b.Decide(calling("2", "", "book", `{"who":"A","note":"n"}`)).Prepared
	if one == nil || two == nil {
		t.Fatal("both need a question: they look different to the user")
	}
	b.Confirmed("3", "book", "ref1", one)
	if d := b.Confirmed("4", "book", "ref2", two); d.Verdict != joins {
		t.Errorf("the second during the first: %+v", d)
	}
	b.ended("3", good(`{"n":1}`), 0)
	if d := b.Confirmed("5", "book", "ref3", two); d.Verdict != answeredNow || string(d.Envelope.Data) != `{"n":1}` {
		t.Errorf("the second after the first: %+v", d)
	}
}

func TestNoTools(t *testing.T) {
	b := newDesk(nil, Policy{Mode: spec.ModeVoice})
	if d := b.Decide(calling("1", "", "time", `{}`)); d.Verdict != answeredNow || d.Envelope.Error.Type != registry.ErrorNotFound {
		t.Errorf("without tools: %+v", d)
	}
}

// TestCallsAreAValue: a copy does not change with the original.
func TestCallsAreAValue(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 50, Retrieval: 50}})
	for i := range 6 {
		id := fmt.Sprint("r", i)
		b.Decide(calling(id, "", "get", `{"id":"`+id+`"}`))
		b.Decide(calling(id+"j", "", "get", `{"id":"`+id+`"}`))
	}
	b.Decide(calling("p", "", "pay", `{}`))
	b.asked("p", "tok")
	b.ended("r0", good(`{}`), 0)

	changes := map[string]func(*desk){
		"join":     func(b *desk) { b.Decide(calling("x", "", "get", `{"id":"r1"}`)) },
		"run":      func(b *desk) { b.Decide(calling("x", "", "get", `{"id":"new"}`)) },
		"refuse":   func(b *desk) { b.Decide(calling("x", "", "rocket", ``)) },
		"finish":   func(b *desk) { b.ended("r2", good(`{}`), time.Second) },
		"fail":     func(b *desk) { b.ended("r3", bad(), 0) },
		"ask":      func(b *desk) { b.Decide(calling("x", "", "pay", `{"amount":2}`)); b.asked("x", "tok2") },
		"resolve":  func(b *desk) { b.over("tok") },
		"new turn": func(b *desk) { b.book.BeginTurn() },
		"approve":  func(b *desk) { b.book.Approved("pay", "tok") },
		"forget":   func(b *desk) { b.book.Forget("tok") },
	}
	for name, change := range changes {
		before := show(b)
		one, two := b.clone(), b.clone()
		change(&one)
		changed := show(one)
		for _, other := range changes {
			other(&two)
		}
		if show(b) != before || show(one) != changed {
			t.Errorf("%s: a copy has changed with the other", name)
		}
		if changed == before {
			t.Errorf("%s changed nothing", name)
		}
	}
}

// show writes all contents of the calls.
func show(d desk) string {
	var out strings.Builder
	for _, k := range d.open {
		fmt.Fprintf(&out, "%s %s %s %s %d, ", k.id, k.state, k.into, k.args, k.reader)
	}
	return out.String() + fmt.Sprintf("%s %d %s", d.book.Carry(), d.count, storedIn(d))
}

// storedIn reports which answers are stored.
func storedIn(d desk) (out string) {
	for i := range 6 {
		_, ok := d.book.ByKey(HashKey("get", fmt.Sprintf(`{"id":"r%d"}`, i), 1), "get", fmt.Sprintf(`{"id":"r%d"}`, i))
		out += fmt.Sprint(ok, " ")
	}
	return out
}

package calls

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// asksFor decides a call that needs an approval, and reports whether the user is asked.
func asksFor(t *testing.T, b *desk, tool, id string) bool {
	t.Helper()
	args := map[string]string{"pay": `{"amount":` + id + `}`, "write": `{"text":"` + id + `"}`}[tool]
	d := b.Decide(calling(id, "", tool, args))
	if d.Verdict == asks {
		b.asked(id, "name"+id)
		return true
	}
	if d.Verdict != answeredNow || d.Envelope.Error.Type != registry.ErrorBudgetExceeded || d.Envelope.Error.Suggestion == "" || d.Envelope.Error.Retryable || d.OverBudget {
		t.Fatalf("%s %s: %+v", tool, id, d)
	}
	return false
}

// TestQuestionsAreBounded: declined and unanswered questions limit how often the user is asked again.
func TestQuestionsAreBounded(t *testing.T) {
	rules := Policy{Mode: spec.ModeText, Budget: Budget{Total: 100}, Confirm: []string{"write"}}
	for name, c := range map[string]struct {
		// steps are a tool for a question, "no" and a tool for none, "turn" for the user's words, and the outcome of
		// a question, by its number.
		steps []string
	}{
		"declined three times":      {[]string{"pay", "over 1", "pay", "over 2", "pay", "over 3", "no pay"}},
		"another tool is asked for": {[]string{"pay", "over 1", "pay", "over 2", "pay", "over 3", "write", "no pay"}},
		"the user requests it": {[]string{
			"pay", "over 1", "pay", "over 2", "pay", "over 3", "no pay", "turn", "pay", "no pay", "over 4", "no pay", "turn", "pay"}},
		"waiting questions count separately": {[]string{
			"pay", "pay", "pay", "pay", "pay", "pay", "write", "write", "write", "write", "no write", "turn", "no pay"}},
		"approved": {[]string{"pay", "yes 1", "pay", "yes 2", "pay", "yes 3", "pay", "yes 4", "pay"}},
		"approved after two were declined": {[]string{
			"pay", "over 1", "pay", "over 2", "pay", "yes 3", "pay", "over 4", "pay", "over 5", "pay", "over 6", "no pay"}},
		"a later refusal still counts": {[]string{
			"pay", "pay", "over 2", "yes 1", "pay", "over 3", "pay", "over 4", "no pay"}},
		"ten in all": {[]string{
			"pay", "over 1", "turn", "pay", "over 2", "turn", "pay", "over 3", "turn", "pay", "over 4", "turn", "pay", "over 5", "turn",
			"write", "over 6", "turn", "write", "over 7", "turn", "write", "over 8", "turn", "write", "over 9", "turn", "pay", "over 10", "turn", "no pay", "no write"}},
		"forgotten": {[]string{"pay", "over 1", "pay", "over 2", "pay", "over 3", "no pay", "forget 2", "pay"}},
	} {
		for _, carried := range []bool{false, true} {
			b := newDesk(toolbox(), rules)
			n := 0
			for i, s := range c.steps {
				var verb, rest string
				_, _ = fmt.Sscan(s, &verb, &rest)
				switch verb {
				case "pay", "write":
					n++
					if !asksFor(t, &b, verb, fmt.Sprint(n)) {
						t.Errorf("%s: step %d, %s: the user is not asked", name, i, s)
					}
				case "no":
					if asksFor(t, &b, rest, fmt.Sprint(1000+i)) {
						t.Errorf("%s: step %d, %s: the user is asked", name, i, s)
					}
				case "over":
					b.over("name" + rest)
				case "yes":
					b.over("name" + rest)
					b.book.Approved("pay", "name"+rest)
				case "forget":
					b.book.Forget("name" + rest)
				case "turn":
					b.book.BeginTurn()
				}
				if carried { // another message of a text conversation
					next := newDesk(toolbox(), rules)
					if err := next.book.Resume(b.book.Carry()); err != nil || next.book.Account() != b.book.Account() {
						t.Fatalf("%s: step %d: %v, %+v became %+v", name, i, err, b.book.Account(), next.book.Account())
					}
					b = next
				}
			}
		}
	}
}

// TestQuestionsOfABatch: a question counts before it is recorded, and no longer if it cannot be recorded.
func TestQuestionsOfABatch(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeText, Budget: Budget{Total: 100}, Questions: Questions{Total: 2}})
	for i, want := range []verdict{asks, asks, answeredNow} {
		if d := b.Decide(calling(fmt.Sprint(i), "", "pay", fmt.Sprintf(`{"amount":%d}`, i))); d.Verdict != want {
			t.Errorf("call %d: verdict %s, want %s", i, d.Verdict, want)
		}
	}
	b.ended("0", bad(), 0)
	if d := b.Decide(calling("3", "", "pay", `{"amount":3}`)); d.Verdict != asks {
		t.Errorf("the first question was not recorded: %+v", d)
	}
}

// TestRandomQuestions: the limits hold for random calls and answers.
func TestRandomQuestions(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		most := Questions{PerTool: 1 + rng.IntN(4), Total: 1 + rng.IntN(12)}
		b := newDesk(toolbox(), Policy{Mode: spec.ModeText, Budget: Budget{Total: 1 << 20}, Confirm: []string{"write"}, Questions: most})
		type question struct {
			tool, name string
			over       bool
		}
		var open []question       // not approved
		since := map[string]int{} // questions of a tool since the user's last words
		for i := range 200 {
			switch n := rng.IntN(10); {
			case n < 6:
				tool := []string{"pay", "write"}[rng.IntN(2)]
				over := 0
				for _, q := range open {
					if q.tool == tool && q.over {
						over++
					}
				}
				asked := asksFor(t, &b, tool, fmt.Sprint(i))
				if want := len(open) < most.Total && (over < most.PerTool || since[tool] == 0); asked != want {
					t.Fatalf("seed %d, step %d: asked %t about %s with %+v, %d since the user spoke, of %+v", seed, i, asked, tool, open, since[tool], most)
				}
				if asked {
					open = append(open, question{tool, "name" + fmt.Sprint(i), false})
					since[tool]++
				}
			case n < 8 && len(open) > 0:
				q := &open[rng.IntN(len(open))]
				q.over = true
				b.over(q.name)
			case n < 9:
				b.book.BeginTurn()
				clear(since)
			case len(open) > 0:
				at := rng.IntN(len(open))
				yes := open[at]
				b.book.Approved(yes.tool, yes.name)
				var left []question
				for j, q := range open {
					if q.tool != yes.tool || j > at {
						left = append(left, q)
					}
				}
				open = left
				// The time of a forgotten question is forgotten too: count the rest.
				since = countLately(t, &b)
			}
		}
	}
}

// countLately returns the number of the Book's questions about each tool since the user's last words.
func countLately(t *testing.T, b *desk) map[string]int {
	t.Helper()
	var kept struct {
		Unapproved []struct {
			Tool   string
			Before bool
		}
	}
	if err := json.Unmarshal(b.book.Carry(), &kept); err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, q := range kept.Unapproved {
		if !q.Before {
			n[q.Tool]++
		}
	}
	return n
}

// TestResumeOfNonsense: unreadable data is an error and changes nothing.
func TestResumeOfNonsense(t *testing.T) {
	b := newDesk(toolbox(), Policy{Mode: spec.ModeText})
	b.book.Charge(b.book.tools, "time")
	before := show(b)
	for _, raw := range []string{`[]`, `{"total":"x"}`, `{`} {
		if err := b.book.Resume(json.RawMessage(raw)); err == nil || show(b) != before {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := b.book.Resume(nil); err != nil || show(b) != before {
		t.Errorf("empty: %v", err)
	}
	if err := b.book.Resume(json.RawMessage(`{"total":-4,"retrieval":-1,"tool_time_ms":-9}`)); err != nil || b.book.Account() != (Account{}) {
		t.Errorf("negative: %v, %+v", err, b.book.Account())
	}
}

// TestSpokenApprovalOfARunningAction: there are two questions about one side effect, and the user agrees to the
// second aloud while the first runs: the model's ConfirmAction gets the answer of the first.
func TestSpokenApprovalOfARunningAction(t *testing.T) {
	c := New(toolbox(), &Rules{Tools: Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 9}, Confirm: []string{"book"}}, Prefix: "c", Spoken: true})
	for i, args := range []string{`{"who":"A"}`, `{"who":"A","note":"n"}`} {
		c.Called(time.Time{}, Called{Turn: 1, Tool: "book", Args: json.RawMessage(args)})
		name := fmt.Sprint("c", i+1)
		c.Recorded(time.Time{}, Recorded{Call: name, Token: "token" + name, Name: name, Reference: "ref" + name})
	}
	for _, a := range c.Resolved(time.Time{}, Resolved{Token: "tokenc1", Outcome: OutcomeApproved}) {
		if approved, ok := a.(Approved); ok {
			c.Approve(time.Time{}, 1, approved) // c3
		}
	}
	c.Called(time.Time{}, Called{Turn: 1, Model: "m", Tool: ConfirmAction, Args: json.RawMessage(`{"reference":"refc2","approved":true}`), SpokenAt: time.Unix(1, 0)}) // c4
	c.Resolved(time.Time{}, Resolved{Token: "tokenc2", Outcome: OutcomeApproved})
	if k := c.find("c4"); k == nil || k.state != joined || k.into != "c3" || c.Strayed() {
		t.Fatalf("the spoken approval is %+v", k)
	}
	do, _ := c.Finished(Finished{Call: "c3", Envelope: good(`{"n":1}`)})
	both := answers(do)
	if len(both) != 2 || both[1].Model != "m" || !both[1].Envelope.OK || !both[1].Envelope.Meta.CacheHit {
		t.Errorf("the answers are %+v", both)
	}
}

package calls

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// ledger checks a random conversation by its actions alone.
type ledger struct {
	t        *testing.T
	calls    Calls
	ended    map[string]int // answers of each call
	models   map[string]int // terminals for each of the model's names: answers, and overtaken calls
	begun    map[string]bool
	running  map[string]bool
	asking   map[string]bool
	waiting  map[string]bool // tokens that are being resolved
	tokens   []string
	withdrew map[string]bool
	serial   int
}

// see checks the actions of a step.
func (l *ledger) see(do []Action) {
	l.t.Helper()
	for _, a := range do {
		switch a := a.(type) {
		case Run:
			if l.begun[a.Call] || l.ended[a.Call] > 0 {
				l.t.Fatalf("%s runs twice, or after its end", a.Call)
			}
			l.begun[a.Call], l.running[a.Call] = true, true
			if len(l.running) > maxParallel {
				l.t.Fatalf("%d tools run at once", len(l.running))
			}
		case Ask:
			l.asking[a.Call] = true
		case Resolve:
			if l.waiting[a.Token] {
				l.t.Fatalf("the answer to %s is recorded twice", a.Token)
			}
			l.waiting[a.Token] = true
		case Cancel:
			if !l.running[a.Call] {
				l.t.Fatalf("%s is stopped and does not run", a.Call)
			}
		case Overtaken:
			l.answered(a.Model)
		case Answer:
			if l.ended[a.Call]++; l.ended[a.Call] > 1 {
				l.t.Fatalf("%s ended twice", a.Call)
			}
			if a.reader == byCall {
				l.answered(a.Model)
			}
		case Approved:
			l.see(l.calls.Approve(l.now(), 1+l.serial/10, a))
		}
	}
}

func (l *ledger) answered(model string) {
	if l.models[model]++; l.models[model] > 1 || l.withdrew[model] {
		l.t.Fatalf("%s has two terminals; the model has withdrawn it: %t", model, l.withdrew[model])
	}
}

// now advances by a second with each step.
func (l *ledger) now() time.Time { return time.Unix(int64(l.serial), 0) }

// one is any of a set; empty for an empty set.
func one(rng *rand.Rand, set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if len(names) == 0 {
		return ""
	}
	return names[rng.IntN(len(names))]
}

// finish ends one call, or records or answers one question.
func (l *ledger) finish(rng *rand.Rand) {
	env := good(`{}`)
	if rng.IntN(3) == 0 {
		env = bad()
	}
	run, asked, token := one(rng, l.running), one(rng, l.asking), one(rng, l.waiting)
	switch {
	case run != "" && (rng.IntN(2) == 0 || asked+token == ""):
		delete(l.running, run)
		do, ok := l.calls.Finished(Finished{Call: run, Envelope: env, BegunAt: l.now()})
		if !ok {
			l.t.Fatalf("%s runs, and its result is not taken", run)
		}
		l.see(do)
	case asked != "":
		delete(l.asking, asked)
		in := Recorded{Call: asked, Token: "token" + asked, Name: asked, Reference: "ref" + asked, ExpiresAt: l.now().Add(time.Minute)}
		switch rng.IntN(5) {
		case 0:
			in = Recorded{Call: asked}
		case 1:
			in = Recorded{Call: asked, Refused: &env}
		default:
			l.tokens = append(l.tokens, in.Token)
		}
		l.see(l.calls.Recorded(l.now(), in))
	case token != "":
		delete(l.waiting, token)
		outcome := []Outcome{OutcomeApproved, OutcomeDenied, OutcomeExpired, OutcomeUsed, OutcomeFailed}[rng.IntN(5)]
		l.see(l.calls.Resolved(l.now(), Resolved{Token: token, Outcome: outcome}))
	}
}

// called is a call of the model's, with repeated arguments and ids.
func (l *ledger) called(rng *rand.Rand) Called {
	in := Called{Turn: 1 + l.serial/10, Model: fmt.Sprint("m", l.serial), SpokenAt: l.now()}
	in.Tool = []string{"get", "get", "write", "book", "pay", "stop", "rocket", ConfirmAction}[rng.IntN(8)]
	in.Args = json.RawMessage([]string{`{}`, `{"who":"A"}`, fmt.Sprintf(`{"who":"A","note":"%d"}`, l.serial%5), fmt.Sprintf(`{"amount":%d}`, rng.IntN(3)), fmt.Sprintf(`{"id":"%d"}`, rng.IntN(9))}[rng.IntN(5)])
	if in.Tool == ConfirmAction && len(l.tokens) > 0 {
		in.Args = json.RawMessage(fmt.Sprintf(`{"reference":"ref%s","approved":%t}`, l.tokens[rng.IntN(len(l.tokens))][len("token"):], rng.IntN(2) == 0))
	}
	if rng.IntN(2) == 0 {
		in.Provider = fmt.Sprintf("call_%010d", rng.IntN(l.serial+1))
	}
	return in
}

// step performs one random event.
func (l *ledger) step(rng *rand.Rand) {
	l.serial++
	switch n := rng.IntN(20); {
	case n < 9:
		l.see(l.calls.Called(l.now(), l.called(rng)))
	case n < 14:
		l.finish(rng)
	case n < 15:
		l.see(l.calls.Interrupted(func(*registry.Prepared) bool { return rng.IntN(3) == 0 }))
	case n < 16:
		model := fmt.Sprint("m", l.serial-rng.IntN(6))
		if l.models[model] == 0 {
			l.withdrew[model] = l.calls.first(func(k *call) bool { return k.model == model }) != nil
		}
		l.see(l.calls.Withdrawn([]string{model}))
	case n < 17:
		l.see(l.calls.Superseded())
		l.calls.Book().BeginTurn()
	case n < 19 && len(l.tokens) > 0:
		l.see(l.calls.Answered(l.tokens[rng.IntN(len(l.tokens))], rng.IntN(2) == 0))
	default:
		l.see(l.calls.Tick(l.now()))
	}
}

// TestRandomCalls: each call ends once, each call of the model's has at most one terminal, and no call makes a
// transition that the table of states does not have. In the end nothing is open.
func TestRandomCalls(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 4))
		rules := Rules{Tools: Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 1000, Retrieval: 1000}, Confirm: []string{"book"}, Questions: Questions{PerTool: 50, Total: 100}},
			Prefix: "c", Spoken: seed%2 == 0, Live: seed%3 > 0, MaxOpen: 12, MaxQuestions: 3}
		l := ledger{t: t, calls: New(toolbox(), &rules), ended: map[string]int{}, models: map[string]int{}, begun: map[string]bool{},
			running: map[string]bool{}, asking: map[string]bool{}, waiting: map[string]bool{}, withdrew: map[string]bool{}}
		for range 150 {
			l.step(rng)
		}
		l.see(l.calls.Over())
		for len(l.running)+len(l.asking)+len(l.waiting) > 0 {
			l.finish(rng)
		}
		for i := range l.calls.Count() {
			if name := fmt.Sprint("c", i+1); l.ended[name] != 1 {
				t.Fatalf("seed %d: %s ended %d times", seed, name, l.ended[name])
			}
		}
		if l.calls.Strayed() {
			t.Fatalf("seed %d: a call has made a transition that the table of states does not have", seed)
		}
		for _, k := range l.calls.open {
			if !k.wasAsked() {
				t.Fatalf("seed %d: %s is %s in the end", seed, k.id, k.state)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

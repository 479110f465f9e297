package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry"
)

// survivalRules book and pay.
const survivalRules = payRules + `
  - when: {text: '^book (?P<time>\w+)$'}
    do:
      - call: {tool: book, args: {name: Ada, time: "${time}"}}
      - then: [say: That is how it is.]
`

// TestKilledWhileWriting: a gateway is killed with SIGKILL and restarted with the same data folder. No side effect
// happens twice.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		for name, test := range map[string]func(*testing.T, *tap, processSetting){
			"in the middle of an action":    killedInTheMiddle,
			"after an action":               killedAfterAnAction,
			"while a user is asked":         killedWhileAsking,
			"before an answer is delivered": killedBeforeTheAnswer,
		} {
			t.Run(provider+" "+name, func(t *testing.T) {
				t.Parallel()
				tp := newProvider(t, setting{scenario: survivalRules, speed: 50, playback: 50, firstAudioMS: 10})
				test(t, tp, processSetting{Provider: provider, Dir: t.TempDir()})
			})
		}
	}
}

// killedInTheMiddle: the side effect happened without a record. It is not repeated, and the model learns that its state
// is unknown.
func killedInTheMiddle(t *testing.T, tp *tap, set processSetting) {
	holding := set
	holding.Hold = "book"
	first := startProcess(t, tp, holding)
	first.startAs(t, "ada").say(&protocol.InputText{Text: "book noon"})
	const done = `book {"name":"Ada","time":"noon"}`
	testutil.WaitUntil(t, "the side effect", func() bool { return slices.Contains(first.effects(t), done) })
	first.kill(t)

	second := startProcess(t, tp, set)
	c := second.startAs(t, "ada")
	for range 2 {
		e := errorOf(t, c.typed("book noon").call(t))
		if e.Type != registry.ErrorConflict || !e.PartialSideEffects {
			t.Errorf("the client got %+v", e)
		}
	}
	for _, a := range tp.waitAnswers(t, 2) {
		if e := a.envelope.Error; e == nil || e.Type != registry.ErrorConflict || !e.PartialSideEffects || e.Suggestion == "" {
			t.Errorf("the model got %s", a.envelope.Encode())
		}
	}
	// Only this action is uncertain.
	if m := c.typed("book one").call(t); !m.OK {
		t.Errorf("another action ended with %s", m.Error)
	}
	second.leave(t)
	if got := second.effects(t); !slices.Equal(got, []string{done, `book {"name":"Ada","time":"one"}`}) {
		t.Errorf("the effects are %v", got)
	}
	records := second.records(t, "book")
	if len(records) != 3 {
		t.Fatalf("the audit has %+v", records)
	}
	for i, r := range records {
		if i < 2 && (r.OK || r.ErrorType != registry.ErrorConflict || !r.PartialSideEffects || !r.Delivered || r.CacheHit) || i == 2 && !r.OK {
			t.Errorf("record %d is %+v", i+1, r)
		}
	}
}

// killedAfterAnAction: a finished action is answered from the ledger.
func killedAfterAnAction(t *testing.T, tp *tap, set processSetting) {
	first := startProcess(t, tp, set)
	c := first.startAs(t, "ada")
	c.say(&protocol.InputText{Text: "again please"})
	c.turn() // so that the action is not in the first turn
	before := c.typed("book noon")
	if m := before.call(t); !m.OK || m.Deduplicated {
		t.Errorf("the first call ended with %+v", m)
	}
	first.kill(t)

	second := startProcess(t, tp, set)
	if m := second.startAs(t, "ada").typed("book noon").call(t); !m.OK || !m.Deduplicated {
		t.Errorf("the call after the kill ended with %+v", m)
	}
	answers := tp.waitAnswers(t, 2)
	a, b := answers[0].envelope, answers[1].envelope
	if a.Meta.CacheHit || !b.Meta.CacheHit || b.Meta.OriginalTurn != before.number || string(a.Data) != string(b.Data) {
		t.Errorf("the answers were %s and %s", a.Encode(), b.Encode())
	}
	if m := second.startAs(t, "eve").typed("book noon").call(t); !m.OK || m.Deduplicated {
		t.Errorf("another user's action ended with %+v", m)
	}
	second.leave(t)
	if got := second.effects(t); len(got) != 2 {
		t.Errorf("the effects are %v", got)
	}
	records := second.records(t, "book")
	if r := records[len(records)-2]; !r.OK || !r.CacheHit || r.OriginalTurn != before.number {
		t.Errorf("the repeat is audited as %+v", r)
	}
}

// killedWhileAsking: an approval request survives, and a later approval runs the shown arguments once.
func killedWhileAsking(t *testing.T, tp *tap, set processSetting) {
	first := startProcess(t, tp, set)
	asked := first.startAs(t, "ada").proposed(t)
	first.kill(t)

	second := startProcess(t, tp, set)
	c := second.startAs(t, "ada")
	c.resolve(asked.Token, true)
	c.refused(protocol.CodeConfirmationUnknown) // another session's token
	status, body := second.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+asked.Token+`","approved":true}`)
	var answer struct {
		Outcome  string
		Told     bool
		Envelope registry.Envelope
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("the API answers %d %s", status, body)
	}
	if answer.Outcome != "approved" || answer.Told || !answer.Envelope.OK || answer.Envelope.Meta.Tool != "pay" {
		t.Errorf("the API answers %s", body)
	}
	for _, again := range []string{`true`, `false`} {
		if status, body := second.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+asked.Token+`","approved":`+again+`}`); status != http.StatusConflict {
			t.Errorf("a second answer is answered %d %s", status, body)
		}
	}
	second.leave(t)
	if got := second.effects(t); !slices.Equal(got, []string{"pay " + paid}) {
		t.Errorf("the effects are %v", got)
	}
	records := second.records(t, "pay")
	if r := records[len(records)-1]; !r.OK || r.Confirmation != "approved" || r.ConfirmedBy != "api" || r.UserID != "ada" || r.NotDelivered != "session_over" {
		t.Errorf("the payment is audited as %+v", r)
	}
}

// killedBeforeTheAnswer: the gateway dies while an approved action runs. The approval is used up and does not run it
// again.
func killedBeforeTheAnswer(t *testing.T, tp *tap, set processSetting) {
	holding := set
	holding.Hold = "pay"
	first := startProcess(t, tp, holding)
	c := first.startAs(t, "ada")
	asked := c.proposed(t)
	c.resolve(asked.Token, true)
	testutil.WaitUntil(t, "the payment", func() bool { return slices.Contains(first.effects(t), "pay "+paid) })
	first.kill(t)

	second := startProcess(t, tp, set)
	if status, body := second.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+asked.Token+`","approved":true}`); status != http.StatusConflict {
		t.Errorf("the API answers %d %s", status, body)
	}
	second.leave(t)
	if got := second.effects(t); !slices.Equal(got, []string{"pay " + paid}) {
		t.Errorf("the effects are %v", got)
	}
}

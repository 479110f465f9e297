package session

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// payment are the arguments of pay.
type payment struct {
	Amount int    `json:"amount"`
	To     string `json:"to"`
	TopK   int    `json:"top_k"`
}

// till is a stage with tools: pay has a side effect and needs approval; search retrieves; bye ends the session with a
// farewell, and ban also blocks the user.
type till struct {
	*stage
	ledger    *storetest.Ledger
	questions *storetest.Confirmations
	audited   *records
	registry  *registry.Registry

	// takes is the duration of pay, which ignores its context.
	takes time.Duration

	mu   sync.Mutex // guards the following fields
	paid []payment
	last registry.Session // of the last search
}

// adaStart is the session.start of a named user.
const adaStart = `{"type":"session.start","input_rate":16000,"output_rate":24000,"conversation_id":"conv_1","client":{"id":"ada"}}`

func newTill(t *testing.T, change func(*Options)) *till {
	t.Helper()
	tl := &till{ledger: &storetest.Ledger{}, questions: &storetest.Confirmations{}, audited: &records{}}
	tools, err := registry.Load(registrytest.File(t, tillTools("1.0.0")...), registry.Options{
		Dev: true, SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Messenger]()},
		Handlers: map[string]registry.Handler{
			"pay": registry.Bind(tl.pay), "add": registry.Bind(tl.pay), "search": registry.Bind(tl.search), "bye": registry.Bind(bye), "ban": registry.Bind(ban),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	tl.registry = tools
	tl.stage = newStage(t, hearing, func(o *Options) {
		o.Tools, o.Audit = tools.Snapshot, tl.audited.add
		o.Executor = execute.New(execute.Options{Ledger: tl.ledger, Confirmations: tl.questions})
		if change != nil {
			change(o)
		}
	})
	return tl
}

func tillTools(payVersion string) []registry.Entry {
	pay := entry("pay", payVersion)
	pay.Category, pay.SideEffects, pay.Idempotent, pay.RequiresConfirmation = spec.CategoryAction, spec.SideEffectsWrites, false, true
	pay.Preview, pay.IdempotencyKey = "Pay {amount} to {to}", "{amount} {to}"
	search := entry("search", "1.0.0")
	search.Category, search.SideEffects = spec.CategoryRetrieval, spec.SideEffectsReadOnly
	for _, e := range []*registry.Entry{&pay, &search} {
		e.Parameters = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"},"to":{"type":"string"},"top_k":{"type":"integer","default":5}},"additionalProperties":false}`)
		e.Forms.OpenAI, e.Forms.OpenAIChat = e.Parameters, e.Parameters
	}
	add := entry("add", "1.0.0")
	add.Category, add.SideEffects, add.Idempotent, add.Parameters = spec.CategoryAction, spec.SideEffectsWrites, false, pay.Parameters
	add.Forms.OpenAI, add.Forms.OpenAIChat = add.Parameters, add.Parameters
	return []registry.Entry{pay, search, entry("bye", "1.0.0"), entry("ban", "1.0.0"), add}
}

func (tl *till) pay(_ context.Context, c registry.Call[payment, struct{}]) (registry.Result, error) {
	if tl.takes > 0 {
		pass(tl.takes)
	}
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.paid = append(tl.paid, c.Args)
	return registry.Result{Data: map[string]int{"receipt": len(tl.paid)}, Intents: []registry.Intent{registry.SuppressTranscript(false)}}, nil
}

func (tl *till) search(_ context.Context, c registry.Call[payment, struct{}]) (registry.Result, error) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.last = c.Session
	return registry.Result{Data: c.Args.TopK}, nil
}

func bye(context.Context, registry.Call[noArgs, struct{}]) (registry.Result, error) {
	return registry.Result{Intents: []registry.Intent{registry.EndVoiceSession(registry.EndAfterFarewellSpoken)}}, nil
}

// needsMessenger are the needs of ban.
type needsMessenger struct{ Messenger registry.Messenger }

func ban(_ context.Context, c registry.Call[noArgs, needsMessenger]) (registry.Result, error) {
	c.Needs.Messenger.Timeout(c.Session.Now.Add(time.Hour), time.Hour, "Enough.")
	return registry.Result{Intents: []registry.Intent{registry.EndVoiceSession(registry.EndAfterFarewellSpoken), registry.SuppressAudio(true)}}, nil
}

// session returns the session of the last search.
func (tl *till) session() registry.Session {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return tl.last
}

// payments returns the payments so far.
func (tl *till) payments() []payment {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return slices.Clone(tl.paid)
}

// talk begins a session of ada.
func (tl *till) talk() (*testClient, *fakeConn) {
	tl.t.Helper()
	c := tl.connect(adaStart)
	model := tl.fake.Accept(tl.t)
	synctest.Wait()
	return c, model
}

// calls makes the model call a tool in the turn of the user's item.
func (tl *till) calls(model *fakeConn, item, tool, args string) {
	model.Emit(transport.InputCommitted{Item: item}, transport.ResponseStarted{ID: "r" + item},
		transport.ToolCall{Call: "m" + item, ID: "call_of_" + item, Name: tool, Args: json.RawMessage(args)},
		transport.ResponseDone{ID: "r" + item, Status: transport.ResponseCompleted})
	synctest.Wait()
}

// says makes the model say something, and the client hear all of it.
func says(c *testClient, model *fakeConn, item string) {
	model.Emit(transport.ResponseStarted{ID: "s" + item})
	model.EmitAudio(item, make([]byte, 4800))
	model.Emit(transport.AudioDone{Item: item}, transport.ResponseDone{ID: "s" + item, Status: transport.ResponseCompleted})
	synctest.Wait()
	c.say(fmt.Sprintf(`{"type":"playback","item_id":%q,"played_ms":100,"done":true}`, item))
	synctest.Wait()
}

// asksToPay makes the model request a payment of 5 to Bob, and returns the token that the client gets. The turn has
// ended then.
func (tl *till) asksToPay(c *testClient, model *fakeConn, item string) string {
	tl.t.Helper()
	tl.calls(model, item, "pay", `{"to":"Bob","amount":5}`)
	says(c, model, "question_"+item)
	token, _ := c.last(tl.t, "confirmation.request")["token"].(string)
	if token == "" {
		tl.t.Fatal("the client got no token")
	}
	return token
}

// resolve sends the client's answer.
func resolve(c *testClient, token string, approved bool) {
	c.say(fmt.Sprintf(`{"type":"confirmation.resolve","token":%q,"approved":%t}`, token, approved))
	synctest.Wait()
}

// userTexts returns the user texts that the model got.
func userTexts(model *fakeConn) []string {
	var all []string
	for _, cmd := range model.Commands() {
		if text, ok := cmd.(transport.UserText); ok {
			all = append(all, text.Text)
		}
	}
	return all
}

// count returns the number of lines in the client's log with the prefix.
func (c *testClient) count(prefix string) int {
	n := 0
	for _, line := range c.log() {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// once fails unless 5 were paid to Bob exactly once.
func (tl *till) once(t *testing.T) {
	t.Helper()
	if got := tl.payments(); len(got) != 1 || got[0].Amount != 5 || got[0].To != "Bob" {
		t.Errorf("payments %+v, want 5 to Bob once", got)
	}
}

// onStage runs a test with a till in a bubble.
func onStage(t *testing.T, change func(*Options), test func(t *testing.T, tl *till)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tl := newTill(t, change)
		test(t, tl)
		tl.m.Close()
		tl.settled(t)
	})
}

// settled checks that the ledger records a known outcome for each approved question.
func (tl *till) settled(t *testing.T) {
	t.Helper()
	for _, q := range tl.questions.All() {
		if q.Outcome == store.Approved && !slices.Contains(tl.questions.Settled(), q.Reference) {
			t.Errorf("the ledger has no outcome of %s", q.Reference)
		}
	}
}

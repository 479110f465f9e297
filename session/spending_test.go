package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// prices returns a table for the fake model: a token of output costs a micro-dollar.
func prices(t *testing.T, model string) *cost.Table {
	t.Helper()
	table, err := cost.Parse("prices", []byte("version: 1\ndate: 2026-11-25\nprices: [{models: ["+strings.ToLower(model)+"], source: s, input: {text: 1}, output: {text: 1}}]"))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// counted is a stage whose sessions are counted at a hub, like those of a node.
type counted struct {
	*stage
	meter *meter.Meter

	mu     sync.Mutex
	audits []audit.Record
}

func newCounted(t *testing.T, h *storetest.Usage, node string, policy orchestrator.Policy, limits auth.Limits) *counted {
	t.Helper()
	m, err := meter.New(context.Background(), meter.Options{Store: h, Node: node, User: limits})
	if err != nil {
		t.Fatal(err)
	}
	st := &counted{meter: m}
	st.stage = newStage(t, hearing, func(o *Options) {
		o.Usage, o.Policy, o.Prices = m, policy, prices(t, "fake-model")
		if fake, ok := o.Transports["fake"].(*fakeModel); ok {
			fake.Info.Model = "fake-model"
		}
		o.Audit = func(r audit.Record) {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.audits = append(st.audits, r)
		}
	})
	t.Cleanup(func() { // runs before the stage's cleanup
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return st
}

func (st *counted) records() []audit.Record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.audits)
}

const adaStarts = `{"type":"session.start","input_rate":16000,"output_rate":24000,"client":{"id":"ada"}}`

// adaSpeaks begins a session of ada.
func (st *counted) adaSpeaks(t *testing.T, start string) *spender {
	t.Helper()
	c := st.connect(start)
	return &spender{t: t, client: c, model: st.fake.Accept(t)}
}

// spender is a conversation whose model reports its usage.
type spender struct {
	t      *testing.T
	client *testClient
	model  interface {
		Emit(...transport.Event)
		EmitAudio(string, []byte)
		Commands() []transport.Command
	}
	answers int
	bye     bool // the model has said goodbye
}

// answer makes the model answer its turn with some tokens, and the user hear it.
func (s *spender) answer(tokens int64) {
	s.t.Helper()
	s.answers++
	id := fmt.Sprint("a", s.answers)
	s.model.Emit(transport.ResponseStarted{ID: id})
	s.model.EmitAudio(id, make([]byte, 4800))
	s.model.Emit(transport.AudioDone{Item: id}, transport.Usage{Tokens: transport.Tokens{Output: tokens, OutputText: tokens}}, transport.ResponseDone{ID: id, Status: transport.ResponseCompleted})
	synctest.Wait()
	pass(5 * time.Second)
	synctest.Wait()
}

// asks sends a text of the user, and reports whether the model gets a request to answer.
func (s *spender) asks() bool {
	s.t.Helper()
	if s.client.isOver() {
		return false
	}
	before := s.texts("hello")
	s.client.say(`{"type":"input.text","text":"hello"}`)
	synctest.Wait()
	return s.texts("hello") > before
}

// texts counts how often the model got a text.
func (s *spender) texts(text string) (n int) {
	for _, c := range s.model.Commands() {
		if said, ok := c.(transport.UserText); ok && strings.Contains(said.Text, text) {
			n++
		}
	}
	return n
}

// TestBudgetOverTwoNodes: two nodes share a user's daily budget. Each session answers at most one turn over the limit,
// its farewell is heard, and then no node admits the user.
func TestBudgetOverTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		limits := auth.Limits{CostPerDay: 0.001} // 10 turns
		a, b := newCounted(t, h, "a", orchestrator.Policy{}, limits), newCounted(t, h, "b", orchestrator.Policy{}, limits)
		all := []*spender{a.adaSpeaks(t, adaStarts), a.adaSpeaks(t, adaStarts), b.adaSpeaks(t, adaStarts), b.adaSpeaks(t, adaStarts)}
		beyond := map[*spender]int{}
		var used int64
		for range 5 {
			var open []*spender
			for _, s := range all {
				if s.asks() {
					open = append(open, s) // all at once, so that several turns are open at the limit
				}
			}
			for _, s := range open {
				if used >= 1000 {
					beyond[s]++
				}
				if !s.bye {
					used += 100
					s.answer(100)
				}
				for _, s := range all {
					if !s.bye && s.texts(prompts.BudgetNotice) > 0 {
						s.bye = true
						s.answer(10)
					}
				}
			}
		}
		for i, s := range all {
			if n := beyond[s]; n > 1 {
				t.Errorf("session %d answered %d turns beyond the limit", i, n)
			}
			if s.texts(prompts.BudgetNotice) != 1 || s.texts(prompts.WrapUpNotice) > 1 {
				t.Fatalf("session %d got %d notices of the end, and %d that it is near", i, s.texts(prompts.BudgetNotice), s.texts(prompts.WrapUpNotice))
			}
			s.client.expect(t, "session.ending", "audio.start", "audio.end", "session.ended budget")
			s.client.ended(t, 4029)
		}
		if used > 1000+4*100 {
			t.Errorf("%d micro-dollars of 1000 were spent before the farewells", used)
		}
		for name, st := range map[string]*counted{"a": a, "b": b} {
			c := st.connect(adaStarts)
			synctest.Wait()
			if received := c.last(t, "error"); received["code"] != "budget" || received["until"] == nil || c.code != 4029 {
				t.Errorf("%s admits ada, or gives no reason: %v, %d", name, received, c.code)
			}
			other := st.connect(strings.Replace(adaStarts, "ada", "bob", 1))
			st.fake.Accept(t)
			synctest.Wait()
			if other.isOver() {
				t.Errorf("%s does not admit bob", name)
			}
		}
	})
}

// TestSessionCost: a session ends politely at its own cost limit. The audit has its cost, and a client that inspects
// gets the cost of each turn.
func TestSessionCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted(t, storetest.NewUsage(), "a", orchestrator.Policy{MaxCost: 1000}, auth.Limits{})
		c := st.enter(startWith(`,"inspect":true,"client":{"id":"ada"}`), func(a *Admission) {
			a.Principal = auth.Principal{Kind: auth.KindKey, ID: "key:1", Scopes: auth.ScopeInspect | auth.ScopeVoice | auth.ScopeTickets}
		})
		s := &spender{t: t, client: c, model: st.fake.Accept(t)}
		for i, tokens := range []int64{799, 1, 150, 50} {
			if !s.asks() {
				t.Fatalf("turn %d is not answered", i)
			}
			s.answer(tokens)
			if near := s.texts(prompts.WrapUpNotice) == 1; near != (i > 0) {
				t.Fatalf("after turn %d the model got the notice of the near end: %v", i, near)
			}
			if i == 1 {
				s.answer(0) // the model says so
			}
		}
		if usage, _ := s.client.last(t, "turn.ended")["usage"].(map[string]any); usage == nil || fmt.Sprint(usage["cost"]) != "map[usd_micros:50]" {
			t.Errorf("the client got %v", usage)
		}
		s.answer(7)
		s.client.ended(t, 4029)
		synctest.Wait()
		records := st.records()
		if len(records) != 1 {
			t.Fatalf("%d records", len(records))
		}
		r := records[0]
		if r.Event != audit.EventSessionCost || r.Spent.Micros != 1007 || r.Spent.Turns != 6 || r.Spent.Tokens.OutputText != 1007 || r.Prices != "2026-11-25" || r.Why != "budget" || r.UserID != "ada" || r.KeyID != "key:1" || r.DurationMS == 0 {
			t.Errorf("%+v, %+v", r, r.Spent)
		}
		days, _, err := st.meter.Report(context.Background(), meter.Filter{User: "ada", Key: "key:1", First: time.Now(), Last: time.Now()})
		if err != nil || len(days) != 1 || days[0].Micros != 1007 || days[0].Turns != 6 || days[0].Sessions != 1 || days[0].VoiceMS != r.DurationMS {
			t.Errorf("%v: %+v", err, days)
		}
	})
}

// TestUnpricedIsNotFree: usage of a model without a price is counted as unpriced, and ends no session.
func TestUnpricedIsNotFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted(t, storetest.NewUsage(), "a", orchestrator.Policy{MaxCost: 1}, auth.Limits{CostPerDay: 0.000001})
		st.m.options().Prices = prices(t, "another")
		s := st.adaSpeaks(t, adaStarts)
		for range 3 {
			if !s.asks() {
				t.Fatal("the session has ended")
			}
			s.answer(1000)
		}
		if _, ok := s.client.last(t, "turn.ended")["usage"].(map[string]any)["cost"]; ok {
			t.Error("a client that does not inspect gets the cost of a turn")
		}
		s.client.say(`{"type":"session.end"}`)
		synctest.Wait()
		if r := st.records(); len(r) != 1 || r[0].Spent.Micros != 0 || r[0].Spent.Unpriced != 3 {
			t.Errorf("%+v", r)
		}
	})
}

// TestSessionsOfAUser: a user may have only so many sessions at once, and a new one when another has ended.
func TestSessionsOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted(t, storetest.NewUsage(), "a", orchestrator.Policy{}, auth.Limits{Sessions: 1})
		s := st.adaSpeaks(t, adaStarts)
		c := st.connect(adaStarts)
		synctest.Wait()
		c.expect(t, "error limit")
		c.ended(t, 4029)
		s.client.say(`{"type":"session.end"}`)
		synctest.Wait()
		if st.adaSpeaks(t, adaStarts).client.isOver() {
			t.Error("the place was not released")
		}
	})
}

// TestSessionHasOneCost: usage after the last turn is included in the list, the inspect messages, the metrics, the
// report of the end, and the conversation.
func TestSessionHasOneCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk, received := &keepsDesk{}, new(ends)
		var metered cost.Micros
		st := newStage(t, hearing, func(o *Options) {
			received.into(o, prices(t, "fake-model"))
			o.Handoffs = desk
			o.Observe = func(string, string) func(Event) {
				return func(e Event) {
					if c, ok := e.(Charged); ok {
						metered += c.Cost
					}
				}
			}
			if fake, ok := o.Transports["fake"].(*fakeModel); ok {
				fake.Info.Model = "fake-model"
			}
		})
		c := st.enter(startWith(`,"inspect":true,"conversation_id":"conv_1","client":{"id":"ada"}`), func(a *Admission) { a.Principal.Scopes = auth.ScopeInspect | auth.ScopeVoice })
		s := &spender{t: t, client: c, model: st.fake.Accept(t)}
		s.client.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		s.answer(100)
		s.model.Emit(transport.Usage{Tokens: transport.Tokens{Output: 7, OutputText: 7}})
		synctest.Wait()
		if got := st.m.Sessions()[0].Cost.Micros; got != 107 {
			t.Errorf("the list has %d", got)
		}
		if shown := c.last(t, "inspect.state")["cost"].(map[string]any); shown["usd_micros"] != 107. {
			t.Errorf("the client got %v", shown)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		pass(5 * time.Second)
		synctest.Wait()
		over, _ := received.list()
		if len(over) != 1 || over[0].CostUSDMicros != 107 {
			t.Errorf("the report of the end is %+v", over)
		}
		if metered != 107 {
			t.Errorf("the metrics have %d", metered)
		}
		kept := conversation.New("c-1", "ada", "", time.Now())
		kept.Join(time.Now(), desk.last.Entries...)
		if got := kept.Digest().CostUSDMicros; got != 107 {
			t.Errorf("the conversation has %d", got)
		}
	})
}

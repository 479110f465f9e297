package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/internal/webhook"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport"
)

// ends are the ended sessions that a node has reported.
type ends struct {
	mu    sync.Mutex
	over  []webhook.Session
	costs []audit.Record
}

func (e *ends) of(t *testing.T) func(o *Options) {
	table := prices(t, "fake-model")
	return func(o *Options) { e.into(o, table) }
}

func (e *ends) into(o *Options, table *cost.Table) {
	o.Prices = table
	o.Lifecycle = func(_ string, _ time.Time, l webhook.Session) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.End != nil {
			e.over = append(e.over, l)
		}
	}
	o.Audit = func(r audit.Record) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if r.Event == audit.EventSessionCost {
			e.costs = append(e.costs, r)
		}
	}
}

func (e *ends) list() ([]webhook.Session, []audit.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over, e.costs
}

// watches runs EndLost of a node until the test ends.
func watches(t *testing.T, st *stage) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { st.m.EndLost(t.Context()) })
	t.Cleanup(running.Wait)
}

// TestLostSessionEnds: the node of a session dies, and its client does not return. After the resume time any remaining
// node, or a restarted single gateway, ends the session and reports its usage; the token becomes invalid.
func TestLostSessionEnds(t *testing.T) {
	for name, left := range map[string][]string{"two are left": {"b", "c"}, "the next start": {"b"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r, model := beginsAt(t, f.stage(t, "a", remembering, new(ends).of(t)))
				r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
				synctest.Wait()
				model.Emit(transport.Usage{Tokens: transport.Tokens{Input: 70, Output: 7, InputText: 70, OutputText: 7}})
				answers(r.conn, model, "r1", "a1", "In Vienna.")
				r.read(-1)
				began := f.record(r.id).StartedAt
				f.kill("a")
				r.lose()

				received := new(ends)
				for _, id := range left {
					watches(t, f.stage(t, id, remembering, received.of(t)))
				}
				pass(29 * time.Second)
				if over, _ := received.list(); len(over) != 0 || f.record(r.id).State == store.SessionOver {
					t.Fatalf("the session was ended while its client could resume: %+v", over)
				}
				pass(15 * time.Second)
				if rec := f.record(r.id); rec.ID != "" {
					t.Errorf("the record is %+v", rec)
				}
				over, costs := received.list()
				if len(over) != 1 || over[0].SessionID != r.id || over[0].Reason != "client_gone" || over[0].Turns != 1 || over[0].StartedAt != webhook.Time(began) {
					t.Errorf("the reported end is %+v", over)
				}
				if len(costs) != 1 || costs[0].SessionID != r.id || costs[0].Spent.Tokens.InputText != 70 {
					t.Errorf("the audit has %+v", costs)
				}
				r.st = f.stage(t, "d", remembering, nil)
				r.comeBack(r.position())
				r.conn.ended(t, protocol.CloseTicket)
			})
		})
	}
}

// TestLostSessionIsResumed: the client of a lost session resumes in time, and the node that looks for lost sessions
// does not end it.
func TestLostSessionIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		f.kill("a")
		received := new(ends)
		b := f.stage(t, "b", remembering, received.of(t))
		watches(t, b)
		pass(25 * time.Second)
		r.st = b
		r.comeBack(r.position())
		r.st.fake.Accept(t)
		pass(2 * time.Minute)
		if over, _ := received.list(); len(over) != 0 || f.record(r.id).State != store.SessionLive || !b.m.Runs(r.id) {
			t.Errorf("the session was ended: %+v, its record is %+v", over, f.record(r.id))
		}
	})
}

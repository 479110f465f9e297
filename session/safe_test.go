package session

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/store"
)

// started returns the number of session.started messages that the attachment has received.
func (r *returning) started() int { return r.conn.count("session.started") }

// TestTokensAreSafe (S6): a client gets a token only when another process would accept it: at the start, after a
// takeover, and after two quick resumes. It can then resume whenever the gateway dies.
func TestTokensAreSafe(t *testing.T) {
	for name, get := range map[string]func(t *testing.T, f *shelf, a *stage) *returning{
		"a new session": func(t *testing.T, f *shelf, a *stage) *returning {
			f.leave()
			r, _ := beginsAt(t, a)
			return r
		},
		"a takeover": func(t *testing.T, f *shelf, a *stage) *returning {
			r, _ := beginsAt(t, f.stage(t, "before", remembering, nil))
			f.kill("before")
			f.leave()
			r.st = a
			r.comeBack("")
			return r
		},
		"the second resume": func(t *testing.T, f *shelf, a *stage) *returning {
			r, _ := beginsAt(t, a)
			f.leave()
			r.lose()
			r.comeBack("") // with the token that was the next one
			r.read(-1)
			if r.started() != 1 {
				t.Error("the client waits although its token is safe")
			}
			r.lose()
			r.comeBack("")
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r := get(t, f, f.stage(t, "a", remembering, nil))
				pass(safeTime / 2)
				if r.started() != 0 {
					t.Error("the client has an unsafe token")
				}
				f.heal()
				synctest.Wait()
				if r.started() != 1 {
					t.Fatalf("the client got %q", r.conn.log())
				}
				f.kill("a")
				r.read(-1)
				r.st = f.stage(t, "b", remembering, nil)
				r.comeBack("")
				r.read(-1)
				if n := len(r.resumed); r.started() != 1 || !r.resumed[n-1] {
					t.Errorf("after its gateway has died the client got %q", r.conn.log())
				}
			})
		})
	}
}

// TestBeginsWithoutAStore: without a reachable store a session still begins, and no message of the client is lost.
func TestBeginsWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		f.leave()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		pass(safeTime / 2)
		if r.started() != 0 {
			t.Error("the client did not wait for the store")
		}
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		pass(safeTime)
		r.conn.expect(t, "session.started", "turn.started", "audio.start a1", "turn.ended completed")
		r.read(-1)
		r.lose()
		r.comeBack(r.position())
		pass(safeTime)
		synctest.Wait()
		r.read(-1)
		if r.started() != 1 {
			t.Errorf("the client got %q", r.conn.log())
		}
		f.heal()
	})
}

// TestEndWaitsForNoStore: a session that ends before its client has its token reports the end immediately.
func TestEndWaitsForNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		f.leave()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		s := r.st.only()
		began := time.Now()
		s.end(causeOperator)
		<-s.left
		r.conn.expect(t, "session.started", "session.ended "+causeOperator.Reason)
		if took := time.Since(began); took >= safeTime {
			t.Errorf("its end took %v", took)
		}
		f.heal()
	})
}

// TestEarlyMessageConfirmsNothing: a client that sends messages before its session.started has no new token, and can
// resume with the old one.
func TestEarlyMessageConfirmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		f.leave()
		for range 2 {
			r.lose()
			r.comeBack("")
			r.read(-1)
		}
		r.conn.say(`{"type":"ping","t":1}`) // without the third token
		synctest.Wait()
		r.lose()
		r.comeBack("")
		f.heal()
		synctest.Wait()
		r.read(-1)
		if r.started() != 1 {
			t.Errorf("the client got %q", r.conn.log())
		}
	})
}

// TestQuestionSurvivesTwoNodes (S5): a question is repeated to the client, and can be answered, although the next
// gateway dies as well before any change.
func TestQuestionSurvivesTwoNodes(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		token := n.asksToPay(c, model, "u1")
		r := n.back(t, c)
		n.shelf.mu.Lock()
		n.shelf.late = true // only saved checkpoints are written
		n.shelf.mu.Unlock()
		for _, node := range []string{"b", "c", "d"} {
			r.read(-1)
			n.shelf.kill(map[string]string{"b": "a", "c": "b", "d": "c"}[node])
			r.st = n.node(t, node)
			r.comeBack(r.position())
			r.read(-1)
			if r.conn.count("confirmation.request") != 1 {
				t.Fatalf("on node %s the client got %q", node, r.conn.log())
			}
			r.lose()
			r.comeBack(r.position()) // its token is the next one
		}
		r.st.fake.Accept(t)
		resolve(r.conn, token, true)
		synctest.Wait()
		n.once(t)
	})
}

// TestOneWriteAtTheBeginning: the first record of a session contains its tokens.
func TestOneWriteAtTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		var first store.SessionRecord
		beginsAt(t, f.stage(t, "a", remembering, func(o *Options) { o.Cluster = firstRecord{o.Cluster, &first} }))
		if len(first.TokenHashes) != 2 || slices.Contains(first.TokenHashes, "") {
			t.Errorf("the first record is %+v", first)
		}
	})
}

// firstRecord captures the first record of a session.
type firstRecord struct {
	Cluster
	is *store.SessionRecord
}

func (c firstRecord) Enter(r store.SessionRecord) Place {
	*c.is = r
	return c.Cluster.Enter(r)
}

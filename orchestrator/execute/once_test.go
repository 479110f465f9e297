package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/registry"
	"voicegw/store"
	"voicegw/store/storetest"
)

// TestReservedBeforeDone: the ledger entry is written before the handler begins, with the process and its time limit,
// and the answer is written before it is reported.
func TestReservedBeforeDone(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var log []string
		f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
			pass(time.Millisecond)
			log = append(log, string(op))
			return nil
		}
		j := f.job("c1", "book", `{"name":"ada","time":"9:00"}`)
		name := actionKey(j, registry.Session{ID: "s1", UserID: "ada"})
		f.do = func(context.Context, call) (registry.Result, error) {
			e, ok := f.ledger.Entry(name)
			if want := time.Now().Add(65 * time.Second); !ok || e.State != store.Pending || e.Session != "s1" || e.Call != "c1" || e.Turn != 1 || e.Tool != "book" || !e.LeaseUntil.Equal(want) {
				t.Errorf("while it runs the ledger has %+v, %t", e, ok)
			}
			log = append(log, "done")
			return registry.Result{Data: map[string]string{"id": "b1"}}, nil
		}
		env := f.run(f.talk("s1", "ada"), j)
		if want := []string{"reserve", "done", "finish"}; !env.OK || !slices.Equal(log, want) {
			t.Errorf("%v and %+v, want %v", log, env, want)
		}
		if e := f.ledger.Entries()[0]; e.State != store.Done || !strings.Contains(string(e.Envelope), `"b1"`) {
			t.Errorf("the ledger has %+v", e)
		}
	})
}

// TestReadersLeaveNoEntry: only writing tools leave an entry.
func TestReadersLeaveNoEntry(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		if env := f.run(f.talk("s1", "ada"), f.job("c1", "look", `{}`)); !env.OK || len(f.ledger.Entries()) != 0 {
			t.Errorf("%+v and %v", env, f.ledger.Entries())
		}
	})
}

// TestDoneIsNotDoneAgain: a repeat gets the stored answer, with a mark and its turn, also in another session of the
// same user; another user's action is different.
func TestDoneIsNotDoneAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		n := 0
		f.do = func(context.Context, call) (registry.Result, error) {
			n++
			return registry.Result{Data: n, Intents: []registry.Intent{registry.SuppressAudio(true)}}, nil
		}
		const args = `{"name":"ada","time":"9:00"}`
		first := f.job("c1", "book", args)
		first.Turn = 3
		f.run(f.talk("s1", "ada"), first)
		later := f.job("c7", "book", args)
		later.Turn = 9
		env := f.run(f.talk("s2", "ada"), later)
		if !env.OK || string(env.Data) != "1" || !env.Meta.CacheHit || env.Meta.OriginalTurn != 3 || n != 1 {
			t.Errorf("%d times, answered %+v", n, env)
		}
		if env := f.run(f.talk("s3", "bob"), f.job("c1", "book", args)); env.Meta.CacheHit || string(env.Data) != "2" {
			t.Errorf("another user was answered %+v", env)
		}
		early := f.job("c1", "book", `{"name":"eve"}`)
		early.Turn = 0 // an entry from before turns were counted
		f.run(f.talk("s4", "ada"), early)
		if env := f.run(f.talk("s5", "ada"), f.job("c2", "book", `{"name":"eve"}`)); env.Meta.OriginalTurn != 1 {
			t.Errorf("the answer is of turn %d; the schema of envelopes knows none below 1", env.Meta.OriginalTurn)
		}
	})
}

// TestPendingIsNotBegunAgain: while the first process may still run the call, the model may ask again; after that the
// outcome is unknown, and the call is not repeated.
func TestPendingIsNotBegunAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		after     time.Duration
		retryable bool
	}{"at work": {64 * time.Second, true}, "gone": {66 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
					if op == storetest.Finish {
						return store.ErrUnavailable // as if the process had died
					}
					return nil
				}
				const args = `{"name":"ada"}`
				if env := f.run(f.talk("s1", "ada"), f.job("c1", "book", args)); !env.OK {
					t.Errorf("a finished action is answered %+v", env)
				}
				if !f.log.has("not recorded") {
					t.Error("the log has nothing about an answer that was not saved")
				}
				pass(tc.after)
				env := f.run(f.talk("s2", "ada"), f.job("c1", "book", args))
				if !failed(env, registry.ErrorConflict) || !env.Error.PartialSideEffects || env.Error.Retryable != tc.retryable {
					t.Errorf("answered %+v", env.Error)
				}
				if got := f.ran(); len(got) != 1 {
					t.Errorf("done %d times", len(got))
				}
			})
		})
	}
}

// TestUnreadableAnswerIsNotDoneAgain: a stored answer that cannot be read does not cause a repeat.
func TestUnreadableAnswerIsNotDoneAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		j := f.job("c1", "book", `{"name":"ada"}`)
		name := actionKey(j, registry.Session{ID: "s1", UserID: "ada"})
		e, _, err := f.ledger.Reserve(t.Context(), store.Reservation{Key: name})
		if err := errors.Join(err, f.ledger.Finish(t.Context(), e, json.RawMessage(`"x"`))); err != nil {
			t.Fatal(err)
		}
		if env := f.run(f.talk("s1", "ada"), j); !failed(env, registry.ErrorConflict) || !env.Error.PartialSideEffects || len(f.ran()) != 0 || !f.log.has("is not readable") {
			t.Errorf("answered %+v", env)
		}
	})
}

// TestNotReservedIsNotBegun: when the ledger fails, the call does not run and the model may try again; then it runs.
func TestNotReservedIsNotBegun(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		down := true
		f.ledger.Before = func(context.Context, storetest.Op, string) error {
			if down {
				return fmt.Errorf("%w: no leader", store.ErrUnavailable)
			}
			return nil
		}
		c := f.talk("s1", "ada")
		env := f.run(c, f.job("c1", "book", `{}`))
		if !failed(env, registry.ErrorTransient) || !env.Error.Retryable || env.Error.PartialSideEffects || len(f.ran()) != 0 {
			t.Errorf("answered %+v after %v", env.Error, f.ran())
		}
		if strings.Contains(env.Error.Message, "leader") || !f.log.has("leader") {
			t.Error("the inner error belongs in the log, not in the answer")
		}
		down = false
		if env := f.run(c, f.job("c2", "book", `{}`)); !env.OK {
			t.Errorf("afterwards: %+v", env)
		}
	})
}

// TestLedgerThatHangs: a call waits at most five seconds for its entry. A cancel during the wait does not leave half
// an entry, and nothing begins.
func TestLedgerThatHangs(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		stuck := true
		f.ledger.Before = func(ctx context.Context, op storetest.Op, _ string) error {
			if op == storetest.Reserve && stuck {
				<-ctx.Done()
			} else if op == storetest.Reserve {
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Second):
				}
			}
			return ctx.Err()
		}
		c := f.talk("s1", "ada")
		began := time.Now()
		if env := f.run(c, f.job("c1", "wipe", `{}`)); !failed(env, registry.ErrorTransient) || time.Since(began) != 5*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), env)
		}
		stuck = false
		c.Run(f.job("c2", "wipe", `{}`))
		pass(time.Second)
		c.Cancel("c2")
		c.Wait()
		if env, _ := f.answer("s1", "c2"); !failed(env, registry.ErrorInternal) || env.Error.PartialSideEffects || len(f.ran()) != 0 {
			t.Errorf("stopped: %+v after %v", env.Error, f.ran())
		}
		if all := f.ledger.Entries(); len(all) != 0 {
			t.Errorf("an entry of a call that never began: %+v", all)
		}
	})
}

// TestFailures: a call that certainly changed nothing is released and may run again; one that may have written stays
// reserved, whatever its error.
func TestFailures(t *testing.T) {
	fail := func(err error) handler {
		return func(context.Context, call) (registry.Result, error) { return registry.Result{}, err }
	}
	for name, tc := range map[string]struct {
		do       handler
		want     registry.ErrorType
		released bool
	}{
		"refused":                 {fail(registry.Errorf(registry.ErrorPermanent, "No.")), registry.ErrorPermanent, true},
		"for now":                 {fail(registry.Errorf(registry.ErrorTransient, "Later.")), registry.ErrorTransient, true},
		"in part":                 {fail(&registry.ToolError{Type: registry.ErrorTransient, Message: "Half.", PartialSideEffects: true}), registry.ErrorTransient, false},
		"in part, but repeatable": {fail(&registry.ToolError{Type: registry.ErrorTransient, Message: "Half.", PartialSideEffects: true, Repeatable: true}), registry.ErrorTransient, true},
		"unexpected":              {fail(errors.New("what?")), registry.ErrorInternal, false},
		"panic":                   {func(context.Context, call) (registry.Result, error) { panic("oh") }, registry.ErrorInternal, false},
		"timed out, heeding its context": {func(ctx context.Context, _ call) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		}, registry.ErrorTransient, false},
		"timed out, with its own error": {func(ctx context.Context, _ call) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, errors.New("gave up")
		}, registry.ErrorTransient, false},
		"its request timed out": {fail(fmt.Errorf("booking: %w", os.ErrDeadlineExceeded)), registry.ErrorTransient, false},
		"an answer too big": {func(context.Context, call) (registry.Result, error) {
			return registry.Result{Data: strings.Repeat("x", 2<<20)}, nil
		}, registry.ErrorInternal, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.do = tc.do
				c := f.talk("s1", "ada")
				env := f.run(c, f.job("c1", "book", `{}`))
				if !failed(env, tc.want) || env.Error.PartialSideEffects == tc.released && !env.Error.Repeatable {
					t.Errorf("answered %+v", env.Error)
				}
				synctest.Wait() // for an abandoned handler
				f.do = nil
				env = f.run(c, f.job("c2", "book", `{}`))
				if env.OK != tc.released || len(f.ran()) != map[bool]int{true: 2, false: 1}[tc.released] {
					t.Errorf("again: %+v after %d runs", env, len(f.ran()))
				}
				if tc.released {
					return
				}
				if state := f.only(); state != "pending" || !failed(env, registry.ErrorConflict) || !env.Error.PartialSideEffects {
					t.Errorf("the entry is %s, and the answer %+v", state, env.Error)
				}
			})
		})
	}
}

// TestAbandonedCallStaysReserved: an abandoned handler may still write.
func TestAbandonedCallStaysReserved(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		g := make(chan struct{})
		f.do = func(context.Context, call) (registry.Result, error) { <-g; return registry.Result{}, nil }
		c := f.talk("s1", "ada")
		if env := f.run(c, f.job("c1", "book", `{}`)); !failed(env, registry.ErrorTransient) || !env.Error.PartialSideEffects {
			t.Errorf("answered %+v", env)
		}
		close(g)
		synctest.Wait()
		if env := f.run(c, f.job("c2", "book", `{}`)); !failed(env, registry.ErrorConflict) || f.only() != "pending" || len(f.ran()) != 1 {
			t.Errorf("again: %+v", env)
		}
	})
}

// TestTooLongAnswerIsKeptShort: the caller gets it whole; a repeat learns only that it was done.
func TestTooLongAnswerIsKeptShort(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.ledger.MaxEnvelope = 1000
		f.do = func(context.Context, call) (registry.Result, error) {
			return registry.Result{Data: strings.Repeat("x", 1000)}, nil
		}
		c := f.talk("s1", "ada")
		if env := f.run(c, f.job("c1", "book", `{}`)); !env.OK || len(env.Data) != 1002 {
			t.Errorf("answered %+v", env)
		}
		env := f.run(c, f.job("c2", "book", `{}`))
		if !env.OK || !env.Meta.CacheHit || !strings.Contains(string(env.Data), "too long to be kept") || len(f.ran()) != 1 {
			t.Errorf("again: %+v", env)
		}
	})
}

// TestReleaseThatFails: the failure is logged, and the action does not begin again.
func TestReleaseThatFails(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
			if op == storetest.Release {
				return store.ErrUnavailable
			}
			return nil
		}
		f.do = func(context.Context, call) (registry.Result, error) {
			return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "No.")
		}
		c := f.talk("s1", "ada")
		if env := f.run(c, f.job("c1", "book", `{}`)); !failed(env, registry.ErrorPermanent) || !f.log.has("not recorded") {
			t.Errorf("answered %+v", env)
		}
		if env := f.run(c, f.job("c2", "book", `{}`)); !failed(env, registry.ErrorConflict) {
			t.Errorf("again: %+v", env)
		}
	})
}

// TestOutcomeIsRecordedAfterTheEnd: the outcome is recorded even if the conversation or the gateway ends.
func TestOutcomeIsRecordedAfterTheEnd(t *testing.T) {
	bubble(t, Options{Grace: time.Second}, func(t *testing.T, f *fixture) {
		g := make(chan struct{})
		f.do = func(context.Context, call) (registry.Result, error) { <-g; return registry.Result{}, nil }
		c := f.talk("s1", "ada")
		c.Run(f.job("c1", "book", `{}`))
		synctest.Wait()
		c.End()
		f.ledger.Before = func(ctx context.Context, _ storetest.Op, _ string) error { pass(3 * time.Second); return ctx.Err() }
		close(g)
		f.e.Close()
		c.Wait()
		if state := f.only(); state != "done" {
			t.Errorf("the entry is %s", state)
		}
	})
}

// TestNoLedger: without a ledger, writing tools are refused and reading ones work.
func TestNoLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		f.e.opts.Ledger = nil
		c := f.talk("s1", "ada")
		if env := f.run(c, f.job("c1", "book", `{}`)); !failed(env, registry.ErrorPermanent) || len(f.ran()) != 0 {
			t.Errorf("answered %+v", env)
		}
		if env := f.run(c, f.job("c2", "look", `{}`)); !env.OK {
			t.Errorf("answered %+v", env)
		}
	})
}

// TestRacingCalls is invariant 3: 64 sessions request the same action at once, and it runs once; each other session
// gets its answer or learns that it is running.
func TestRacingCalls(t *testing.T) {
	for name, takes := range map[string]time.Duration{"quick": 0, "slow": time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				var n atomic.Int64
				f.do = func(context.Context, call) (registry.Result, error) {
					pass(takes)
					return registry.Result{Data: n.Add(1)}, nil
				}
				var all sync.WaitGroup
				var fresh, repeated, at atomic.Int64
				for i := range 64 {
					c := f.talk(fmt.Sprintf("s%d", i), "ada")
					j := f.job("c1", "book", `{"name":"ada","time":"9:00"}`)
					all.Go(func() {
						c.Run(j)
						c.Wait()
						switch env, _ := f.answer(fmt.Sprintf("s%d", i), "c1"); {
						case env.OK && !env.Meta.CacheHit:
							fresh.Add(1)
						case env.OK:
							repeated.Add(1)
						case failed(env, registry.ErrorConflict) && env.Error.Retryable:
							at.Add(1)
						default:
							t.Errorf("answered %+v", env)
						}
					})
				}
				all.Wait()
				if n.Load() != 1 || fresh.Load() != 1 || repeated.Load()+at.Load() != 63 {
					t.Errorf("done %d times: %d fresh, %d repeated, %d running", n.Load(), fresh.Load(), repeated.Load(), at.Load())
				}
				if env := f.run(f.talk("later", "ada"), f.job("c1", "book", `{"name":"ada","time":"9:00"}`)); !env.OK || string(env.Data) != "1" {
					t.Errorf("later: %+v", env)
				}
			})
		})
	}
}

package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"voicegw/orchestrator/execute"
	"voicegw/session/handoff"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// deaf is a provider that ignores the context of Connect, or Close, until it is released.
type deaf struct {
	*fakeModel
	release          chan struct{}
	connects, closes bool // which of both it ignores
}

func (d *deaf) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	if d.connects {
		<-d.release
	}
	c, err := d.fakeModel.Connect(ctx, setup)
	if err != nil || !d.closes {
		return c, err
	}
	return deafConn{c, d.release}, nil
}

type deafConn struct {
	transport.Conn
	release chan struct{}
}

func (c deafConn) Close() error {
	<-c.release
	return c.Conn.Close()
}

// TestDrainLeavesHanging: a provider, the store or a handback that never returns delays the exit by
// DrainRemainder at most, and the error names it.
func TestDrainLeavesHanging(t *testing.T) {
	const patience = 30 * time.Second
	for name, tc := range map[string]struct {
		connects, closes, store, handback, upgrade bool

		want LeftError
	}{
		"a client's upgrade": {upgrade: true, want: LeftError{Sessions: []LeftSession{{Phase: PhaseAdmitted}}}},
		"a provider that connects": {connects: true, want: LeftError{
			Sessions: []LeftSession{{ID: "voice-", Phase: PhaseOpening}},
		}},
		"a provider that is closed": {closes: true, want: LeftError{
			Sessions: []LeftSession{{ID: "voice-", Phase: PhaseEnding}},
		}},
		"a handback": {handback: true, want: LeftError{
			Sessions: []LeftSession{{ID: "voice-", Phase: PhaseSettling}},
		}},
		"the store": {store: true, want: LeftError{
			Sessions: []LeftSession{{ID: "voice-", Phase: PhaseSettling}},
			Tools:    []execute.Running{{Session: "voice-", Tool: "pay"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				provider := &deaf{fakeModel: newFakeModel(hearing), release: release, connects: tc.connects, closes: tc.closes}
				tl := newTill(t, func(o *Options) {
					o.Transports = map[string]transport.Transport{"fake": provider}
					if tc.handback {
						o.Handoffs = &stuckDesk{release: release}
					}
					if tc.store {
						o.Executor = execute.New(execute.Options{Ledger: &storetest.Ledger{}, Confirmations: &storetest.Confirmations{
							Before: func(context.Context, storetest.Op, string) error { <-release; return nil },
						}})
					}
				})
				free := func() {}
				if tc.upgrade {
					a, err := tl.m.Admit(someone, Coming{})
					if err != nil {
						t.Fatal(err)
					}
					free = a.Release
				} else {
					tl.connect(adaStart)
				}
				synctest.Wait()
				if tc.store || tc.handback {
					model := provider.Accept(t)
					synctest.Wait()
					tl.calls(model, "u1", "pay", `{"to":"Bob","amount":5}`)
				}
				ctx, cancel := contextWithTimeout(patience)
				defer cancel()
				began := time.Now()
				err := tl.m.Drain(ctx)
				expect := patience + DrainRemainder
				if tc.upgrade { // not yet a session, which could continue
					expect = DrainRemainder
				}
				if took := time.Since(began); took != expect {
					t.Errorf("it took %v, want %v", took, expect)
				}
				var left *LeftError
				if !errors.As(err, &left) {
					t.Fatalf("the drain ended with %v", err)
				}
				sameLeft(t, tc.want, *left)
				close(release)
				free()
				if err := tl.m.Drain(ctx); err != nil {
					t.Errorf("the second drain ended with %v", err)
				}
			})
		})
	}
}

// sameLeft compares the remaining sessions; ids are compared by their prefix.
func sameLeft(t *testing.T, want, got LeftError) {
	t.Helper()
	opts := []cmp.Option{
		cmpopts.IgnoreTypes(time.Time{}), cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b string) bool {
			return a == b || strings.HasPrefix(a, "voice-") && strings.HasPrefix(b, "voice-")
		}),
	}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// stuckDesk is a desk whose handbacks wait until release is closed.
type stuckDesk struct {
	counter
	release <-chan struct{}
}

func (d *stuckDesk) HandBack(context.Context, handoff.Part) error { <-d.release; return nil }

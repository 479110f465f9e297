package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
	"voicegw/transport"
)

// TestShortOutage: for a while every connection closes just after its setup. The session continues afterwards, at its
// start and in mid-call; with a second provider it soon continues there.
func TestShortOutage(t *testing.T) {
	for _, lasts := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
		for n := range 4 {
			fallback, midCall := n%2 == 1, n >= 2
			t.Run(fmt.Sprintf("%v, fallback %v, mid-call %v", lasts, fallback, midCall), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					other := newFakeModel(remembering)
					other.Provider = "other"
					st := newStage(t, remembering, func(o *Options) {
						if fallback {
							o.Transports["other"], o.Fallback = other, "other"
						}
					})
					c, model := st.started()
					if midCall {
						pass(time.Minute)
					}
					began := time.Now()
					model.FailRecv(broken())
					for time.Since(began) < lasts && (!fallback || other.Attempts() == 0) {
						pass(50 * time.Millisecond)
						synctest.Wait()
						if next := st.fake.Waiting(); next != nil {
							next.FailRecv(broken())
						}
					}
					if fallback {
						model = other.Accept(t)
						if took := time.Since(began); took > 2*time.Second {
							t.Errorf("the other provider took over after %v", took)
						}
					} else {
						model = st.fake.Accept(t)
					}
					synctest.Wait()
					if n := st.fake.Attempts(); n > 14 {
						t.Errorf("%d connections were requested", n)
					}
					c.say(`{"type":"input.text","text":"where is Ada"}`)
					synctest.Wait()
					answers(c, model, "r1", "a1", "In Vienna.")
					if c.isOver() || c.count("error") != 0 || c.count("turn.ended completed") != 1 {
						t.Errorf("the client got: %q", c.log())
					}
				})
			})
		}
	}
}

// TestEndlessOutage: a provider whose connections always close at once ends the session with an error for the user; so
// do two such providers.
func TestEndlessOutage(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindRetry, transport.KindExpired, transport.KindServer} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, remembering, nil)
			c, model := st.started()
			began := time.Now()
			model.FailRecv(scriptedError("recv", kind))
			for !c.isOver() && time.Since(began) < time.Minute {
				pass(50 * time.Millisecond)
				synctest.Wait()
				if next := st.fake.Waiting(); next != nil {
					next.FailRecv(scriptedError("recv", kind))
				}
			}
			if took := time.Since(began); took < 20*time.Second || took > 31*time.Second || st.fake.Attempts() > 14 {
				t.Errorf("%s: %d connections in %v", kind, st.fake.Attempts(), took)
			}
			c.expect(t, "provider.reconnecting", "error provider_lost")
		})
	}
}

// TestFirstConnectionHangs: after 4 s without an answer from a provider, the gateway tries again or uses another
// provider. The total wait remains the same.
func TestFirstConnectionHangs(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			other := newFakeModel(remembering)
			other.Provider = "other"
			st := newStage(t, remembering, func(o *Options) {
				if fallback {
					o.Transports["other"], o.Fallback = other, "other"
				}
			})
			defer st.fake.StallConnect()()
			c := st.connect(startText)
			pass(4100 * time.Millisecond)
			synctest.Wait()
			if fallback {
				other.Accept(t)
				c.expect(t, "session.started")
				if got := st.m.Sessions()[0].Provider; got != "other" {
					t.Errorf("the session is listed with %s", got)
				}
				return
			}
			if n := st.fake.Attempts(); n != 1 {
				t.Errorf("%d attempts after 4.1 s", n)
			}
			pass(6 * time.Second)
			synctest.Wait()
			if n := st.fake.Attempts(); n < 2 {
				t.Errorf("%d attempts", n)
			}
			c.expect(t, "error provider_unavailable")
			c.ended(t, protocol.CloseProviderUnavailable)
		})
	}
}

// TestRequestedPauseAtStart: the gateway respects the wait that a provider requests if the user can wait that long.
func TestRequestedPauseAtStart(t *testing.T) {
	for _, tt := range []struct {
		after    time.Duration
		attempts int
	}{{3 * time.Second, 2}, {time.Minute, 1}} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, remembering, nil)
			busy := scriptedError("dial", transport.KindRateLimit)
			busy.RetryAfter = tt.after
			st.fake.Refuse(1, busy)
			c := st.connect(startText)
			pass(2900 * time.Millisecond)
			synctest.Wait()
			if n := st.fake.Attempts(); n != 1 {
				t.Errorf("%d attempts before the time that the provider requested", n)
			}
			pass(time.Second)
			synctest.Wait()
			if n := st.fake.Attempts(); n != tt.attempts {
				t.Errorf("%d attempts, want %d", n, tt.attempts)
			}
			if tt.attempts == 1 {
				c.expect(t, "error provider_unavailable")
			} else {
				c.expect(t, "session.started")
			}
		})
	}
}

// TestRefusedSession: the client gets the error of the cause.
func TestRefusedSession(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuth, transport.KindQuota, transport.KindInvalid} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, remembering, nil)
			st.fake.Refuse(1, scriptedError("dial", kind))
			c := st.connect(startText)
			synctest.Wait()
			if m := c.last(t, "error"); m["message"] != kind.Failure().Words || m["retryable"] == true {
				t.Errorf("%s: the client got %v", kind, m)
			}
		})
	}
}

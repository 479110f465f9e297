package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// fails makes an answer of the model fail.
func fails(model *fakeConn, response string, kind transport.Kind, after time.Duration) {
	err := scriptedError("response", kind)
	err.RetryAfter = after
	model.Emit(transport.ResponseStarted{ID: response}, transport.ResponseDone{ID: response, Status: transport.ResponseFailed, Err: err})
	synctest.Wait()
}

// TestFailedAnswer: as the table of failures says for each cause, the answer is requested again, or another provider
// answers, or the user gets the reason. Each failure is counted.
func TestFailedAnswer(t *testing.T) {
	for _, kind := range transport.Kinds() {
		f := kind.Failure()
		if f.Code == "" {
			continue // not a cause of a failed answer
		}
		for _, fallback := range []bool{false, true} {
			t.Run(f.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					other := newFakeModel(remembering)
					other.Provider = "other"
					counted := 0
					st := newStage(t, remembering, func(o *Options) {
						if fallback {
							o.Transports["other"], o.Fallback = other, "other"
						}
						o.Observe = func(string, string) func(Event) {
							return func(e Event) {
								if e == (AnswerFailed{kind}) {
									counted++
								}
							}
						}
					})
					c, model := st.started()
					pass(time.Minute)
					c.say(`{"type":"input.text","text":"where is Ada"}`)
					synctest.Wait()
					fails(model, "r1", kind, 0)
					pass(time.Second)
					synctest.Wait()
					switch {
					case fallback && f.Elsewhere && (!f.Retry || kind == transport.KindTimeout):
						answers(c, other.Accept(t), "r1", "a1", "In Vienna.")
					case f.Retry:
						answers(c, model, "r2", "a2", "In Vienna.")
					default:
						if m := c.last(t, "error"); m["code"] != f.Code || m["message"] != f.Words || (m["retryable"] == true) != f.Later {
							t.Errorf("the client got %v", m)
						}
						c.expect(t, "turn.ended failed")
					}
					if f.Retry || fallback && f.Elsewhere {
						if c.count("error") != 0 || c.count("turn.ended completed") != 1 {
							t.Errorf("the client got: %q", c.log())
						}
					}
					if c.isOver() || counted != 1 {
						t.Errorf("over: %v, %d failures were counted", c.isOver(), counted)
					}
				})
			})
		}
	}
}

// TestFailedAnswersAgain: a provider whose answers fail repeatedly is replaced by another; without another, the user
// gets the cause and the wait that the provider requests.
func TestFailedAnswersAgain(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			other := newFakeModel(remembering)
			other.Provider = "other"
			st := newStage(t, remembering, func(o *Options) {
				if fallback {
					o.Transports["other"], o.Fallback = other, "other"
				}
			})
			c, model := st.started()
			c.say(`{"type":"input.text","text":"where is Ada"}`)
			synctest.Wait()
			fails(model, "r1", transport.KindServer, 0)
			pass(time.Second)
			fails(model, "r2", transport.KindRateLimit, time.Minute)
			if fallback {
				answers(c, other.Accept(t), "r1", "a1", "In Vienna.")
				c.expect(t, "provider.reconnecting", "turn.ended completed")
				return
			}
			if m := c.last(t, "error"); m["code"] != "provider_busy" || m["retryable"] != true || m["retry_after_ms"] != 60000.0 {
				t.Errorf("the client got %v", m)
			}
			if c.isOver() {
				t.Error("the session has ended")
			}
		})
	}
}

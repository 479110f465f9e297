package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/transport"
)

// TestUnsentRecords: the uplink reports each record whose command it drops at its end or refuses afterwards, once.
func TestUnsentRecords(t *testing.T) {
	u := newUplink(1000, 100, nil)
	var lost []string
	u.unsent = func(r *audit.Record) { lost = append(lost, r.CallID) }
	u.pushCommand(transport.Respond{}, nil)
	u.pushCommand(transport.ToolResult{}, &audit.Record{ToolCall: audit.ToolCall{CallID: "queued"}})
	u.close()
	u.pushCommand(transport.ToolResult{}, &audit.Record{ToolCall: audit.ToolCall{CallID: "late"}})
	u.close()
	if want := []string{"queued", "late"}; !slices.Equal(lost, want) {
		t.Errorf("%q are reported as not sent, want %q", lost, want)
	}
}

// seen is the answer of a retrieval tool: the ids of its evidence.
type seen []string

func (s seen) EvidenceIDs() []string { return s }

// TestDeliveredIsWritten: the audit records a result as delivered only after it was written to the model's connection.
func TestDeliveredIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		before func(model *fakeConn) (after func()) // runs before the tools answer; after writes the answers
		end    func(st *stage, c *testClient, model *fakeConn)
		want   bool
	}{
		"written": {want: true},
		"the write fails": {before: func(model *fakeConn) func() {
			model.FailSend(errors.New("broken pipe"))
			return nil
		}},
		"the result waits, and the client disconnects": {
			before: func(model *fakeConn) func() { return model.StallSend() },
			end:    func(_ *stage, c *testClient, _ *fakeConn) { c.Abort() },
		},
		"the result waits, and is written": {before: func(model *fakeConn) func() { return model.StallSend() }, want: true},
		"the result waits, and the client ends the session": {
			before: func(model *fakeConn) func() { return model.StallSend() },
			end:    func(_ *stage, c *testClient, _ *fakeConn) { c.say(`{"type":"session.end"}`) },
		},
		"the result waits, and the gateway shuts down": {
			before: func(model *fakeConn) func() { return model.StallSend() },
			end:    func(st *stage, _ *testClient, _ *fakeConn) { st.m.Close() },
		},
		"the result waits, and the model disconnects": {
			before: func(model *fakeConn) func() { return model.StallSend() },
			end: func(_ *stage, _ *testClient, model *fakeConn) {
				model.FailRecv(&transport.Error{Provider: "fake", Op: "recv", Kind: transport.KindRetry})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				audited := &records{}
				answer := make(chan struct{}) // the test closes it, then the tools answer
				st, _ := withTools(t, entry("look", "1.0.0"), func(context.Context) (registry.Result, error) {
					<-answer
					return registry.Result{Data: seen{"doc:lab"}}, nil
				}, false)
				st.m.options().Audit = audited.add
				client, model := st.started()
				asked(model, "look", "c1", "c2")
				var after func()
				if c.before != nil {
					after = c.before(model)
				}
				close(answer)
				synctest.Wait()
				if n := len(audited.byCall(t)); after != nil && n > 0 {
					t.Errorf("%d calls are audited before their answers are written", n)
				}
				if c.end != nil {
					c.end(st, client, model)
					synctest.Wait()
				}
				if after != nil {
					after()
				}
				pass(time.Minute)
				synctest.Wait()
				got := audited.byCall(t)
				if len(got) != 2 {
					t.Fatalf("%d of 2 calls are audited: %+v", len(got), got)
				}
				for id, r := range got {
					if r.Delivered != c.want || (r.NotDelivered == "") != c.want || !r.OK {
						t.Errorf("%s: delivered %t, %q", id, r.Delivered, r.NotDelivered)
					}
					if !slices.Equal(r.Evidence, []string{"doc:lab"}) {
						t.Errorf("%s: the evidence is %q", id, r.Evidence)
					}
				}
				if sent := len(results(t, model)); c.want && sent != 2 || !c.want && sent == 2 {
					t.Errorf("the model was sent %d answers", sent)
				}
			})
		})
	}
}

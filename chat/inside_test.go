package chat

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
)

// TestInside: a client that inspects a turn gets the arguments as they ran, the answer and the audit's line of each
// call, right after its end; other clients do not, even when they follow the same answer.
func TestInside(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			pass(40 * time.Millisecond)
			return registry.Result{Data: "found"}, nil
		}
		looks, other := make(chan *turnMessages, 1), make(chan *turnMessages, 1)
		ask := func(inside bool, out chan<- *turnMessages, steps ...step) {
			sent, err := f.respond(t.Context(), Request{ID: "m-1", Message: "Search", Inspect: true, Inside: inside}, steps...)
			if err != nil {
				t.Error(err)
			}
			out <- sent
		}
		go ask(true, looks, callsTools("1", "search", `{"name":"fonts"}`, "2", "search", `{"name":`), says("Here."))
		synctest.Wait()
		go ask(false, other)
		sent, less := <-looks, <-other
		if got := sent.types(); strings.Count(got, "tool.ended inspect.call") != 2 || strings.Count(got, "inspect.call") != 2 {
			t.Errorf("got: %s", got)
		}
		if got := less.types(); strings.Contains(got, "inspect") || !strings.Contains(got, "tool.ended") {
			t.Errorf("a client that does not inspect gets: %s", got)
		}
		for _, m := range of[*protocol.InspectCall](sent) {
			var record audit.Record
			if err := json.Unmarshal(m.Record, &record); err != nil || record.Args != nil || record.ToolID != "search" || record.CallID != m.CallID || record.ConversationID != "conv" || record.UserID != "ada" || record.SessionID != "chat-conv" {
				t.Errorf("the record is %s, %v", m.Record, err)
			}
			want, data, took := `{"name":"fonts","top_k":5}`, `"data":"found"`, int64(40)
			if m.CallID == "call_1_2" {
				want, data, took = `"{\"name\":"`, `"ok":false`, 0
			}
			if string(m.Args) != want || !strings.Contains(string(m.Envelope), data) || m.RunMS != took || m.Turn != 1 {
				t.Errorf("shown: %+v, args %s, envelope %s", m, m.Args, m.Envelope)
			}
		}
		// The stored answer does not have it.
		again, err := f.respond(t.Context(), Request{ID: "m-1", Message: "Search", Inspect: true, Inside: true})
		if err != nil || strings.Contains(again.types(), "inspect") || !strings.Contains(again.types(), "tool.ended") {
			t.Errorf("repeated: %s, %v", again.types(), err)
		}
	})
}

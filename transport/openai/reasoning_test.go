package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// TestReasoningModel: a model is thinking from an item of reasoning on until the next item, or until the end of its
// response.
func TestReasoningModel(t *testing.T) {
	const item = `{"type":"response.output_item.added","event_id":"e","response_id":%q,"output_index":0,"item":{"id":"item_R","type":%q,"status":"in_progress"}}`
	busy, idle := transport.Interaction{InProgress: true}, transport.Interaction{}
	for name, then := range map[string][]string{"and speaks": {"reasoning", "message"}, "in two steps": {"reasoning", "reasoning", "message", "message"}, "and says nothing": {"reasoning"}, "not": {"message"}} {
		t.Run(name, func(t *testing.T) {
			conn, p := newServer(t).connect(transport.Setup{})
			p.Begin()
			want := []transport.Event{transport.ResponseStarted{ID: p.response}}
			thinks := false
			for _, kind := range then {
				p.send(item, p.response, kind)
				switch {
				case kind == "reasoning":
					want, thinks = append(want, busy), true
				case thinks:
					want, thinks = append(want, idle), false
				}
			}
			if thinks {
				want = append(want, idle)
			}
			want = append(want, transport.ResponseDone{ID: p.response, Status: transport.ResponseCompleted})
			p.finish("completed", "null")
			var got []transport.Event
			for len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
				if ev := recv(t, conn); !isUsage(ev) {
					got = append(got, ev)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func isUsage(ev transport.Event) bool { _, ok := ev.(transport.Usage); return ok }

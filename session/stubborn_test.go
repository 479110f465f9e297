package session

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// TestStubbornModel: a model that repeats a call for ten minutes with changing arguments and without words from the
// user causes only a few questions, whatever the answers, and however the model gets to its next answer.
func TestStubbornModel(t *testing.T) {
	wires := map[string]transport.Capabilities{
		"answers on request": hearing,
		"answers unasked":    {InterruptNotice: true, Cancel: true, ToolCancelNotice: true},
	}
	for wire, caps := range wires {
		for answer, most := range map[string]int{"denies": 3, "lets it expire": 3, "approves": 3} {
			t.Run(wire+", the user "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fake := newFakeModel(caps)
					tl := newTill(t, func(o *Options) { o.Transports["fake"] = fake })
					tl.fake = fake
					c, model := tl.talk()
					model.Emit(transport.InputCommitted{Item: "u1"})
					began := time.Now()
					rounds := 0
					for ; time.Since(began) < 10*time.Minute && !c.isOver(); rounds++ {
						id := fmt.Sprint("r", rounds)
						before := c.count("confirmation.request")
						model.Emit(transport.ResponseStarted{ID: id},
							transport.ToolCall{Call: "m" + id, ID: "call_of_" + id, Name: "pay", Args: json.RawMessage(fmt.Sprintf(`{"to":"Bob","amount":%d}`, rounds))},
							transport.ResponseDone{ID: id, Status: transport.ResponseCompleted})
						synctest.Wait()
						says(c, model, "a"+id)
						if c.count("confirmation.request") > before && answer != "lets it expire" {
							resolve(c, c.last(t, "confirmation.request")["token"].(string), answer == "approves")
						}
						pass(time.Second)
						synctest.Wait()
					}
					asked, paid := c.count("confirmation.request"), len(tl.payments())
					t.Logf("%d rounds, %d questions, %d payments, %d notices", rounds, asked, paid, len(userTexts(model)))
					if rounds < 100 || asked == 0 || asked > most || answer != "approves" && paid > 0 {
						t.Errorf("in %d rounds: %d questions to the user, %d payments", rounds, asked, paid)
					}
				})
			})
		}
	}
}

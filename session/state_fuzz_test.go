package session

import (
	"encoding/json"
	"testing"
	"time"

	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
)

// FuzzStoredState: a checkpoint of another version of the program is read, or refused with an error; a session that
// continues with it takes steps and can be stored again.
func FuzzStoredState(f *testing.F) {
	full, err := json.Marshal(savedState{
		State: orchestrator.Memory{
			Turn: 3, Gaps: 1, Open: &orchestrator.OpenTurn{Number: 3, Worded: true}, Phase: orchestrator.PhaseActive, Unanswered: true,
			Contexts: []string{"order 42"},
			Notices:  []orchestrator.Notice{{Text: "a notice"}},
			Answered: &orchestrator.OpenTurn{Number: 2}, Spoken: []orchestrator.SpokenItem{{Item: "a1", Turn: 3, MS: 4000, Ended: true, Seq: 9}},
			Calls: calls.Memory{
				Open:      []calls.OpenCall{{}},
				Questions: []calls.OpenQuestion{{Name: "n1", Turn: 2, Tool: "write"}},
			},
		},
		Questions: [][]byte{{1, 2, 3}}, Mark: "m", Transcripts: []*protocol.Transcript{{ID: "text_1", Text: "hello", Final: true}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	for _, text := range []string{
		``, `null`, `[]`, `{`, `{"transcripts":[null]}`, `{"state":{"turn":-5,"gaps":9}}`, `{"state":{"open":{"number":-1}}}`, `{"state":{"turn":1e99}}`,
		`{"state":{"turn":3,"answered":{"number":3},"spoken":[{"item":"a1","turn":3,"ms":-9},{"turn":3}]},"items":["x"],"draft":{}}`, `{"state":{"contexts":["","a",null,"c","d","e","f","g","h","i"]}}`, `{"state":{"phase":"of_the_future","notices":[{}]}}`, `{"questions":[null,""],"state":{"calls":{"open":[{}],"questions":[{}],"lost":[{}]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		was, err := readState(data)
		if err != nil {
			return
		}
		for _, said := range was.Transcripts {
			if said == nil {
				t.Error("a transcript is missing")
			}
		}
		unseal(was.State.Calls.Questions, was.Questions, "voice-1", "token")
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		s := orchestrator.NewState(remembering, orchestrator.NewRules(orchestrator.Policy{Relink: true, ResumeGrace: time.Minute}), nil, prompts.MarkOf(was.Mark), now)
		was.State, _ = was.State.Heard(orchestrator.Received{Item: "a1", MS: 1000, Seq: 10})
		s, _ = orchestrator.Step(s, now, orchestrator.Restored{Memory: was.State, StartedAt: now, Epoch: 2})
		s, _ = orchestrator.Step(s, now.Add(time.Second), orchestrator.UserText{Text: "hello"})
		s, _ = orchestrator.Step(s, now.Add(time.Minute), orchestrator.Tick{})
		if s.Turns() < 0 {
			t.Errorf("there are %d turns", s.Turns())
		}
		m := s.Memory()
		trim(&m)
		if _, err := json.Marshal(savedState{State: m, Transcripts: was.Transcripts}); err != nil {
			t.Errorf("it cannot be stored again: %v", err)
		}
	})
}

// FuzzSealedTokens: bytes that were not sealed here open nothing, and sealed bytes open completely.
func FuzzSealedTokens(f *testing.F) {
	asked := []calls.OpenQuestion{{Name: "n1", Token: "cf_secret"}}
	all, err := sealed(asked, "voice-1", []sealKey{keyOf("token")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all[0])
	f.Add([]byte{})
	f.Add(make([]byte, 12))
	f.Add(all[0][:len(all[0])-1])
	f.Fuzz(func(t *testing.T, one []byte) {
		bare := []calls.OpenQuestion{{Name: "n1"}}
		got := unseal(bare, [][]byte{nil, one}, "voice-1", "token")
		if len(got) > 1 || len(got) == 1 && got[0].Token != "cf_secret" {
			t.Errorf("%x opens %+v", one, got)
		}
		if known := unseal(bare, [][]byte{one}, "voice-1", "another"); known != nil {
			t.Errorf("%x opens %+v for another token", one, known)
		}
	})
}

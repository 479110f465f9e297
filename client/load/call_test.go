package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/protocol"
)

const ms1 = time.Millisecond

// TestSpokenTurn: the speech ends where the recording says, the gateway notices it 500 ms later and
// answers after another 300 ms. The figures match exactly.
func TestSpokenTurn(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) { g.ends(m, 1) })
	g.heard = func(g *gateway, n int) {
		// The microphone begins with the session, the recording 300 ms later with frame 15. Its speech ends after
		// 1100 ms: at 1400 ms, the end of frame 70.
		if n == 70 {
			g.after(500*ms1, func() {
				g.say(&protocol.SpeechStopped{Header: inTurn(1)})
				g.after(300*ms1, func() { g.answer(1, "", 2*time.Second) })
			})
		}
	}
	play(t, "turns: [{say: {recording: any}}]", g, func(s *scene, outcome Outcome) {
		s.ended(outcome, Done)
		s.took(report.Detection, 500)
		s.took(report.Answer, 300)
		s.took(report.FirstAudio, 800)
		s.took(report.FirstAudioSpoken, 800)
		s.counts(map[report.Counter]int64{
			report.Calls: 1, report.Sessions: 1, report.Turns: 1, report.Answered: 1, report.Early: 0, report.Items: 1,
			report.LostAudio: 0, report.StaleFrames: 0, report.PlayedMS: 2000, report.FramesDown: 1, report.LateFrames: 0,
		})
		if lag := s.c.Summary(report.SendLag); lag.Max != 0 || lag.Count != s.c.Count(report.FramesUp) {
			s.Errorf("send lag %v of %d", lag.Max, lag.Count)
		}
		// A frame every 20 ms to the end, on an absolute schedule.
		for i, at := range g.frames {
			if want := g.frames[0].Add(time.Duration(i) * 20 * ms1); at != want {
				s.Fatalf("frame %d was sent at %v, want %v", i+1, at, want)
			}
		}
		if from, to := g.loud[0], g.loud[len(g.loud)-1]; from != 21 || to != 70 || len(g.loud) != 50 {
			s.Errorf("the speech was in frames %d to %d (%d of them)", from, to, len(g.loud))
		}
	})
}

// TestPlaybackReports checks the playback reports, every 200 ms and at the end.
func TestPlaybackReports(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.answer(1, "", 500*ms1)
		}
		g.ends(m, 1)
	})
	play(t, "{microphone: false, turns: [{type: hello}]}", g, func(s *scene, outcome Outcome) {
		var got []int64
		for _, p := range g.reports() {
			got = append(got, p.PlayedMS)
			if p.Done != (len(got) == 3) || p.ItemID != "item_1" {
				s.Errorf("report %d is %+v", len(got), p)
			}
		}
		if len(got) != 3 || got[0] != 200 || got[1] != 400 || got[2] != 500 {
			s.Errorf("reported %v", got)
		}
		s.took(report.FirstAudioTyped, 0)
		if outcome != Done || len(g.frames) != 0 {
			s.Errorf("outcome %d, %d frames", outcome, len(g.frames))
		}
	})
}

// TestUnderruns: the second piece of an answer arrives 170 ms after the first has played. A large buffer
// bridges the gap; a small one does not.
func TestUnderruns(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
			g.sound(80 * ms1)
			g.after(80*ms1, func() { g.sound(100 * ms1) })
			g.after(330*ms1, func() {
				g.sound(200 * ms1)
				g.say(&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 380})
			})
		}
		g.ends(m, 1)
	})
	play(t, "{microphone: false, turns: [{type: hello}]}", g, func(s *scene, _ Outcome) {
		// With 60 ms it plays at once and is empty from 180 to 330 ms. With 100 ms it begins with the second piece,
		// at 80 ms, and is empty from 260 to 330 ms. With 200 ms it begins with the third.
		want := [3]struct {
			n   int64
			gap time.Duration
		}{{1, 150 * ms1}, {1, 70 * ms1}, {0, 0}}
		for i, w := range want {
			if got := s.report().Sound[i]; got.Underruns != w.n || got.GlitchMS != float64(w.gap.Milliseconds()) {
				s.Errorf("underruns: %+v, want %d of %v", got, w.n, w.gap)
			}
		}
		s.took(report.BufferNeeded, 150)
		if gaps := s.c.Summary(report.AudioGap); gaps.Count != 2 || gaps.Max != 250 {
			s.Errorf("gaps %+v", gaps)
		}
		if s.problems() != "" {
			s.Error(s.problems())
		}
	})
}

// TestEndOfAnswerIsNoUnderrun: an empty buffer counts only if more audio follows.
func TestEndOfAnswerIsNoUnderrun(t *testing.T) {
	turn := 0
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			turn++
			id := fmt.Sprint("item_", turn)
			g.say(&protocol.TurnStarted{Header: inTurn(turn)}, &protocol.AudioStart{Header: inTurn(turn), ItemID: id})
			g.sound(300 * ms1)
			g.after(700*ms1, func() { g.say(&protocol.AudioEnd{Header: inTurn(turn), ItemID: id, AudioMS: 300}) })
		}
		g.ends(m, turn)
	})
	play(t, "{microphone: false, turns: [{type: hello}, {type: hello again}]}", g, func(s *scene, outcome Outcome) {
		for _, sound := range s.report().Sound {
			if sound.Underruns != 0 || sound.GlitchMS != 0 {
				s.Errorf("%+v", sound)
			}
		}
		if outcome != Done {
			s.Error(s.problems())
		}
	})
}

// TestInterruption: the next turn begins 800 ms into the answer. The gateway notices after 100 ms and flushes after
// 150 ms, with one frame in between; a frame after the flush is stale.
func TestInterruption(t *testing.T) {
	g := newGateway(t, nil)
	g.on = func(g *gateway, m protocol.ClientMessage) {
		if text, ok := m.(*protocol.InputText); ok && text.Text == "hello" {
			g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
			g.sound(3 * time.Second)
		}
		g.ends(m, 2)
	}
	g.heard = func(g *gateway, n int) {
		if len(g.loud) != 1 || g.loud[0] != n {
			return
		}
		// The first voiced sample was spoken 20 ms ago, at the start of this frame.
		g.after(60*ms1, func() { g.sound(20 * ms1) })
		g.after(80*ms1, func() { g.say(&protocol.SpeechStarted{Header: inTurn(2)}) })
		g.after(130*ms1, func() {
			g.say(&protocol.AudioFlush{Header: inTurn(1), ItemID: "item_1", Reason: "user_speech"}, &protocol.TurnEnded{Header: inTurn(1), Status: "interrupted"})
			g.sound(20 * ms1)
		})
		g.after(2*time.Second, func() { g.answer(2, "", time.Second) })
	}
	play(t, "turns: [{type: hello}, {say: {recording: any}, interrupt_after: 800ms, expect: {flush_within: 140ms}}]", g, func(s *scene, outcome Outcome) {
		s.took(report.InterruptSeen, 100)
		s.took(report.Flush, 150)
		s.took(report.LastAudio, 80)
		s.counts(map[report.Counter]int64{
			report.Turns: 2, report.Answered: 1, report.Interrupted: 1, report.StaleFrames: 1, report.Items: 1, report.LostAudio: 0,
			report.MissedInterruptions: 0, report.Unmet: 1,
		})
		s.ended(outcome, Done,
			"turn 2: stale: a frame of 960 bytes belongs to no answer: it arrived after its flush or before its audio.start (line 1 of the script)",
			"turn 2: unmet: audio.flush arrived after 150ms; expected within 140ms (line 1 of the script)")
	})
}

// TestStopButton checks the time from the button to the flush.
func TestStopButton(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		switch m.(type) {
		case *protocol.InputText:
			g.answer(1, "", 3*time.Second)
		case *protocol.Interrupt:
			g.after(30*ms1, func() {
				g.say(&protocol.AudioFlush{Header: inTurn(1), ItemID: "item_1", Reason: "user_stop"}, &protocol.TurnEnded{Header: inTurn(1), Status: "interrupted"})
			})
		}
	})
	play(t, "{microphone: false, turns: [{type: hello}, {stop: true, interrupt_after: 500ms, expect: {flush_within: 100ms}}]}", g, func(s *scene, outcome Outcome) {
		s.took(report.Flush, 30)
		s.took(report.LastAudio, 0)
		reports := g.reports()
		if last := reports[len(reports)-1]; !last.Done || last.PlayedMS != 530 {
			s.Errorf("the flush was answered with %+v", last)
		}
		if got := first[*protocol.Interrupt](g).Sub(first[*protocol.InputText](g)); got != 500*ms1 {
			s.Errorf("it was pressed after %v", got)
		}
		s.ended(outcome, Done)
		s.counts(map[report.Counter]int64{report.Answered: 1, report.Interrupted: 1})
	})
}

// TestEndedAnswerIsNotInterrupted: if the answer has ended, the next turn follows it, and this is counted.
func TestEndedAnswerIsNotInterrupted(t *testing.T) {
	turn := 0
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			turn++
			g.answer(turn, "", 200*ms1)
		}
		g.ends(m, turn)
	})
	play(t, "{microphone: false, turns: [{type: a}, {stop: true, interrupt_after: 2s}, {type: b}, {type: c, interrupt_after: 2s}]}", g, func(s *scene, outcome Outcome) {
		s.counts(map[report.Counter]int64{report.Turns: 3, report.Answered: 3, report.Interrupted: 0, report.MissedInterruptions: 2})
		s.ended(outcome, Done)
	})
}

// TestStuckSessionIsReported: nothing more arrives; the caller reports the session and hangs up.
func TestStuckSessionIsReported(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if text, ok := m.(*protocol.InputText); ok && text.Text == "one" {
			g.answer(1, "", 100*ms1)
		}
		g.ends(m, 1)
	})
	play(t, "{microphone: false, patience: 5s, turns: [{type: one}, {type: two}, {type: three}]}", g, func(s *scene, outcome Outcome) {
		want := "turn 2: stuck: no answer began for 5s since the user stopped speaking (line 1 of the script)"
		if got := s.problems(); got != want {
			s.Errorf("got %s", got)
		}
		kept := s.report().Problems
		if kept[0].ID != "voice-1" || kept[0].Session != 7 {
			s.Errorf("it is %+v", kept[0])
		}
		s.counts(map[report.Counter]int64{report.Turns: 2, report.Answered: 1, report.Stuck: 1, report.Cut: 0})
		if outcome != Broken || first[*protocol.End](g).IsZero() {
			s.Errorf("outcome %d", outcome)
		}
	})
}

// TestLongRecordingIsNotStuck: the wait begins at the end of speech.
func TestLongRecordingIsNotStuck(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) { g.ends(m, 1) })
	g.heard = func(g *gateway, n int) {
		if n == 70 {
			g.after(900*ms1, func() { g.answer(1, "", 100*ms1) })
		}
	}
	play(t, "{patience: 1s, turns: [{say: {recording: any}}]}", g, func(s *scene, outcome Outcome) {
		s.ended(outcome, Done)
	})
}

// TestLosses: losses show in the audio's length and in seq.
func TestLosses(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
			g.sound(180 * ms1)
			g.seq += 2
			g.say(&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 200})
		}
		g.ends(m, 1)
	})
	play(t, "{microphone: false, turns: [{type: hello}]}", g, func(s *scene, outcome Outcome) {
		s.counts(map[report.Counter]int64{report.LostAudio: 1, report.LostMessages: 2, report.Items: 1})
		s.ended(outcome, Done, "turn 1: lost message: message 3 was followed by message 6 (line 1 of the script)",
			"turn 1: lost audio: audio.end says 200 ms of item_1, 180 ms came (line 1 of the script)")
	})
}

// TestAnswerDuringSpeech: the model answers during a pause. Only the answer after the end of speech counts.
func TestAnswerDuringSpeech(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) { g.ends(m, 2) })
	g.heard = func(g *gateway, n int) {
		switch n {
		case 40:
			g.answer(1, "", 100*ms1)
			g.say(&protocol.TurnEnded{Header: inTurn(1), Status: "completed"})
		case 70:
			g.after(700*ms1, func() { g.answer(2, "", 300*ms1) })
		}
	}
	play(t, "turns: [{say: {recording: any}}]", g, func(s *scene, outcome Outcome) {
		s.took(report.FirstAudio, 700)
		s.counts(map[report.Counter]int64{report.Early: 1, report.Answered: 1, report.Failed: 0})
		s.ended(outcome, Done)
	})
}

// TestOnlyAnEarlyAnswer: without another answer, the turn counts after a while.
func TestOnlyAnEarlyAnswer(t *testing.T) {
	g := newGateway(t, nil)
	g.heard = func(g *gateway, n int) {
		if n == 40 {
			g.answer(1, "", 100*ms1)
			g.say(&protocol.TurnEnded{Header: inTurn(1), Status: "completed"})
		}
	}
	play(t, "turns: [{say: {recording: any}}]", g, func(s *scene, outcome Outcome) {
		s.counts(map[report.Counter]int64{report.Early: 1, report.Answered: 1, report.Stuck: 0})
		if outcome != Done || s.c.Summary(report.FirstAudio).Count != 0 {
			s.Errorf("outcome %d\n%s", outcome, s.problems())
		}
	})
}

// TestPushToTalk: the client reports the end of speech, and the answer is measured from there.
func TestPushToTalk(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if a, ok := m.(*protocol.InputActivity); ok && !a.Active {
			g.say(&protocol.SpeechStopped{Header: inTurn(1)})
			g.after(300*ms1, func() { g.answer(1, "", 100*ms1) })
		}
		g.ends(m, 1)
	})
	play(t, "{push_to_talk: true, turns: [{say: {recording: any}}]}", g, func(s *scene, outcome Outcome) {
		s.took(report.Answer, 300)
		s.took(report.FirstAudio, 300)
		s.took(report.Detection, 0)
		if start := g.messages[0].msg.(*protocol.Start); start.TurnDetection != protocol.TurnDetectionClient {
			s.Errorf("it began with %+v", start)
		}
		if got := first[*protocol.InputActivity](g).Sub(g.frames[0]); got != 280*ms1 {
			s.Errorf("speech was announced %v after the first frame", got)
		}
		s.ended(outcome, Done)
	})
}

// TestApproval: an approval opens another turn, which belongs to the same turn of the script.
func TestApproval(t *testing.T) {
	for _, approve := range []string{"true", "false"} {
		t.Run(approve, func(t *testing.T) {
			g := newGateway(t, nil)
			g.on = func(g *gateway, m protocol.ClientMessage) {
				switch m := m.(type) {
				case *protocol.InputText:
					g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.ToolStarted{Header: inTurn(1), CallID: "call_1", Tool: "book"},
						&protocol.ConfirmationRequest{Header: inTurn(1), Token: "cf_1", Tool: "book", Args: []byte("{}")},
						&protocol.ToolEnded{Header: inTurn(1), CallID: "call_1", Tool: "book", Error: []byte(`{"type":"CONFIRMATION_REQUIRED"}`)})
					// The turn ends before the user has decided.
					g.after(20*ms1, func() {
						g.say(&protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
						g.sound(100 * ms1)
						g.say(&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 100})
					})
				case *protocol.ConfirmationResolve:
					outcome := "denied"
					if m.Approved {
						outcome = "approved"
					}
					g.say(&protocol.ConfirmationEnded{Header: inTurn(1), Token: "cf_1", Tool: "book", Outcome: outcome})
					g.answer(2, "It is booked.", 300*ms1)
				}
				g.ends(m, 1)
				g.ends(m, 2)
			}
			play(t, "{microphone: false, turns: [{type: book it, approve: "+approve+", expect: {asks: book, tool: book, text: booked}}]}", g, func(s *scene, outcome Outcome) {
				s.ended(outcome, Done)
				approved := map[string]int64{"true": 1}[approve]
				s.counts(map[report.Counter]int64{
					report.Questions: 1, report.Approvals: approved, report.Refusals: 1 - approved, report.Turns: 1, report.Answered: 1,
					report.ToolCalls: 1, report.ToolFailures: 0, report.Expectations: 3, report.Unmet: 0,
				})
				if got := first[*protocol.ConfirmationResolve](g).Sub(first[*protocol.InputText](g)); got != thinkTime {
					s.Errorf("it was answered after %v", got)
				}
			})
		})
	}
}

// TestAnswerEndsWhenHeard covers an answer that plays on after the end of its turn.
func TestAnswerEndsWhenHeard(t *testing.T) {
	for second, want := range map[string]time.Duration{"type: two": 2 * time.Second, "type: two, interrupt_after: 500ms": 500 * ms1} {
		turn := 0
		var at []time.Time
		g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
			if _, ok := m.(*protocol.InputText); ok {
				turn++
				at = append(at, time.Now())
				g.answer(turn, "", 2*time.Second)
				g.say(&protocol.TurnEnded{Header: inTurn(turn), Status: "completed"})
			}
		})
		play(t, "{microphone: false, pause: 0, turns: [{type: one}, {"+second+"}]}", g, func(s *scene, outcome Outcome) {
			if outcome != Done || len(at) != 2 || at[1].Sub(at[0]) != want {
				s.Errorf("%s: outcome %d, the turns were said at %v\n%s", second, outcome, at, s.problems())
			}
		})
	}
}

// TestGreetingIsNoAnswer: a greeting's words and tool calls belong to no turn of the script.
func TestGreetingIsNoAnswer(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		switch m.(type) {
		case *protocol.Start:
			g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
			g.sound(100 * ms1)
			g.say(&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 100}, &protocol.TurnEnded{Header: inTurn(1), Status: "completed"})
		case *protocol.InputText:
			g.say(&protocol.ToolStarted{Header: inTurn(1), CallID: "c", Tool: "late"}, &protocol.ToolEnded{Header: inTurn(1), CallID: "c", Tool: "late", OK: true},
				&protocol.Transcript{Header: inTurn(1), ID: "g", Role: "assistant", Text: "Welcome."})
			g.after(500*ms1, func() { g.answer(2, "Hello.", 100*ms1) })
		}
		g.ends(m, 2)
	})
	play(t, "{microphone: false, turns: [{type: hello, expect: {no_tool: any, no_text: welcome, text: hello}}]}", g, func(s *scene, outcome Outcome) {
		s.took(report.FirstAudio, 500)
		s.ended(outcome, Done)
	})
}

// TestGatewayDoesNotRead: a blocked write is the gateway's fault, not the generator's. Frames that are too old are
// dropped and counted.
func TestGatewayDoesNotRead(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.after(4*time.Second, func() { g.answer(1, "", 100*ms1) })
		}
		g.ends(m, 1)
	})
	g.stall = func(n int) time.Duration {
		if n == 30 {
			return 3 * time.Second
		}
		return 0
	}
	play(t, "turns: [{type: hello}]", g, func(s *scene, outcome Outcome) {
		if lag := s.c.Summary(report.SendLag); lag.Max != 0 {
			s.Errorf("send lag %v", lag.Max)
		}
		if block := s.c.Summary(report.SendBlock); block.Max != 3000 {
			s.Errorf("send time %v", block.Max)
		}
		// 3 s are 150 frames; the newest two are sent.
		s.counts(map[report.Counter]int64{report.FramesDropped: 148, report.LateFrames: 0})
		s.ended(outcome, Done)
	})
}

// TestEndlessWrite: the caller closes the connection and ends the call.
func TestEndlessWrite(t *testing.T) {
	g := newGateway(t, nil)
	g.stall = func(n int) time.Duration { return time.Duration(n/30) * time.Hour }
	play(t, "turns: [{type: hello}]", g, func(s *scene, outcome Outcome) {
		if outcome != Broken || !strings.Contains(s.problems(), "lost: the session ended: the connection broke") {
			s.Errorf("outcome %d\n%s", outcome, s.problems())
		}
		if took := time.Since(s.set.Began); took > 20*time.Second {
			s.Errorf("it took %v", took)
		}
	})
}

// TestHangingUp: the run stops during an answer; the caller says goodbye.
func TestHangingUp(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.answer(1, "", 20*time.Second)
		}
	})
	playSo(t, "{microphone: false, turns: [{type: hello, expect: {tool: x}}]}", g, how{stop: 2 * time.Second}, func(s *scene, outcome Outcome) {
		if took := time.Since(s.set.Began); outcome != Stopped || s.problems() != "" || took != 2*time.Second {
			s.Errorf("outcome %d after %v\n%s", outcome, took, s.problems())
		}
		s.counts(map[report.Counter]int64{report.Cut: 1, report.Answered: 0, report.Expectations: 0, report.Lost: 0})
		s.took(report.Goodbye, 0)
	})
}

// TestEndOfTime: no turn begins after the time; the running one is heard to its end. Until then the script repeats.
func TestEndOfTime(t *testing.T) {
	turn := 0
	var texts []string
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if text, ok := m.(*protocol.InputText); ok {
			turn++
			texts = append(texts, text.Text)
			g.answer(turn, "", time.Second)
		}
		g.ends(m, turn)
	})
	playSo(t, "{microphone: false, pause: 200ms, turns: [{type: 'a${pass}'}, {type: 'b${session}/${call}'}, {wait: 800ms}]}", g, how{until: 5 * time.Second}, func(s *scene, outcome Outcome) {
		if got := strings.Join(texts, " "); got != "a1 b7/1 a2 b7/1" || outcome != Done || s.problems() != "" {
			s.Errorf("outcome %d: said %s\n%s", outcome, got, s.problems())
		}
		// The silence between two answers is not a gap in the audio.
		for _, sound := range s.report().Sound {
			if sound.Underruns != 0 {
				s.Errorf("%+v", sound)
			}
		}
	})
}

// TestCallerHangsUp covers hanging up during an answer with a running tool. The call ends in order and the
// cut-off parts are counted as such.
func TestCallerHangsUp(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.answer(1, "", 20*time.Second)
			g.say(&protocol.ToolStarted{Header: inTurn(1), CallID: "c", Tool: "kb_search"})
		}
	})
	playSo(t, "{microphone: false, turns: [{type: hello, expect: {tool: x}}]}", g, how{until: 2 * time.Second, hangUp: true}, func(s *scene, outcome Outcome) {
		if took := time.Since(s.set.Began); outcome != Done || s.problems() != "" || took != 2*time.Second {
			s.Errorf("outcome %d after %v\n%s", outcome, took, s.problems())
		}
		s.counts(map[report.Counter]int64{report.Cut: 1, report.ToolsOpen: 0, report.Expectations: 0, report.Lost: 0})
	})
}

// TestEndlessCall: the caller hangs up one minute after the time is up.
func TestEndlessCall(t *testing.T) {
	g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		if _, ok := m.(*protocol.InputText); ok {
			g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
			for range 500 {
				g.sound(time.Second)
			}
		}
	})
	playSo(t, "{microphone: false, turns: [{type: hello}]}", g, how{until: 5 * time.Second}, func(s *scene, _ Outcome) {
		if took := time.Since(s.set.Began); took != 5*time.Second+time.Minute {
			s.Errorf("it took %v", took)
		}
		s.counts(map[report.Counter]int64{report.Cut: 1})
	})
}

func TestNoGoodbye(t *testing.T) {
	g := newGateway(t, nil)
	g.deaf = true
	playSo(t, "{microphone: false, turns: [{wait: 1s}]}", g, how{}, func(s *scene, _ Outcome) {
		if got, want := s.problems(), "turn 0: lost: no session.ended arrived within 10s of session.end"; got != want {
			s.Errorf("got %s", got)
		}
		s.counts(map[report.Counter]int64{report.Lost: 1})
	})
}

// TestModelHangsUp: either the script waits for it, or the session counts as lost.
func TestModelHangsUp(t *testing.T) {
	hangsUp := func() *gateway {
		return newGateway(t, func(g *gateway, m protocol.ClientMessage) {
			if _, ok := m.(*protocol.InputText); ok {
				g.answer(1, "Goodbye", 200*ms1)
			}
			if p, ok := m.(*protocol.Playback); ok && p.Done {
				g.say(&protocol.TurnEnded{Header: inTurn(1), Status: "completed"}, &protocol.SessionEnded{Reason: "tool_ended"})
				g.Abort()
			}
		})
	}
	play(t, "{microphone: false, turns: [{type: bye, wait_for: end}, {type: never}]}", hangsUp(), func(s *scene, outcome Outcome) {
		s.ended(outcome, Done)
		s.counts(map[report.Counter]int64{report.Answered: 1, report.Lost: 0})
	})
	play(t, "{microphone: false, turns: [{type: bye}]}", hangsUp(), func(s *scene, outcome Outcome) {
		s.ended(outcome, Done)
	})
	play(t, "{microphone: false, turns: [{type: bye}, {type: never}]}", hangsUp(), func(s *scene, outcome Outcome) {
		s.ended(outcome, Broken, "turn 1: lost: the session ended: tool_ended (line 1 of the script)")
		s.counts(map[report.Counter]int64{report.Lost: 1, report.Cut: 1, report.Errors: 1})
	})
}

func TestRefusal(t *testing.T) {
	g := newGateway(t, nil)
	g.refuse = &protocol.Error{Code: "unknown_provider", Message: "No such provider."}
	play(t, "turns: [{type: hello}]", g, func(s *scene, outcome Outcome) {
		s.ended(outcome, Broken, "turn 0: refused: the gateway refused the session: unknown_provider: No such provider.")
		s.counts(map[report.Counter]int64{report.Calls: 1, report.Sessions: 0, report.Refused: 1, report.Lost: 0, report.Turns: 0})
	})
}

// TestNoAnswer covers an unreachable network and a silent gateway.
func TestNoAnswer(t *testing.T) {
	g := newGateway(t, nil)
	g.mute = true
	play(t, "turns: [{type: hello}]", g, func(s *scene, outcome Outcome) {
		s.ended(outcome, Broken, "turn 0: refused: no session.started within 10s")
	})
	playSo(t, "turns: [{type: hello}]", newGateway(t, nil), how{change: func(s *Settings) {
		s.Dial = func(context.Context, string) (voice.Conn, error) { return nil, errors.New("no route") }
	}}, func(s *scene, outcome Outcome) {
		s.ended(outcome, Broken, "turn 0: refused: no route")
		s.counts(map[report.Counter]int64{report.Refused: 1, report.Errors: 1})
	})
}

// TestFailedTurns covers failures that the gateway reports and turns that end without sound.
func TestFailedTurns(t *testing.T) {
	fails := func(how func(g *gateway)) *gateway {
		return newGateway(t, func(g *gateway, m protocol.ClientMessage) {
			if _, ok := m.(*protocol.InputText); ok {
				g.say(&protocol.TurnStarted{Header: inTurn(1)})
				g.after(time.Second, func() { how(g) })
			}
		})
	}
	noAnswer := func(g *gateway) {
		g.say(&protocol.Error{Header: inTurn(1), Code: "no_answer", Message: "Say it again."}, &protocol.TurnEnded{Header: inTurn(1), Status: "failed"})
	}
	play(t, "{microphone: false, turns: [{type: hello}]}", fails(noAnswer), func(s *scene, outcome Outcome) {
		s.ended(outcome, Done, "turn 1: error: no_answer: Say it again. (line 1 of the script)", "turn 1: failed: the turn failed: no_answer: Say it again. (line 1 of the script)")
		s.counts(map[report.Counter]int64{report.Failed: 1, report.Errors: 1, report.Answered: 0})
		if s.report().Errors["no_answer"] != 1 {
			s.Errorf("codes %v", s.report().Errors)
		}
	})
	play(t, "{microphone: false, turns: [{type: hello, expect: {error: no_answer}}]}", fails(noAnswer), func(s *scene, outcome Outcome) {
		s.ended(outcome, Done)
		s.counts(map[report.Counter]int64{report.Failed: 0, report.Errors: 0, report.Answered: 1, report.Unmet: 0})
	})
	silent := func(g *gateway) { g.say(&protocol.TurnEnded{Header: inTurn(1), Status: "completed"}) }
	play(t, "{microphone: false, turns: [{type: hello}]}", fails(silent), func(s *scene, _ Outcome) {
		if got, want := s.problems(), "turn 1: failed: the turn ended without audio (line 1 of the script)"; got != want {
			s.Errorf("got %s", got)
		}
	})
}

// TestExpectations: each unmet expectation is reported with the actual result.
func TestExpectations(t *testing.T) {
	g := func() *gateway {
		return newGateway(t, func(g *gateway, m protocol.ClientMessage) {
			if _, ok := m.(*protocol.InputText); ok {
				g.say(&protocol.Transcript{Header: inTurn(1), ID: "u", Role: "user", Text: "When do you open?", Final: true},
					&protocol.TurnStarted{Header: inTurn(1)},
					&protocol.ToolStarted{Header: inTurn(1), CallID: "call_1", Tool: "kb_search"},
					&protocol.ToolStarted{Header: inTurn(1), CallID: "call_2", Tool: "kb_get"},
					&protocol.ToolEnded{Header: inTurn(1), CallID: "call_1", Tool: "kb_search", OK: true, DurationMS: 30},
					&protocol.ToolEnded{Header: inTurn(1), CallID: "call_2", Tool: "kb_get", Error: []byte(`{"type":"NOT_FOUND"}`)})
				g.after(700*ms1, func() {
					g.say(&protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
					g.sound(100 * ms1)
					g.say(&protocol.Transcript{Header: inTurn(1), ID: "a", Role: "assistant", Text: "We open"},
						&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 100})
				})
				// The rest of the text arrives after the turn.
				g.after(900*ms1, func() {
					g.say(&protocol.Transcript{Header: inTurn(1), ID: "a", Role: "assistant", Text: "We open at nine.", Final: true})
				})
			}
			g.ends(m, 1)
		})
	}
	good := "{microphone: false, turns: [{type: x, expect: {tool: kb_search, no_tool: image_generate, text: 'AT nine', no_text: sorry, said: open, within: 750ms}}]}"
	play(t, good, g(), func(s *scene, _ Outcome) {
		if s.problems() != "" {
			s.Error(s.problems())
		}
		s.counts(map[report.Counter]int64{report.Expectations: 6, report.Unmet: 0, report.ToolCalls: 2, report.ToolFailures: 1})
		if got := s.report().Tools; len(got) != 2 || got[0].Tool != "kb_get" || got[0].Failed != 1 || got[1].Run.Max != 30 {
			s.Errorf("tools %+v", got)
		}
	})
	bad := "{microphone: false, turns: [{type: x, expect: {tool: [image_generate, kb_get], no_tool: kb_search, text: ten, no_text: 'we open', said: closed, within: 650ms, asks: book, error: limit}}]}"
	play(t, bad, g(), func(s *scene, _ Outcome) {
		want := strings.Join([]string{
			"expected a call of image_generate; called: kb_search, kb_get",
			"expected a successful call of kb_get; it failed",
			"expected no call of kb_search; called: kb_search, kb_get",
			"expected book to ask the user; asked: none",
			`expected the answer to match ten; it is "We open at nine."`,
			`expected the answer not to match we open; it is "We open at nine."`,
			`expected the user's transcript to match closed; it is "When do you open?"`,
			"the first audio arrived after 700ms; expected within 650ms",
			"expected the error limit; errors: none",
		}, "\n")
		got := strings.ReplaceAll(strings.ReplaceAll(s.problems(), "turn 1: unmet: ", ""), " (line 1 of the script)", "")
		if got != want {
			s.Errorf("got\n%s\nwant\n%s", got, want)
		}
		s.counts(map[report.Counter]int64{report.Expectations: 9, report.Unmet: 9})
	})
	play(t, "{microphone: false, turns: [{type: x, expect: {no_tool: any}}]}", g(), func(s *scene, _ Outcome) {
		s.counts(map[report.Counter]int64{report.Unmet: 1})
	})
}

// TestWaitFor: the next turn begins with the first audio, with a tool's end, or at once.
func TestWaitFor(t *testing.T) {
	for wait, want := range map[string]time.Duration{
		"answer": 1700 * ms1, "first_audio": 300 * ms1, "nothing": 0, "{tool: kb_search}": 100 * ms1,
	} {
		t.Run(wait, func(t *testing.T) {
			var typed []time.Time
			g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
				if text, ok := m.(*protocol.InputText); ok {
					typed = append(typed, time.Now())
					if text.Text == "two" {
						g.say(&protocol.AudioFlush{Header: inTurn(1), ItemID: "item_1", Reason: "user_text"}, &protocol.TurnEnded{Header: inTurn(1), Status: "interrupted"})
						g.answer(2, "", 100*ms1)
						return
					}
					g.say(&protocol.TurnStarted{Header: inTurn(1)}, &protocol.ToolStarted{Header: inTurn(1), CallID: "c", Tool: "kb_search"})
					g.after(100*ms1, func() {
						g.say(&protocol.ToolEnded{Header: inTurn(1), CallID: "c", Tool: "kb_search", OK: true})
					})
					g.after(300*ms1, func() {
						if len(typed) > 1 {
							return // interrupted
						}
						g.say(&protocol.AudioStart{Header: inTurn(1), ItemID: "item_1"})
						g.sound(1350 * ms1)
						g.say(&protocol.AudioEnd{Header: inTurn(1), ItemID: "item_1", AudioMS: 1350})
					})
				}
				if len(typed) == 1 {
					g.ends(m, 1)
				}
				g.ends(m, 2)
			})
			play(t, "{microphone: false, pause: 0, turns: [{type: one, wait_for: "+wait+"}, {type: two}]}", g, func(s *scene, outcome Outcome) {
				if outcome != Done || len(typed) != 2 || s.problems() != "" {
					s.Fatalf("outcome %d, %d turns\n%s", outcome, len(typed), s.problems())
				}
				// An answer ends 50 ms after its last message.
				if got := typed[1].Sub(typed[0]); got != want {
					s.Errorf("the next turn came after %v, want %v", got, want)
				}
				s.counts(map[report.Counter]int64{report.Answered: 2})
			})
		})
	}
}

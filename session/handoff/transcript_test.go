package handoff

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recorder feeds a transcript with the actions of steps, at given seconds.
type recorder struct {
	Transcript
	heard, queued map[string]int64
}

func newRecorder() *recorder {
	return &recorder{Transcript: Transcript{header: Part{SessionID: "voice-1"}}, heard: map[string]int64{}, queued: map[string]int64{}}
}

// started is the message to the client about a call that begins.
func started(turn int, call, tool string) orchestrator.Action {
	return orchestrator.AboutCall{Do: calls.ToClient{Message: &protocol.ToolStarted{Header: protocol.Header{Turn: turn}, CallID: call, Tool: tool}}}
}

func (l *recorder) at(s int, actions ...orchestrator.Action) {
	for _, a := range actions {
		if f, ok := a.(orchestrator.FlushItem); ok {
			f.HeardMS, f.SentMS = l.heard[f.Item], 4000
			a = f
		}
		l.action(a, noon.Add(time.Duration(s)*time.Second), func(item string) int64 { return l.queued[item] })
	}
}

func (l *recorder) said(s, turn int, role transport.Role, id, text string) {
	l.at(s, orchestrator.Transcript{Turn: turn, ID: id, Role: role, Text: text, StartedAt: noon.Add(time.Duration(s) * time.Second)})
}

func (l *recorder) lines() []string {
	return lines(l.entries(func(string) (int64, int64, bool) { return 0, 0, false }))
}

func lines(entries []conversation.Entry) []string {
	var out []string
	for _, e := range entries {
		line := fmt.Sprintf("%d %d %s %q", int(e.At.Sub(noon).Seconds()), e.Turn, e.Role, e.Text)
		for _, c := range e.Calls {
			line += fmt.Sprintf(" %s:%t", c.Tool, c.OK)
			if c.Asked {
				line += " asked"
			}
		}
		if e.Interrupted {
			line += " interrupted"
		}
		if e.Side != conversation.SideVoice || e.SessionID != "voice-1" {
			line += " of another session"
		}
		out = append(out, line)
	}
	return out
}

// TestTranscriptOrder: entries of both sides are in the order of their start, regardless of arrival, with the last text
// of each, and the calls with the words that caused them.
func TestTranscriptOrder(t *testing.T) {
	l := newRecorder()
	l.at(3, started(1, "call_1", "kb_search"), started(1, "call_2", "kb_get"))
	l.at(4, orchestrator.ToolEnded{Answer: calls.Answer{Turn: 1, Call: "call_2", Tool: "kb_get"}}, orchestrator.ToolEnded{Answer: calls.Answer{Turn: 1, Call: "call_1", Tool: "kb_search", Envelope: registry.Envelope{OK: true}}})
	l.said(5, 1, transport.RoleAssistant, "o1", "It opens")
	l.said(5, 1, transport.RoleAssistant, "o1", "It opens at nine.")
	l.at(9, orchestrator.EndItem{Item: "o1", Turn: 1, AudioMS: 900})
	l.said(1, 1, transport.RoleUser, "i1", "When does it open?") // the transcriber is late
	l.at(10, orchestrator.EndItem{Item: "o2", Turn: 1, AudioMS: 400})
	l.said(9, 1, transport.RoleAssistant, "o2", "Every day.") // its audio arrived first
	l.at(11, started(2, "call_3", strings.Repeat("x", 500)))
	l.at(11, started(2, "call_4", "book"), orchestrator.ToolEnded{Answer: calls.Answer{Turn: 2, Call: "call_4", Tool: "book",
		Envelope: registry.Envelope{Error: &registry.Error{Type: registry.ErrorConfirmationRequired}}}})
	l.at(12, orchestrator.AboutCall{Do: calls.ToClient{Message: &protocol.ConfirmationEnded{Header: protocol.Header{Turn: 2}, Tool: "book", Outcome: string(calls.OutcomeDenied)}}})
	l.said(13, 3, transport.RoleUser, "i2", "  ")
	want := []string{
		`1 1 user "When does it open?"`, `3 1 assistant "It opens at nine." kb_search:true kb_get:false`,
		`9 1 assistant "Every day."`, `11 2 assistant "" ` + strings.Repeat("x", 64) + `…:false book:false asked`,
		`12 2 notice "The user was asked to approve book: denied."`,
	}
	if diff := cmp.Diff(want, l.lines()); diff != "" {
		t.Error(diff)
	}
}

// TestTranscriptOfContext: context from the page is marked as the page's, for models and for readers; it does not end
// the user's words.
func TestTranscriptOfContext(t *testing.T) {
	l := newRecorder()
	l.said(1, 1, transport.RoleUser, "i1", "What do")
	l.at(2, orchestrator.ContextGiven{Text: "order 42 (reference ABC234)"})
	if diff := cmp.Diff([]string{`1 1 user "What do"`, `2 0 context "order 42 (reference ABC234)"`}, l.lines()); diff != "" {
		t.Error(diff)
	}
	own := prompts.NewMark()
	past := l.Past(own, time.Second)
	if len(past) != 2 {
		t.Fatalf("the model gets %v", past)
	}
	said, ok := past[1].(transport.PastUser)
	if !ok || !strings.HasPrefix(said.Text, own.Text()) || !strings.HasSuffix(said.Text, "order 42 (reference ABC234)") {
		t.Errorf("the model gets %#v", past[1])
	}
	if entries, _, _ := l.History(); len(entries) != 1 || entries[0].Role != conversation.RoleContext || l.Draft() == nil {
		t.Errorf("another process gets %v", lines(entries))
	}
	c := conversation.New("c-1", "ada", "", noon)
	c.Append(noon, l.SoFar(cost.Amount{}).Entries...)
	if brief := c.Brief(1000); !strings.Contains(brief, "Page: order 42") || c.HasOutcome("ABC234") || c.Turns != 1 {
		t.Errorf("summary of %d turns: %s", c.Turns, brief)
	}
}

// TestTranscriptHasCosts: the cost of a turn is stored once, at a permanent entry, with the response time.
func TestTranscriptHasCosts(t *testing.T) {
	l := newRecorder()
	l.said(1, 1, transport.RoleUser, "i1", "When does it open?")
	l.at(2, started(1, "call_1", "kb_search"))
	l.said(3, 1, transport.RoleAssistant, "o1", "At nine.")
	l.at(4, orchestrator.TurnEnded{Turn: 1, Cost: cost.Amount{Micros: 1200, Unpriced: 1}, Latency: &orchestrator.Latency{Total: 812 * time.Millisecond}})
	l.at(5, orchestrator.TurnEnded{Turn: 2, Cost: cost.Amount{Micros: 9}}) // without an entry
	l.said(6, 3, transport.RoleUser, "i3", "  ")
	l.said(7, 3, transport.RoleAssistant, "o3", "I did not hear you.")
	l.at(8, orchestrator.TurnEnded{Turn: 3, Cost: cost.Amount{Micros: 300}})
	c := conversation.New("c-1", "ada", "", time.Now())
	c.Append(time.Now(), l.SoFar(cost.Amount{}).Entries...)
	if got := c.Digest(); got.CostUSDMicros != 1500 || got.Unpriced != 1 {
		t.Errorf("%+v", got.Spent)
	}
	waits := 0
	for _, e := range c.Entries {
		if e.LatencyMS != 0 {
			waits++
		}
		if e.LatencyMS != 0 && (e.LatencyMS != 812 || e.Turn != 1) {
			t.Errorf("%+v", e)
		}
	}
	if waits != 1 {
		t.Errorf("%d entries have a response time", waits)
	}
}

// TestInterruptedAnswerIsCutWhereItWasHeard: by the share of its audio that was heard, at the end of a word; or by the
// client's report, if there is one.
func TestInterruptedAnswerIsCutWhereItWasHeard(t *testing.T) {
	const text = "one two three four five six seven eight" // 39 characters
	for name, tc := range map[string]struct {
		tell func(l *recorder)
		want []string
	}{
		"complete, half heard": {func(l *recorder) {
			l.at(2, orchestrator.EndItem{Item: "o", Turn: 1, AudioMS: 4000})
			l.heard["o"] = 2000
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
		}, []string{`1 1 assistant "one two three four" interrupted`}},
		"still generated": {func(l *recorder) {
			l.heard["o"], l.queued["o"] = 500, 1000
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
			l.said(1, 1, transport.RoleAssistant, "o", text+" nine ten eleven twelve") // written, never spoken
		}, []string{`1 1 assistant "one two three four" interrupted`}},
		"with a client's report": {func(l *recorder) {
			l.at(2, orchestrator.EndItem{Item: "o", Turn: 1, AudioMS: 4000})
			l.heard["o"] = 3000
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
			l.played(orchestrator.Played{Item: "o", MS: 800, Done: true})
		}, []string{`1 1 assistant "one two" interrupted`}},
		"in the middle of a word": {func(l *recorder) {
			l.at(2, orchestrator.EndItem{Item: "o", Turn: 1, AudioMS: 3900})
			l.heard["o"] = 1000 // ten characters: "one two th"
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
		}, []string{`1 1 assistant "one two" interrupted`}},
		"nothing heard": {func(l *recorder) {
			l.queued["o"] = 1000
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
		}, nil},
		"all heard": {func(l *recorder) {
			l.at(2, orchestrator.EndItem{Item: "o", Turn: 1, AudioMS: 4000})
			l.heard["o"] = 4100
			l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
		}, []string{`1 1 assistant "` + text + `"`}},
		"a report of a complete answer": {func(l *recorder) {
			l.at(2, orchestrator.EndItem{Item: "o", Turn: 1, AudioMS: 4000})
			l.played(orchestrator.Played{Item: "o", MS: 100, Done: true})
		}, []string{`1 1 assistant "` + text + `"`}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newRecorder()
			l.Transcript.transcript(orchestrator.Transcript{Turn: 1, ID: "o", Role: transport.RoleAssistant, Text: text, StartedAt: noon.Add(time.Second)})
			tc.tell(l)
			if diff := cmp.Diff(tc.want, l.lines()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPlayingAnswerIsCut: if a session ends in mid-answer, the entry has the part that was heard, and reading it does
// not change the transcript.
func TestPlayingAnswerIsCut(t *testing.T) {
	l := newRecorder()
	l.said(1, 1, transport.RoleAssistant, "o", "one two three four five")
	for _, tc := range []struct {
		heard int64
		want  string
	}{{500, "one two"}, {900, "one two three four"}} {
		got := l.entries(func(string) (int64, int64, bool) { return tc.heard, 1000, true })
		if len(got) != 1 || got[0].Text != tc.want || !got[0].Interrupted {
			t.Errorf("after %d ms: %q", tc.heard, lines(got))
		}
	}
}

// TestTranscriptAfterTheFlush: if a model sends its transcript only after the interruption, that text belongs to the
// audio that was sent.
func TestTranscriptAfterTheFlush(t *testing.T) {
	l := newRecorder()
	l.heard["o"], l.queued["o"] = 500, 1000
	l.at(3, orchestrator.FlushItem{Item: "o", Turn: 1})
	l.said(1, 1, transport.RoleAssistant, "o", "one two three four")
	if diff := cmp.Diff([]string{`1 1 assistant "one two" interrupted`}, l.lines()); diff != "" {
		t.Error(diff)
	}
}

// TestTranscriptIsBounded: a session of any length has a transcript of bounded size.
func TestTranscriptIsBounded(t *testing.T) {
	l := newRecorder()
	for i := range 3 * conversation.MaxEntries {
		l.said(i, i, transport.RoleUser, fmt.Sprint("i", i), "word")
	}
	if n := len(l.Transcript.utterances); n != conversation.MaxEntries || l.Transcript.dropped != 2*conversation.MaxEntries {
		t.Errorf("%d entries are held, %d were dropped", n, l.Transcript.dropped)
	}
	if got := l.lines(); !strings.HasPrefix(got[len(got)-1], fmt.Sprint(3*conversation.MaxEntries-1, " ")) {
		t.Errorf("the newest is %s", got[len(got)-1])
	}
	l = newRecorder()
	for i := range 200 {
		l.said(i, i, transport.RoleUser, fmt.Sprint("i", i), strings.Repeat("ü", 2*conversation.MaxText))
		for range 3 { // the same text again takes no space
			l.said(i, i, transport.RoleUser, fmt.Sprint("i", i), strings.Repeat("ü", conversation.MaxText))
		}
	}
	var bytes int
	for _, s := range l.Transcript.utterances {
		bytes += len(s.entry.Text)
	}
	if bytes != l.Transcript.bytes || bytes > conversation.MaxBytes || len(l.Transcript.utterances) < 10 {
		t.Errorf("%d bytes in %d entries, counted as %d", bytes, len(l.Transcript.utterances), l.Transcript.bytes)
	}
	l = newRecorder()
	for i := range 1000 {
		l.at(1, started(1, fmt.Sprint("call_", i), "t"))
	}
	if n := len(l.Transcript.utterances); n > conversation.MaxEntries || len(l.Transcript.utterances[0].entry.Calls) != maxCallsTogether {
		t.Errorf("%d entries of %d calls", n, len(l.Transcript.utterances[0].entry.Calls))
	}
}

// FuzzHeardOf: the heard part of a text is a prefix, and never ends in an incompletely heard word.
func FuzzHeardOf(f *testing.F) {
	f.Add("one two three", int64(500), int64(1000))
	f.Add("", int64(1), int64(2))
	f.Add("Grüße, Welt", int64(7), int64(9))
	f.Add("a\xffb c", int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, text string, heard, all int64) {
		if heard > 1<<40 || all > 1<<40 {
			return
		}
		got := textutil.SpokenPart(text, heard, all)
		if heard >= all && all > 0 && heard > 0 {
			if got != text {
				t.Errorf("all of %q was heard, got %q", text, got)
			}
			return
		}
		rest, ok := strings.CutPrefix(strings.TrimSpace(string([]rune(text))), got)
		next, _ := utf8.DecodeRuneInString(rest)
		if !ok || got != "" && rest != "" && !unicode.IsSpace(next) {
			t.Errorf("of %q (%d of %d) remains %q", text, heard, all, got)
		}
	})
}

package talk

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/client/voice"
	"voicegw/protocol"
)

func names(events []Event, wanted ...string) []string {
	var got []string
	for _, e := range events {
		for _, name := range wanted {
			if e.Event == name {
				got = append(got, name)
			}
		}
	}
	return got
}

func TestApprovalByFlag(t *testing.T) {
	for name, c := range map[string]struct {
		approval voice.Approval
		want     []protocol.ConfirmationResolve
		event    string
	}{
		"approved":   {voice.ApprovalYes, []protocol.ConfirmationResolve{{Token: "t1", Approved: true}}, EventApproving},
		"declined":   {voice.ApprovalNo, []protocol.ConfirmationResolve{{Token: "t1"}}, EventDeclining},
		"unattended": {voice.ApprovalNobody, nil, EventUnanswerable},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway()
			g.asks = 1
			r, events := complete(t, Options{Turns: []Turn{{Text: "book it"}}, Approval: c.approval}, g)
			if diff := cmp.Diff(c.want, g.resolved); diff != "" {
				t.Error(diff)
			}
			if got := names(events, EventApproving, EventDeclining, EventUnanswerable, EventAsking); !cmp.Equal(got, []string{c.event}) {
				t.Errorf("events %v, want %s", got, c.event)
			}
			// The result of an approved action is a turn of its own, heard to its end.
			turns := 1
			if c.approval != voice.ApprovalNobody {
				turns = 2
			}
			if g.turn != turns || r.Turns[0].HeardMS < 2000 {
				t.Errorf("heard %d ms in %d turns, want %d", r.Turns[0].HeardMS, g.turn, turns)
			}
		})
	}
}

// TestUserIsAsked: two questions in a row; earlier lines are not answers, and the conversation waits.
func TestUserIsAsked(t *testing.T) {
	g := newGateway()
	g.asks = 2
	typed := map[int64]string{}
	typed[100] = "y" // before the question
	typed[9000] = " Yes "
	typed[15000] = "perhaps"
	r, events, err := holdTyping(t, Options{
		Turns: []Turn{{Text: "book it"}, {Text: "goodbye"}}, Approval: voice.ApprovalAsk, Answers: make(chan string),
	}, g, typed)
	if err != nil {
		t.Fatal(err)
	}
	want := []protocol.ConfirmationResolve{{Token: "t1", Approved: true}, {Token: "t2"}}
	if diff := cmp.Diff(want, g.resolved); diff != "" {
		t.Error(diff)
	}
	wantEvents := []string{EventTyped, EventAsking, EventApproving, EventAsking, EventDeclining, EventTyped}
	if diff := cmp.Diff(wantEvents, names(events, EventTyped, EventAsking, EventApproving, EventDeclining)); diff != "" {
		t.Error(diff)
	}
	if at := find(t, events, EventTyped, 2); at < 15000 {
		t.Errorf("the next turn was said after %d ms, before the questions were over", at)
	}
	if !r.Turns[1].Answered {
		t.Errorf("got %+v", r.Turns[1])
	}
}

// TestInputEndsDuringQuestion covers the terminal's end during a question.
func TestInputEndsDuringQuestion(t *testing.T) {
	g := newGateway()
	g.asks = 1
	_, events, err := holdTyping(t, Options{Turns: []Turn{{Text: "book it"}}, Approval: voice.ApprovalAsk, Answers: make(chan string)},
		g, map[int64]string{9000: "\x04"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(events, EventAsking, EventUnanswerable); len(got) != 2 || len(g.resolved) > 0 {
		t.Errorf("events %v, answers %v", got, g.resolved)
	}
}

// TestUnrecordedAnswer: the answer is repeated automatically if it comes from a flag, by the user otherwise.
func TestUnrecordedAnswer(t *testing.T) {
	g := newGateway()
	g.asks, g.forgets = 1, 1
	_, events, err := hold(t, Options{Turns: []Turn{{Text: "book it"}}, Approval: voice.ApprovalYes}, g)
	if err != nil || len(g.resolved) != 2 {
		t.Errorf("%d answers, error %v", len(g.resolved), err)
	}
	if got := names(events, EventApproving); len(got) != 2 {
		t.Errorf("events %v", got)
	}
	g = newGateway()
	g.asks, g.forgets = 1, 1
	_, events, err = holdTyping(t, Options{Turns: []Turn{{Text: "book it"}}, Approval: voice.ApprovalAsk, Answers: make(chan string)},
		g, map[int64]string{5000: "y", 9000: "n"})
	if err != nil || len(g.resolved) != 2 || g.resolved[1].Approved {
		t.Errorf("answers %v, error %v", g.resolved, err)
	}
	if got := names(events, EventAsking, EventApproving, EventDeclining); !cmp.Equal(got, []string{EventAsking, EventApproving, EventAsking, EventDeclining}) {
		t.Errorf("events %v", got)
	}
}

// TestUnendedQuestion covers a gateway that never ends a question.
func TestUnendedQuestion(t *testing.T) {
	g := newGateway()
	g.asks, g.forgets = 1, 1000
	_, _, err := hold(t, Options{Turns: []Turn{{Text: "book it"}}, Approval: voice.ApprovalNo}, g)
	if err != nil {
		t.Error(err)
	}
}

func TestAskingNeedsAnswers(t *testing.T) {
	_, err := Options{Turns: []Turn{{Text: "x"}}, Approval: voice.ApprovalAsk}.withDefaults()
	if err == nil || !strings.Contains(err.Error(), "no Answers") {
		t.Errorf("error %v", err)
	}
}

// TestRunTakesTypedAnswers uses a socket and a channel that is closed during the run.
func TestRunTakesTypedAnswers(t *testing.T) {
	g := newGateway()
	g.answerMS, g.silenceMS, g.latencyMS, g.asks = 300, 200, 20, 2
	answers, once := make(chan string, 1), sync.Once{}
	_, err := Run(t.Context(), Options{
		URL: serve(t, g), Turns: []Turn{{Text: "book it"}}, Approval: voice.ApprovalAsk, Answers: answers,
		Events: func(e Event) {
			if e.Event == EventAsking {
				once.Do(func() { answers <- "y"; close(answers) })
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]protocol.ConfirmationResolve{{Token: "t1", Approved: true}}, g.resolved); diff != "" {
		t.Error(diff)
	}
}

func TestDisplayShowsToolsAndQuestions(t *testing.T) {
	at := protocol.Time{Time: time.Date(2026, 11, 20, 10, 5, 0, 0, time.UTC)}
	long := json.RawMessage(`{"title":"Lunch with Ada and everybody else who wants to come","start":"2026-11-27T12:00:00Z","to":["a\u202e@b"]}`)
	var out bytes.Buffer
	p := &Display{w: &out, terminal: true, width: 80}
	for _, m := range []protocol.ServerMessage{
		&protocol.ToolStarted{Tool: "kb_search"},
		&protocol.ToolProgress{Tool: "kb_search", DurationMS: 3210},
		&protocol.ToolEnded{Tool: "kb_search", OK: true, DurationMS: 4000, Clamped: json.RawMessage(`{"top_k":{"requested":10,"applied":3},"a":{"requested":1e400,"applied":1}}`)},
		&protocol.ToolEnded{Tool: "kb_search", OK: true, Deduplicated: true},
		&protocol.ToolEnded{Tool: "kb_get", Error: json.RawMessage(`{"type":"VALIDATION","message":"ids is missing"}`)},
		&protocol.ToolEnded{Tool: "kb_get", Error: json.RawMessage(`[]`), Clamped: json.RawMessage(`7`)},
		&protocol.ToolEnded{Tool: "book", Error: json.RawMessage(`{"type":"CONFIRMATION_REQUIRED","message":"It needs it."}`)},
		&protocol.ConfirmationRequest{Tool: "book", Preview: "Book \u202e?", Args: json.RawMessage(`{"n":1.50}`), ExpiresAt: at},
		&protocol.ConfirmationRequest{Tool: "book", Preview: "Book?", Args: long, ExpiresAt: at},
		&protocol.ConfirmationRequest{Tool: "book", Preview: `book {"n":2}`, Args: json.RawMessage(`{"n":2}`), ExpiresAt: at},
	} {
		p.Event(Event{Message: m})
	}
	p.Event(Event{Event: EventAsking, Text: "Book?"})
	// Nothing is redrawn while the user types.
	p.Event(Event{Message: &protocol.Transcript{ID: "a", Role: "assistant", Text: "Shall"}})
	p.Event(Event{Event: EventApproving, Text: "Book?"})
	p.Event(Event{Message: &protocol.ConfirmationEnded{Tool: "book", Outcome: "approved"}})
	p.Event(Event{Event: EventUnanswerable, Text: "Book?"})
	p.Event(Event{Message: &protocol.Timeout{Message: "You are shut out."}})
	want := []string{
		"tool       kb_search …",
		"tool       kb_search still running after 3.2 s",
		"tool       kb_search ok after 4000 ms, a 1e400 -> 1, top_k 10 -> 3",
		"tool       kb_search ok after 0 ms, answered from the cache",
		"tool       kb_get failed after 0 ms: VALIDATION: ids is missing",
		"tool       kb_get failed after 0 ms",
		"tool       book waits for approval",
		`confirm    Book \u202e?`,
		`confirm    book {"n":1.50}`,
		"confirm    Book?",
		"confirm    book {",
		`             "title": "Lunch with Ada and everybody else who wants to come",`,
		`             "start": "2026-11-27T12:00:00Z",`,
		`             "to": [`,
		`               "a\u202e@b"`,
		"             ]",
		"           }",
		`confirm    book {"n":2}`,
		"confirm    Approve? [y/N]  Book?",
		"confirm    approving",
		"confirm    book: approved",
		"confirm    it cannot be answered here and will expire; use --approve or --deny",
		"timeout    You are shut out.",
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "   0.0 s  ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

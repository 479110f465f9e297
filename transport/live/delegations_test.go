package live

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/livewire"
	"voicegw/internal/testutil"
	"voicegw/prompts"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

func call(id, name, args string) textmodel.ToolCall {
	return textmodel.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// TestDelegation: the text model gets the conversation and the tools. The session runs its calls and returns their
// results, and the voice says its answer. Its tokens are counted under its name.
func TestDelegation(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{Instructions: "You are Ada.", History: []transport.Past{transport.PastUser{Text: "I am Bob."}},
		Tools: []transport.Tool{{Name: "book", Description: "Books.", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	p.delegate("item_1", "Book a table.", 400)
	a := testutil.WaitNext(t, "the prompt", s.model.asked)
	if !strings.Contains(a.Messages[0].Text, "You are Ada.") || a.Messages[1].Text != "I am Bob." || a.Messages[2].Text != "Book a table." ||
		a.last().Text != "Book a table." || len(a.Tools) != 1 || a.Tools[0].Name != "book" || a.ToolsOff {
		t.Errorf("the prompt is %+v", a.Prompt)
	}
	a.reply <- textmodel.Reply{Text: "A moment.", Calls: []textmodel.ToolCall{call("x", "book", `{"n":2}`), call("x", "book", `nothing`)},
		Usage: textmodel.Usage{Input: 9, Output: 2}}
	if u := awaited[transport.Usage](t, conn); u.Model != "words-1" || u.Tokens.InputText != 9 || u.Tokens.OutputText != 2 {
		t.Errorf("the usage is %+v", u)
	}
	if e := p.wants(livewire.ThinkingAppend, "item_1"); e.Content != prompts.StillWorking("A moment.") {
		t.Errorf("the progress is %q", e.Content)
	}
	first, second := awaited[transport.ToolCall](t, conn), awaited[transport.ToolCall](t, conn)
	if first.ID != "x" || second.ID != "" || string(first.Args) != `{"n":2}` || string(second.Args) != "{}" || first.Call == second.Call {
		t.Errorf("the calls are %+v and %+v", first, second)
	}
	for _, c := range []transport.ToolCall{second, first} {
		if err := conn.Send(context.Background(), transport.ToolResult{Call: c.Call, Output: json.RawMessage(`{"of":"` + c.Call + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	b := testutil.WaitNext(t, "the second prompt", s.model.asked)
	results := b.Messages[len(b.Messages)-2:]
	if results[0].Text != `{"of":"`+first.Call+`"}` || results[1].Text != `{"of":"`+second.Call+`"}` {
		t.Errorf("the results are %+v", results)
	}
	b.reply <- textmodel.Reply{Text: "It is booked for two."}
	if e := p.wants(livewire.CommentaryAppend, "item_1"); e.Content != "It is booked for two." {
		t.Errorf("the answer is %q", e.Content)
	}
	p.send(`{"type":"session.output_transcript.delta","delta":"It is booked.","start_ms":2600,"end_ms":2800}`)
	if awaited[transport.Interaction](t, conn).InProgress {
		t.Error("the delegation has not ended")
	}
}

// TestCheckedAnswers: where the caller checks the answers, the text model's history has only the words that have passed. Its
// own answer is in it as a note, and no longer once the voice was stopped with it.
func TestCheckedAnswers(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		s := newServer(t)
		conn, p := s.connect(transport.Setup{Checked: true, History: []transport.Past{transport.PastAssistant{Text: "Hello."}}})
		gate := conn.Conn.(transport.CheckedConn)
		p.send(`{"type":"session.output_transcript.delta","delta":"Well, damn fool.","start_ms":0,"end_ms":200}`)
		first := awaited[transport.Transcript](t, conn)
		gate.Passed(first.Item, "Well, ", false)
		gate.Passed(first.Item, "", true)
		p.send(`{"type":"session.output_transcript.delta","delta":" Damn you.","start_ms":200,"end_ms":300}`)
		p.delegate("item_1", "Book a table.", 1400)
		said := func(a asked) (all []string) {
			for _, m := range a.Messages[1:] {
				all = append(all, string(m.Role)+": "+m.Text)
			}
			return all
		}
		a := testutil.WaitNext(t, "the prompt", s.model.asked)
		if got, want := said(a), []string{"assistant: Hello.", "assistant: Well,", "user: Book a table."}; !slices.Equal(got, want) {
			t.Errorf("the prompt is %q, want %q", got, want)
		}
		const result = "It is booked, damn fool."
		a.reply <- textmodel.Reply{Text: result}
		p.wants(livewire.CommentaryAppend, "item_1")
		p.send(`{"type":"session.output_transcript.delta","delta":"It is booked, damn fool.","start_ms":2600,"end_ms":2800}`)
		second := awaited[transport.Transcript](t, conn)
		for second.Role != transport.RoleAssistant || second.Item == first.Item {
			second = awaited[transport.Transcript](t, conn)
		}
		want := []string{"assistant: Hello.", "assistant: Well,", "user: Book a table.", "user: " + prompts.AnswerToSay + result, "assistant: It is booked,"}
		gate.Passed(second.Item, "It is booked,", false)
		if stopped {
			gate.Passed(second.Item, "", true)
			want = slices.Delete(want, 3, 4)
		}
		p.send(`{"type":"session.delegation.created","offset_ms":1400,"delegation":{"id":"item_2","target":"client"}}`)
		a = testutil.WaitNext(t, "the second prompt", s.model.asked)
		if want = append(want, "user: "+prompts.HandedOverAgain); !slices.Equal(said(a), want) {
			t.Errorf("stopped %t: the prompt is %q, want %q", stopped, said(a), want)
		}
	}
}

// TestPassedOnAnotherConnection: the words of a connection that was replaced change nothing.
func TestPassedOnAnotherConnection(t *testing.T) {
	s := newServer(t)
	old, p := s.connect(transport.Setup{Checked: true})
	p.delegate("item_1", "Book a table.", 400)
	testutil.WaitNext(t, "the prompt", s.model.asked)
	next, p := s.connect(transport.Setup{Checked: true, Carried: transport.CarryOver(old.Conn)})
	p.send(`{"type":"session.output_transcript.delta","delta":"Damn fool.","start_ms":0,"end_ms":200}`)
	item := awaited[transport.Transcript](t, next).Item
	old.Conn.(transport.CheckedConn).Passed(item, "Damn fool.", false)
	p.delegate("item_2", "Call Bob.", 1400)
	for _, m := range testutil.WaitNext(t, "the prompt", s.model.asked).Messages {
		if m.Role == textmodel.RoleAssistant {
			t.Errorf("the prompt has %q", m.Text)
		}
	}
}

// TestTwoDelegations: the second delegation knows the first one and can drop it. The voice does not say a dropped result.
func TestTwoDelegations(t *testing.T) {
	s := newServer(t)
	_, p := s.connect(transport.Setup{})
	p.delegate("item_1", "Book for two.", 400)
	first := testutil.WaitNext(t, "the first prompt", s.model.asked)
	p.delegate("item_1", "", 500) // a duplicate
	p.delegate("item_2", " No, for three.", 800)
	second := testutil.WaitNext(t, "the second prompt", s.model.asked)
	if open := second.Messages[0].Text; !strings.Contains(open, `(1) "Book for two."`) || second.last().Text != "Book for two. No, for three." {
		t.Errorf("the second prompt is %+v", second.Messages)
	}
	second.reply <- textmodel.Reply{Calls: []textmodel.ToolCall{call("a", dropTool, `{"number":1}`), call("b", dropTool, `{"number":7}`)}}
	second = testutil.WaitNext(t, "the third prompt", s.model.asked)
	if results := second.Messages[len(second.Messages)-2:]; results[0].Text != prompts.Dropped || results[1].Text != prompts.NotDropped {
		t.Errorf("the results of the drops are %+v", results)
	}
	second.reply <- textmodel.Reply{Text: "Booked for three."}
	p.wants(livewire.CommentaryAppend, "item_2")
	first.reply <- textmodel.Reply{Text: "Booked for two."}
	if e := p.wants(livewire.ThinkingAppend, "item_1"); !strings.Contains(e.Content, "Booked for two.") {
		t.Errorf("the dropped result is %q", e.Content)
	}
}

// TestHandedOverAgain: the prompt of a delegation without new words does not repeat the earlier request.
func TestHandedOverAgain(t *testing.T) {
	s := newServer(t)
	_, p := s.connect(transport.Setup{})
	p.delegate("item_1", "Book a table.", 400)
	if first := testutil.WaitNext(t, "the first prompt", s.model.asked); first.last().Text != "Book a table." {
		t.Errorf("the first request is %q", first.last().Text)
	}
	p.send(`{"type":"session.delegation.created","offset_ms":400,"delegation":{"id":"item_2","target":"client"}}`)
	again := testutil.WaitNext(t, "the second prompt", s.model.asked)
	if again.last().Text != prompts.HandedOverAgain || again.Messages[1].Text != "Book a table." {
		t.Errorf("the second prompt is %+v", again.Messages)
	}
	p.delegate("item_3", " For two.", 800)
	if third := testutil.WaitNext(t, "the third prompt", s.model.asked); third.last().Text != "Book a table. For two." {
		t.Errorf("the third request is %q", third.last().Text)
	}
}

// TestDelegationsFail: the voice reports each failure to the user.
func TestDelegationsFail(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.delegate("item_1", "Book.", 400)
	testutil.WaitNext(t, "the prompt", s.model.asked).fail <- &textmodel.Error{Kind: transport.KindQuota, Err: errors.New("empty")}
	if e := p.wants(livewire.CommentaryAppend, "item_1"); e.Content != prompts.DelegationFailed {
		t.Errorf("a failure is reported as %q", e.Content)
	}
	if problem := awaited[transport.Problem](t, conn); problem.Err.Kind != transport.KindQuota || problem.Err.Op != "delegation" {
		t.Errorf("the problem is %v", problem.Err)
	}
	p.delegate("item_2", " Again.", 800)
	testutil.WaitNext(t, "the prompt", s.model.asked).reply <- textmodel.Reply{Refused: true, Text: "No."}
	if e := p.wants(livewire.CommentaryAppend, "item_2"); e.Content != prompts.DelegationRefused {
		t.Errorf("a refusal is reported as %q", e.Content)
	}
	for i, id := range []string{"a", "b", "c", "d"} {
		p.delegate(id, " More.", 1000+int64(i)*100)
		testutil.WaitNext(t, "the prompt", s.model.asked)
	}
	p.delegate("e", " More.", 1500)
	if e := p.wants(livewire.CommentaryAppend, "e"); e.Content != prompts.DelegationBusy {
		t.Errorf("a delegation over the limit is reported as %q", e.Content)
	}
}

// TestRounds: the text model gets no tools for its last answer.
func TestRounds(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{Tools: []transport.Tool{{Name: "again"}}})
	p.delegate("item_1", "Go.", 400)
	for round := range maxRounds {
		a := testutil.WaitNext(t, "the prompt", s.model.asked)
		if a.ToolsOff != (round == maxRounds-1) {
			t.Fatalf("round %d: tools off is %v", round, a.ToolsOff)
		}
		a.reply <- textmodel.Reply{Calls: []textmodel.ToolCall{call("", "again", "{}")}}
		if !a.ToolsOff {
			_ = conn.Send(context.Background(), transport.ToolResult{Call: awaited[transport.ToolCall](t, conn).Call, Output: json.RawMessage("{}")})
		}
	}
	if e := p.wants(livewire.CommentaryAppend, "item_1"); e.Content != prompts.DelegationRefused {
		t.Errorf("the answer is %q", e.Content)
	}
}

// TestCarriedOver: unplaced texts and a running delegation move to the next connection. There, the model is not asked for
// the same again, and its repeated delegation continues the running one. A delegation whose call was made on the old
// connection is named to the model as unfinished, because the session reports the result.
func TestCarriedOver(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.delegate("item_1", "Find Ada.", 400)
	done := testutil.WaitNext(t, "a prompt", s.model.asked)
	p.delegate("item_2", " Book a room. Hello?", 800)
	runs := testutil.WaitNext(t, "a prompt", s.model.asked)
	p.delegate("item_3", " Call Bob.", 1200)
	calls := testutil.WaitNext(t, "a prompt", s.model.asked)
	done.reply <- textmodel.Reply{Text: "Ada is in Vienna."}
	p.wants(livewire.CommentaryAppend, "item_1") // never acknowledged
	calls.reply <- textmodel.Reply{Calls: []textmodel.ToolCall{call("x", "phone", "{}")}}
	awaited[transport.ToolCall](t, conn)
	if err := conn.Send(context.Background(), transport.UserText{Text: "Hello?"}); err != nil {
		t.Fatal(err)
	}
	p.wants(livewire.InstructionsAppend, "")

	carried := transport.CarryOver(conn.Conn)
	_ = conn.Close()
	next, p := s.connect(transport.Setup{Carried: carried, History: []transport.Past{transport.PastUser{Text: "Book a room."}}})
	carried.Drop() // no effect: a connection has taken it
	if e := p.wants(livewire.CommentaryAppend, ""); e.Content != "Ada is in Vienna." {
		t.Errorf("carried over is %q", e.Content)
	}
	for _, want := range []string{prompts.Unfinished([]string{"Call Bob."}), prompts.Continued([]string{"Book a room. Hello?"})} {
		if e := p.wants(livewire.ThinkingAppend, ""); e.Content != want {
			t.Errorf("the model got %q, want %q", e.Content, want)
		}
	}
	for _, text := range []string{"A notice.\nBook a room.", "Thank you."} {
		if err := next.Send(context.Background(), transport.UserText{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if e := p.wants(livewire.InstructionsAppend, ""); e.Content != prompts.Entered("Thank you.") {
		t.Errorf("the model is asked %q", e.Content)
	}
	p.delegate("item_4", "A notice.\nBook a room.", 400)
	testutil.WaitUntil(t, "the delegation continues", func() bool {
		d := next.Conn.(*liveConn).delegations
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.tasks) == 1 && d.tasks[0].id == "item_4"
	})
	runs.reply <- textmodel.Reply{Calls: []textmodel.ToolCall{call("y", "book", "{}")}}
	c := awaited[transport.ToolCall](t, next)
	_ = next.Send(context.Background(), transport.ToolResult{Call: c.Call, Output: json.RawMessage(`{}`)})
	testutil.WaitNext(t, "a prompt", s.model.asked).reply <- textmodel.Reply{Text: "Booked."}
	if e := p.wants(livewire.CommentaryAppend, "item_4"); e.Content != "Booked." {
		t.Errorf("the answer is %q", e.Content)
	}
	if transport.CarryOver(conn.Conn) != nil {
		t.Error("the work is carried over twice")
	}
}

// TestOvertakenQuestion: after the user has answered a question, the voice does not say the text model's words about it.
// The voice learns a pending answer without saying it, later answers know the outcome, and unsent words are withdrawn.
func TestOvertakenQuestion(t *testing.T) {
	const question = "I need your approval."
	type fixture struct {
		s    *server
		conn *transport.Listener
		p    *peer
		pay  transport.ToolCall
	}
	send := func(t *testing.T, c *transport.Listener, cmd transport.Command) {
		t.Helper()
		if err := c.Send(context.Background(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	approve := func(t *testing.T, sc *fixture) {
		t.Helper()
		send(t, sc.conn, transport.UserText{Text: "It is paid.", Overtakes: sc.pay.Call})
	}
	paid := func(t *testing.T, sc *fixture) {
		t.Helper()
		if e := sc.p.wants(livewire.InstructionsAppend, ""); e.Content != prompts.Entered("It is paid.") {
			t.Errorf("the outcome is %q", e.Content)
		}
	}
	for name, play := range map[string]func(t *testing.T, sc *fixture){
		"while the text model answers": func(t *testing.T, sc *fixture) {
			send(t, sc.conn, transport.ToolResult{Call: sc.pay.Call, Output: json.RawMessage("{}")})
			answering := testutil.WaitNext(t, "a prompt", sc.s.model.asked)
			approve(t, sc)
			paid(t, sc)
			answering.reply <- textmodel.Reply{Text: question}
			if e := sc.p.wants(livewire.ThinkingAppend, "item_1"); e.Content != prompts.OvertakenAnswer(question) {
				t.Errorf("the voice learns %q", e.Content)
			}
		},
		"while the text model fails": func(t *testing.T, sc *fixture) {
			send(t, sc.conn, transport.ToolResult{Call: sc.pay.Call, Output: json.RawMessage("{}")})
			answering := testutil.WaitNext(t, "a prompt", sc.s.model.asked)
			approve(t, sc)
			paid(t, sc)
			answering.fail <- &textmodel.Error{Kind: transport.KindQuota, Err: errors.New("empty")}
		},
		"while another tool runs": func(t *testing.T, sc *fixture) {
			find := awaited[transport.ToolCall](t, sc.conn)
			send(t, sc.conn, transport.ToolResult{Call: sc.pay.Call, Output: json.RawMessage("{}")})
			approve(t, sc)
			paid(t, sc)
			send(t, sc.conn, transport.ToolResult{Call: find.Call, Output: json.RawMessage("{}")})
			answering := testutil.WaitNext(t, "a prompt", sc.s.model.asked)
			if answering.last().Text != prompts.UserDecided("It is paid.") {
				t.Errorf("the prompt ends with %+v", answering.last())
			}
			answering.reply <- textmodel.Reply{Text: "Ada is in Vienna."}
			if e := sc.p.wants(livewire.CommentaryAppend, "item_1"); e.Content != "Ada is in Vienna." {
				t.Errorf("the answer is %q", e.Content)
			}
		},
		"while a sentence plays": func(t *testing.T, sc *fixture) {
			send(t, sc.conn, transport.PlayExact{Text: "Five euros.", PCM: make([]byte, 4800)})
			playing := testutil.WaitNext(t, "the sentence", sc.p.frames)
			send(t, sc.conn, transport.ToolResult{Call: sc.pay.Call, Output: json.RawMessage("{}")})
			testutil.WaitNext(t, "a prompt", sc.s.model.asked).reply <- textmodel.Reply{Text: question}
			d := sc.conn.Conn.(*liveConn).delegations
			testutil.WaitUntil(t, "the question waits", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return len(d.appends) == 1 && len(d.tasks) == 0
			})
			approve(t, sc)
			sc.p.send(`{"type":"session.output_audio.fixture.played","client_event_id":%q}`, playing.ID)
			paid(t, sc)
		},
		"before it is placed, and the connection ends": func(t *testing.T, sc *fixture) {
			send(t, sc.conn, transport.ToolResult{Call: sc.pay.Call, Output: json.RawMessage("{}")})
			testutil.WaitNext(t, "a prompt", sc.s.model.asked).reply <- textmodel.Reply{Text: question}
			sc.p.wants(livewire.CommentaryAppend, "item_1")
			approve(t, sc)
			paid(t, sc)
			testutil.WaitUntil(t, "the delegation ends", func() bool { return !sc.conn.Conn.(*liveConn).delegations.busy() })
			if carried := transport.CarryOver(sc.conn.Conn); carried != nil {
				carried.Drop()
				t.Error("the question is carried over")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			conn, p := s.connect(transport.Setup{})
			p.delegate("item_1", "Pay Bob and find Ada.", 400)
			calls := []textmodel.ToolCall{call("x", "pay", "{}")}
			if name == "while another tool runs" {
				calls = append(calls, call("y", "find", "{}"))
			}
			testutil.WaitNext(t, "a prompt", s.model.asked).reply <- textmodel.Reply{Calls: calls}
			play(t, &fixture{s, conn, p, awaited[transport.ToolCall](t, conn)})
			testutil.WaitUntil(t, "the delegation ends", func() bool { return !conn.Conn.(*liveConn).delegations.busy() })
			send(t, conn, transport.UserText{Text: "Thanks."})
			if e := p.wants(livewire.InstructionsAppend, ""); e.Content != prompts.Entered("Thanks.") {
				t.Errorf("the provider then got %+v", e)
			}
		})
	}
}

// TestNotCarried: Drop ends work that no connection takes, and an idle connection carries nothing over.
func TestNotCarried(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	if carried := transport.CarryOver(conn.Conn); carried != nil {
		t.Errorf("an idle connection carries over %v", carried)
	}
	p.delegate("item_1", "Find Ada.", 400)
	testutil.WaitNext(t, "a prompt", s.model.asked) // never answered
	carried := transport.CarryOver(conn.Conn)
	_ = conn.Close()
	carried.Drop()
}

// TestAppends: a text that the provider refuses as too long is sent again in halves, a placed text is forgotten, and other
// errors are reported.
func TestAppends(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	text := strings.Repeat("Many words are here. ", 100)
	if err := conn.Send(context.Background(), transport.UserText{Text: text}); err != nil {
		t.Fatal(err)
	}
	e := p.wants(livewire.InstructionsAppend, "")
	rest := p.wants(livewire.InstructionsAppend, "")
	if e.Content+" "+rest.Content != strings.TrimSpace(prompts.Entered(text)) {
		t.Errorf("the pieces are %q and %q", e.Content, rest.Content)
	}
	p.send(`{"type":"error","error":{"code":"invalid_value","param":"content","message":"too long","client_event_id":%q}}`, e.ID)
	one, two := p.wants(livewire.InstructionsAppend, ""), p.wants(livewire.InstructionsAppend, "")
	if words := one.Content + " " + two.Content; !strings.HasPrefix(e.Content, words) {
		t.Errorf("the halves are %q and %q", one.Content, two.Content)
	} else if words != e.Content {
		p.wants(livewire.InstructionsAppend, "")
		p.send(`{"type":"session.instructions.appended"}`)
	}
	p.send(`{"type":"error","client_event_id":%q,"error":{"code":"rate_limit_exceeded","message":"slower"}}`, one.ID)
	if problem := awaited[transport.Problem](t, conn); problem.Err.Kind != transport.KindRateLimit {
		t.Errorf("the problem is %v", problem.Err)
	}
	p.send(`{"type":"session.instructions.appended","client_event_id":%q}`, two.ID)
	p.send(`{"type":"session.instructions.appended"}`) // Azure sends no event id
	testutil.WaitUntil(t, "all texts are placed", func() bool {
		d := conn.Conn.(*liveConn).delegations
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.appends) == 0
	})
}

type liveConn = conn

// TestExactSentence: the provider plays an exact sentence as a separate answer, and gets no text before it has played or
// refused the sentence.
func TestExactSentence(t *testing.T) {
	const never = "never played"
	for _, end := range []string{"refused", "played", never} {
		s := newServer(t)
		conn, p := s.connect(transport.Setup{})
		sentence := testutil.SpeechLike(sampleRate, 200*time.Millisecond, 4)
		for _, cmd := range []transport.Command{transport.PlayExact{Text: "It is 5 euros.", PCM: sentence}, transport.UserText{Text: "hello"}} {
			if err := conn.Send(context.Background(), cmd); err != nil {
				t.Fatal(err)
			}
		}
		asked := <-p.frames
		if asked.Type != livewire.FixturePlay || string(asked.Audio) != base64.StdEncoding.EncodeToString(sentence) {
			t.Fatalf("the provider got %s", asked.Type)
		}
		if end == "refused" {
			p.send(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"No.","client_event_id":%q}}`, asked.ID)
		} else {
			p.send(`{"type":"session.output_audio.fixture.playing","client_event_id":%q}`, asked.ID)
			p.send(`{"type":"session.output_audio.delta","delta":%q}`, base64.StdEncoding.EncodeToString(sentence))
			select {
			case e := <-p.frames:
				t.Errorf("the provider got %s during the sentence", e.Type)
			default:
			}
			if e := awaited[transport.ResponseStarted](t, conn); !e.Exact {
				t.Errorf("%+v", e)
			}
			if end == never {
				conn.Conn.(*liveConn).unplayed() // as after playPatience
			} else {
				p.send(`{"type":"session.output_audio.fixture.played","client_event_id":%q}`, asked.ID)
			}
			awaited[transport.ResponseDone](t, conn)
		}
		if e := p.wants(livewire.InstructionsAppend, ""); e.Content != prompts.Entered("hello") {
			t.Errorf("the provider then got %+v", e)
		}
	}
}

// TestRepeats: a request repeats an earlier one if it ends with all its words, or with the user's last message as a part
// of them.
func TestRepeats(t *testing.T) {
	for _, tc := range []struct {
		words, earlier, last string
		want                 bool
	}{
		{"Book a room.", "Book a room.", "", true},
		{"A notice.\nBook a room.", "Book a room.", "", true},
		{"Book a room.", "Book a room. Hello?", "Book a room.", true},
		{"Book a room.", "Book a room. Hello?", "", false},
		{"Book a room. Twice.", "Book a room.", "Book a room.", false},
		{"Call Bob.", "Book a room.", "Call Bob.", false},
		{"Book a room.", "", "", false},
	} {
		d := &delegations{last: tc.last}
		if got := d.repeats(request{words: tc.words}, &task{words: tc.earlier}); got != tc.want {
			t.Errorf("%q after %q and %q: %v", tc.words, tc.earlier, tc.last, got)
		}
	}
}

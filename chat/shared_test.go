package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"voicegw/internal/user"
	"voicegw/orchestrator/calls/callstest"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store/storetest"
	"voicegw/transport/textmodel"
)

// TestConversationsAboutCalls runs the conversations shared by voice and text with an agent: its turns, its executor
// and its store.
func TestConversationsAboutCalls(t *testing.T) {
	callstest.Play(t, func(t *testing.T, story func(callstest.Player)) {
		synctest.Test(t, func(t *testing.T) {
			p := newTextPlayer(t)
			story(p)
			p.endTurn()
		})
	})
}

// textPlayer is the user and the model of an agent, and decides when its tools end.
type textPlayer struct {
	t       *testing.T
	agent   *Agent
	replies chan textmodel.Reply // to the model's Complete, from the player; not closed
	turn    sync.WaitGroup
	open    bool // a message is being answered
	said    int  // messages so far: each is different

	mu    sync.Mutex          // guards the following fields
	tools map[string]toolEnds // of running tools; by tool and arguments
	sent  []protocol.ServerMessage
	begun []string
	// nested: a call of a tool begins, and ends at once.
	nested bool
}

// toolEnds control a running tool: its nested calls, and its end.
type toolEnds struct {
	nest chan func(registry.Tools)
	end  chan bool
}

func newTextPlayer(t *testing.T) *textPlayer {
	p := &textPlayer{t: t, replies: make(chan textmodel.Reply), tools: map[string]toolEnds{}}
	tools := callstest.Tools(t, p.handle)
	executor := execute.New(execute.Options{Ledger: &storetest.Ledger{}, Confirmations: &storetest.Confirmations{}})
	t.Cleanup(executor.Close)
	agent, err := New(Options{
		Model: p, Executor: executor, Conversations: &memory{}, Answers: &answersKept{}, Rules: callstest.Rules(spec.ModeText),
		Tools: func() *registry.Snapshot { return tools }, Instructions: func(*Persona, *registry.Snapshot, prompts.Mark, string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.agent = agent
	return p
}

// Complete answers with the next reply.
func (p *textPlayer) Complete(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
	return <-p.replies, nil
}

func (p *textPlayer) handle(_ context.Context, tool, args string, tools registry.Tools) (registry.Result, error) {
	name, ends := fmt.Sprintf("%s %s", tool, args), toolEnds{nest: make(chan func(registry.Tools)), end: make(chan bool)}
	p.mu.Lock()
	if p.nested {
		p.mu.Unlock()
		return registry.Result{Data: callstest.Data}, nil
	}
	p.tools[name], p.begun = ends, append(p.begun, name)
	p.mu.Unlock()
	for {
		select {
		case nest := <-ends.nest:
			nest(tools)
		case ok := <-ends.end:
			if ok {
				return registry.Result{Data: callstest.Data}, nil
			}
			return registry.Result{}, callstest.Failed()
		}
	}
}

func (p *textPlayer) Nest(begun, tool, args string) string {
	p.mu.Lock()
	ends := p.tools[begun]
	p.nested = true
	p.mu.Unlock()
	answer := make(chan registry.Envelope)
	ends.nest <- func(tools registry.Tools) { answer <- tools.Call(p.t.Context(), tool, json.RawMessage(args)) }
	env := <-answer
	p.mu.Lock()
	p.nested = false
	p.mu.Unlock()
	if !env.OK {
		return string(env.Error.Type)
	}
	return "ok"
}

// send sends a message, after the previous turn has ended.
func (p *textPlayer) send(req Request) ([]protocol.ServerMessage, []string) {
	p.endTurn()
	p.open = true
	req.ConversationID, req.User = "conv", user.Must("ada")
	p.turn.Go(func() {
		if err := p.agent.Respond(p.t.Context(), req, p.emit); err != nil {
			p.t.Error(err)
		}
	})
	return p.flush()
}

func (p *textPlayer) emit(m protocol.ServerMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
}

// endTurn lets the model end its answer.
func (p *textPlayer) endTurn() {
	if p.open {
		p.replies <- textmodel.Reply{Text: "Well."}
		p.turn.Wait()
		p.open = false
	}
}

func (p *textPlayer) Say() ([]protocol.ServerMessage, []string) {
	p.said++
	return p.send(Request{Message: fmt.Sprint("go on, for the ", p.said, "th time")})
}

func (p *textPlayer) Answer(token string, approved bool) ([]protocol.ServerMessage, []string) {
	return p.send(Request{Confirmation: &Confirmation{Token: token, Approved: approved}})
}

func (p *textPlayer) Call(batch []callstest.Call) ([]protocol.ServerMessage, []string) {
	var reply textmodel.Reply
	for _, c := range batch {
		reply.Calls = append(reply.Calls, textmodel.ToolCall{ID: c.ID, Name: c.Tool, Args: json.RawMessage(c.Args)})
	}
	p.replies <- reply
	return p.flush()
}

func (p *textPlayer) Finish(begun string, ok bool) ([]protocol.ServerMessage, []string) {
	p.mu.Lock()
	end := p.tools[begun].end
	p.mu.Unlock()
	end <- ok
	return p.flush()
}

// flush returns the messages once everything is idle.
func (p *textPlayer) flush() ([]protocol.ServerMessage, []string) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	sent, begun := p.sent, p.begun
	p.sent, p.begun = nil, nil
	return sent, begun
}

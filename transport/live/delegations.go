package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"voicegw/internal/livewire"
	"voicegw/prompts"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

const (
	maxTasks   = 4  // delegations that run at once; others are refused with words
	maxRounds  = 8  // answers of the text model in one delegation; the last one gets no tools
	maxCalls   = 16 // of one answer; the rest are left out
	maxAppends = 64 // texts that the provider has not placed, which takes it a second
	maxKnown   = 64 // ids of delegations, and of calls, that are remembered
	// completeTime bounds one answer of the text model: the user waits, and nothing else ends the wait.
	completeTime = 60 * time.Second
)

// dropTool is this package's own tool: the text model calls it about an earlier delegation.
const dropTool = "drop_request"

// delegations runs the model's delegations: a text model does each on a goroutine of its own, with the session's tools.
// They outlive their connection if the session's next connection takes them over.
type delegations struct {
	t      *Transport
	ctx    context.Context //nolint:containedctx // of all tasks, which outlive a connection
	cancel context.CancelFunc

	order sync.Mutex // held while a text is sent, so that texts arrive in their order

	mu           sync.Mutex // guards the following fields
	conn         *conn      // nil between two connections
	up           chan struct{}
	text         *text
	instructions string
	tools        []textmodel.Tool
	tasks        []*task             // running, oldest first
	calls        map[string]openCall // without a result, by their name
	unsent       []any               // calls that the last connection has not delivered
	lost         []string            // the words of delegations whose calls went with a connection
	appends      []addition          // not placed, oldest first
	last         string              // the user's last message in the history of the connection
	handed       string              // the user's last message when the last delegation began
	unsaid       string              // the last result, until the model speaks
	unsaidOf     *task               // the task with that result; nil for another text
	seen         []string            // the latest ids of the text model's calls
	lines        []line              // the conversation so far, oldest first
	checked      bool                // the voice's words are lines once they have passed
	playing      bool                // an exact sentence is played, or asked for: appends wait
	lapse        *time.Timer         // ends that; nil before the first sentence
	nextAppend   int
	nextCall     int
}

// task is one delegation. Its fields are guarded by the mu of its delegations.
type task struct {
	id      string          // the provider's; empty on another connection
	words   string          // the user's
	dropped bool            // the user has replaced it
	calls   []string        // its calls so far
	news    []string        // outcomes of questions about them, for the text model's next answer
	stale   bool            // the answer under way does not know the news
	ctx     context.Context //nolint:containedctx // it ends with the task
	cancel  context.CancelFunc
}

type openCall struct {
	task   *task
	result chan json.RawMessage // capacity 1; never closed
}

// delegationsFor returns the delegations of a new connection: those of the last one, or none yet.
func delegationsFor(t *Transport, setup transport.Setup, text *text) *delegations {
	d, _ := setup.Carried.(*delegations)
	if d == nil || d.ctx.Err() != nil {
		d = &delegations{up: make(chan struct{}), calls: map[string]openCall{}}
		d.ctx, d.cancel = context.WithCancel(context.Background())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t, d.text, d.instructions = t, text, strings.TrimSpace(setup.Instructions+"\n\n"+prompts.BehindVoice)
	d.tools, d.checked = nil, setup.Checked
	for _, tool := range setup.Tools {
		d.tools = append(d.tools, textmodel.Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	d.begin(setup.History)
	return d
}

// attach gives the delegations a connection, and sends it what the last one left.
func (d *delegations) attach(c *conn) {
	d.mu.Lock()
	d.conn, d.playing = c, false
	for _, a := range d.appends {
		if a.of != nil {
			a.of.id = ""
		}
	}
	waiting, unsent, lost := d.appends, d.unsent, d.lost
	d.appends, d.unsent, d.lost = nil, nil, nil
	running := requests(d.running())
	if len(running) > 0 {
		unsent = append([]any{transport.Interaction{InProgress: true}}, unsent...)
	}
	close(d.up)
	d.mu.Unlock()
	for _, a := range waiting {
		_ = d.say(a.Type, a.of, a.own, a.Content) // the next read knows why it failed
	}
	if len(lost) > 0 {
		_ = d.say(livewire.ThinkingAppend, nil, true, prompts.Unfinished(lost))
	}
	if len(running) > 0 {
		_ = d.say(livewire.ThinkingAppend, nil, false, prompts.Continued(running))
	}
	c.post(unsent...)
}

// running returns the delegations that have not ended, oldest first. The caller must hold mu.
func (d *delegations) running() []*task {
	return slices.DeleteFunc(slices.Clone(d.tasks), func(t *task) bool { return t.ctx.Err() != nil })
}

func requests(tasks []*task) (words []string) {
	for _, t := range tasks {
		words = append(words, t.words)
	}
	return words
}

// CarryOver implements transport.Carrier: the caller's next connection continues the work.
func (c *conn) CarryOver() transport.Carried {
	if c.delegations.detach(c) {
		return c.delegations
	}
	return nil
}

// detach separates the delegations from their connection, if there is anything to carry over. A delegation whose calls
// were made is lost with the connection: the caller itself gives the model their results.
func (d *delegations) detach(c *conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != c {
		return false
	}
	d.appends = slices.DeleteFunc(d.appends, func(a addition) bool { return !a.own })
	if d.unsaid != "" && !slices.ContainsFunc(d.appends, func(a addition) bool { return a.Type == livewire.CommentaryAppend }) {
		d.appends = append(d.appends, addition{of: d.unsaidOf, own: true,
			ClientEvent: livewire.ClientEvent{Type: livewire.CommentaryAppend, Content: d.unsaid}})
	}
	if len(d.tasks) == 0 && len(d.appends) == 0 {
		return false
	}
	d.conn, d.up = nil, make(chan struct{})
	d.unsent = c.undelivered()
	for name, call := range d.calls {
		if slices.ContainsFunc(d.unsent, func(ev any) bool { return ev.(transport.ToolCall).Call == name }) {
			continue
		}
		delete(d.calls, name)
		if call.task.ctx.Err() == nil {
			d.lost = append(d.lost, call.task.words)
			call.task.cancel()
		}
	}
	for _, t := range d.tasks {
		t.id = ""
	}
	return true
}

// undelivered takes the calls that Recv has not returned.
func (c *conn) undelivered() (calls []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inbox = slices.DeleteFunc(c.inbox, func(ev any) bool {
		_, is := ev.(transport.ToolCall)
		if is {
			calls = append(calls, ev)
		}
		return is
	})
	return calls
}

// Drop implements transport.Carried.
func (d *delegations) Drop() { d.leave(nil) }

// leave ends the delegations with their connection, or without one.
func (d *delegations) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopLapse()
	if d.conn == c {
		d.cancel()
	}
}

func (d *delegations) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tasks) > 0
}

// remember adds an id to a list of the latest, and reports whether it was there before.
func remember(list *[]string, id string) (known bool) {
	if slices.Contains(*list, id) {
		return true
	}
	if len(*list) == maxKnown {
		*list = slices.Delete(*list, 0, 1)
	}
	*list = append(*list, id)
	return false
}

// follow starts the delegations that are due, and reminds the model. speaks: it has begun to speak, perhaps about a result.
func (d *delegations) follow(due []request, r reminder, speaks bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range due {
		d.open(r)
	}
	if r != remindNothing {
		text := prompts.OwedDelegation
		if r == remindResult && d.unsaid != "" {
			text = prompts.OwedResult(d.unsaid)
		}
		go func() { _ = d.say(livewire.InstructionsAppend, nil, false, text) }() // the next read knows why it failed
	}
	if speaks && d.unsaid != "" {
		d.unsaid, d.unsaidOf = "", nil
		d.rest()
	}
}

// open starts a delegation. The caller must hold mu.
func (d *delegations) open(r request) {
	t := d.continues(r)
	if t != nil {
		t.id = r.id
		return
	}
	others := d.running()
	if len(d.tasks) >= maxTasks {
		go d.refuse(r.id)
		return
	}
	t = &task{id: r.id, words: r.words}
	t.ctx, t.cancel = context.WithCancel(d.ctx)
	prompt := d.prompt(t, others)
	d.tasks = append(d.tasks, t)
	if d.conn != nil {
		d.conn.post(transport.Interaction{InProgress: true})
	}
	go d.run(t, prompt, others)
}

// works reports whether a delegation of an earlier connection answers these words.
func (d *delegations) works(words string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.continues(request{words: words}) != nil
}

// continues returns the running delegation of an earlier connection that a request repeats; nil without one. The caller
// must hold mu.
func (d *delegations) continues(r request) *task {
	for _, t := range d.running() {
		if t.id == "" && !t.dropped && d.repeats(r, t) {
			return t
		}
	}
	return nil
}

// repeats reports whether a request has the words of an earlier one, or the part of them that was the user's last message.
// The caller must hold mu.
func (d *delegations) repeats(r request, t *task) bool {
	return t.words != "" && strings.HasSuffix(r.words, t.words) ||
		d.last != "" && strings.HasSuffix(r.words, d.last) && strings.Contains(t.words, d.last)
}

// refuse answers a delegation that is not begun.
func (d *delegations) refuse(id string) {
	_ = d.say(livewire.CommentaryAppend, &task{id: id}, true, prompts.DelegationBusy) // a lost connection has no such delegation
}

// prompt returns the text model's input for a new delegation: it ends with the user's words. The caller must hold mu.
func (d *delegations) prompt(t *task, others []*task) textmodel.Prompt {
	p := textmodel.Prompt{Tools: slices.Clone(d.tools)}
	system := d.instructions
	if len(others) > 0 {
		system += "\n\n" + prompts.OpenRequests(requests(others))
		p.Tools = append(p.Tools, textmodel.Tool{Name: dropTool, Description: prompts.DropRequest, Parameters: dropParameters})
	}
	said := d.messages()
	last := len(said) - 1
	// "One moment." does not belong between the request and the answer.
	for last >= 0 && (said[last].Role != textmodel.RoleUser || said[last].Notice) {
		last--
	}
	before := d.handed
	if last >= 0 {
		d.handed = said[last].Text
	}
	switch {
	case last >= 0 && t.words == "" && d.handed == before:
		said = append(said, textmodel.Message{Role: textmodel.RoleUser, Text: prompts.HandedOverAgain})
	case last >= 0 && strings.HasSuffix(said[last].Text, t.words):
		said = said[:last+1]
	default:
		said = append(said, textmodel.Message{Role: textmodel.RoleUser, Text: cmp.Or(t.words, prompts.UnknownRequest)})
	}
	p.Messages = append([]textmodel.Message{{Role: textmodel.RoleSystem, Text: system}}, said...)
	return p
}

var dropParameters, _ = json.Marshal(map[string]any{
	"type": "object", "required": []string{"number"}, "additionalProperties": false,
	"properties": map[string]any{"number": map[string]any{"type": "integer", "minimum": 1, "description": prompts.DropRequestNumber}},
})

// run does a delegation. others are the requests that were open at its beginning.
func (d *delegations) run(t *task, p textmodel.Prompt, others []*task) {
	defer d.finished(t)
	for round := range maxRounds {
		p.ToolsOff = round == maxRounds-1
		p.Messages = append(p.Messages, d.learned(t)...)
		reply, err := d.complete(t, p)
		switch {
		case t.ctx.Err() != nil:
			return
		case err != nil:
			d.failed(t, err)
			return
		case len(reply.Calls) == 0 || p.ToolsOff:
			if said := strings.TrimSpace(reply.Text); said != "" && !reply.Refused {
				d.tell(t, said, true)
			} else {
				d.tell(t, prompts.DelegationRefused, false)
			}
			return
		}
		if text := strings.TrimSpace(reply.Text); text != "" {
			_ = d.say(livewire.ThinkingAppend, t, true, prompts.StillWorking(text)) // it is only progress
		}
		reply.Calls = reply.Calls[:min(len(reply.Calls), maxCalls)]
		results, ok := d.call(t, reply.Calls, others)
		if !ok {
			return
		}
		for i := range reply.Calls {
			reply.Calls[i].Args = object(reply.Calls[i].Args)
		}
		p.Messages = append(p.Messages, textmodel.Message{Role: textmodel.RoleAssistant, Text: reply.Text,
			Calls: reply.Calls, Extra: reply.Extra})
		for i, call := range reply.Calls {
			p.Messages = append(p.Messages, textmodel.Message{Role: textmodel.RoleTool, Text: results[i], CallID: call.ID})
		}
	}
}

// object returns arguments as a prompt needs them.
func object(args json.RawMessage) json.RawMessage {
	var any map[string]json.RawMessage
	if json.Unmarshal(args, &any) != nil || any == nil {
		return json.RawMessage("{}")
	}
	return args
}

func (d *delegations) complete(t *task, p textmodel.Prompt) (textmodel.Reply, error) {
	d.mu.Lock()
	text := d.text
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.ctx, completeTime)
	defer cancel()
	reply, err := text.model.Complete(ctx, p, func(string) {})
	if u := reply.Usage; u != (textmodel.Usage{}) {
		d.post(transport.Usage{Model: text.name, Tokens: transport.Tokens{
			Input: u.Input, InputText: u.Input, CachedText: u.Cached, Output: u.Output, OutputText: u.Output,
		}})
	}
	return reply, err //nolint:wrapcheck // failed classifies it
}

func (d *delegations) post(note any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		d.conn.post(note)
	}
}

// call makes calls through the session and waits for their results. ok is false if they are lost.
func (d *delegations) call(t *task, calls []textmodel.ToolCall, others []*task) (results []string, ok bool) {
	if !d.connected(t) {
		return nil, false
	}
	results = make([]string, len(calls))
	waits := make([]chan json.RawMessage, len(calls))
	events := []any{transport.Interaction{InProgress: true}}
	for i, call := range calls {
		if call.Name == dropTool {
			results[i] = d.drop(call.Args, others)
			continue
		}
		d.nextCall++
		name := "call_" + strconv.Itoa(d.nextCall)
		waits[i] = make(chan json.RawMessage, 1)
		d.calls[name] = openCall{t, waits[i]}
		t.calls = append(t.calls, name)
		ev := transport.ToolCall{Call: name, ID: call.ID, Name: call.Name, Args: object(call.Args)}
		if json.Valid(call.Args) {
			ev.Args = call.Args
		}
		if remember(&d.seen, call.ID) {
			ev.ID = "" // some servers begin anew with each answer
		}
		events = append(events, ev)
	}
	d.conn.post(events...)
	d.mu.Unlock()
	for i, wait := range waits {
		if wait == nil {
			continue
		}
		select {
		case out := <-wait:
			results[i] = string(out)
		case <-t.ctx.Done():
			return nil, false
		}
	}
	return results, true
}

// connected waits for a connection and returns with mu held, or false if the task has ended.
func (d *delegations) connected(t *task) bool {
	for {
		d.mu.Lock()
		if d.conn != nil && t.ctx.Err() == nil {
			return true
		}
		up := d.up
		d.mu.Unlock()
		select {
		case <-up:
		case <-t.ctx.Done():
			return false
		}
	}
}

// drop answers dropTool. The caller must hold mu.
func (d *delegations) drop(args json.RawMessage, others []*task) string {
	var in struct {
		Number int `json:"number"`
	}
	if json.Unmarshal(args, &in) != nil || in.Number < 1 || in.Number > len(others) {
		return prompts.NotDropped
	}
	others[in.Number-1].dropped = true
	return prompts.Dropped
}

// result takes a tool's result. One for an unknown call is dropped.
func (d *delegations) result(r transport.ToolResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call, ok := d.calls[r.Call]; ok {
		delete(d.calls, r.Call)
		call.result <- r.Output
	}
}

// tell gives the voice the words about a delegation to say, or an answer that comes too late to know.
func (d *delegations) tell(t *task, words string, answered bool) {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	dropped, stale := t.dropped, t.stale
	if !dropped && !stale {
		d.unsaid, d.unsaidOf = words, t
	}
	d.mu.Unlock()
	kind, role, known := livewire.CommentaryAppend, result, words
	switch {
	case dropped:
		kind, words = livewire.ThinkingAppend, prompts.DroppedResult(t.words, words)
	case stale:
		kind, words = livewire.ThinkingAppend, prompts.OvertakenAnswer(words)
		role, known = "developer", words
	}
	if answered {
		d.add(role, known)
	}
	if answered || kind == livewire.CommentaryAppend {
		_ = d.send(kind, t, true, words) // kept for the next connection
	}
	if kind == livewire.CommentaryAppend {
		d.post(resultTold{})
	}
}

// enter gives the voice a text in place of the user's words.
func (d *delegations) enter(u transport.UserText) error {
	d.order.Lock()
	defer d.order.Unlock()
	if u.Overtakes != "" {
		d.overtake(u)
	}
	return d.send(livewire.InstructionsAppend, nil, false, prompts.Entered(u.Text))
}

// overtake withdraws the words about a question that u answers: those to come are not said, those not sent are dropped, and
// no connection gets any again. The caller must hold order, so that none can follow u.
func (d *delegations) overtake(u transport.UserText) {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := func(t *task) bool { return t != nil && slices.Contains(t.calls, u.Overtakes) }
	for _, t := range d.tasks {
		if asked(t) {
			t.news, t.stale = append(t.news, u.Text), true
		}
	}
	kept := d.appends[:0]
	for _, a := range d.appends {
		if a.Type == livewire.CommentaryAppend && asked(a.of) {
			if !a.sent {
				continue
			}
			a.own = false
		}
		kept = append(kept, a)
	}
	d.appends = kept
	if asked(d.unsaidOf) {
		d.unsaid, d.unsaidOf = "", nil
		d.rest()
	}
}

// learned returns the news of a task for the text model's next answer.
func (d *delegations) learned(t *task) (news []textmodel.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range t.news {
		news = append(news, textmodel.Message{Role: textmodel.RoleUser, Text: prompts.UserDecided(text)})
	}
	t.news, t.stale = nil, false
	return news
}

// failed has the voice say that the text model has failed.
func (d *delegations) failed(t *task, err error) {
	kind := transport.KindRetry
	var failed *textmodel.Error
	switch {
	case errors.As(err, &failed):
		kind = failed.Kind
	case errors.Is(err, context.DeadlineExceeded):
		kind = transport.KindTimeout
	}
	d.tell(t, prompts.DelegationFailed, false)
	d.post(transport.Problem{Err: d.t.Fault("delegation", kind, "", fmt.Errorf("the text model: %w", err))})
}

func (d *delegations) finished(t *task) {
	t.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks = slices.DeleteFunc(d.tasks, func(o *task) bool { return o == t })
	d.rest()
}

// rest reports that no work is left. A result is work until the model speaks about it. The caller must hold mu.
func (d *delegations) rest() {
	if len(d.tasks) == 0 && d.unsaid == "" && d.conn != nil {
		d.conn.post(transport.Interaction{})
	}
}

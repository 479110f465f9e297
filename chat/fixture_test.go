package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testutil.Main(m, testutil.Need{
		Kinds: []logging.Kind{logging.Confirmation},
		Sinks: []testutil.Sink{testutil.Log, testutil.Audit, testutil.Conversations},
	}))
}

// args are the arguments of all tools here.
type args struct {
	Name string `json:"name"`
	TopK int    `json:"top_k"`
}

// needs are the capabilities of all tools here.
type needs struct {
	Messenger registry.Messenger
	Progress  registry.Progress
	Inviter   registry.Inviter
	Gallery   registry.Gallery
}

type toolCall = registry.Call[args, needs]

// handler is a tool of a test.
type handler func(ctx context.Context, c toolCall) (registry.Result, error)

// eve is another user.
var eve = user.Must("eve")

// sorted is a sorted copy.
func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// entries are the tools here. search and get retrieve; look may be repeated, rare may not, stop is cancellable; book
// writes and has a business key, change writes, has none and is cancellable, pay needs an approval; secret requires
// the scope secret.read, few runs once an hour for a user; beta, elsewhere and timely are conditional, timely in the
// first minute of fake time; spoken is for voice only.
func entries() []registry.Entry {
	one := func(id string, change func(*spec.Spec)) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "Does " + id + ".", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsReadOnly, AllowedModes: []spec.Mode{spec.ModeText},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000, Preview: "Do it for {name}",
			Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":50,"default":5}},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"name":{"type":"STRING"},"top_k":{"type":"INTEGER"}}}`)}}
	}
	retrieval := func(s *spec.Spec) { s.Category, s.Idempotent = spec.CategoryRetrieval, true }
	writes := func(s *spec.Spec) {
		s.Category, s.SideEffects = spec.CategoryAction, spec.SideEffectsWrites
	}
	return []registry.Entry{
		one("search", retrieval), one("get", retrieval),
		one("look", func(s *spec.Spec) { s.Idempotent = true }),
		one("rare", func(*spec.Spec) {}),
		one("stop", func(s *spec.Spec) { s.Cancellable = true }),
		one("book", func(s *spec.Spec) { writes(s); s.IdempotencyKey = "{name}" }),
		one("change", func(s *spec.Spec) { writes(s); s.Cancellable = true }),
		one("pay", func(s *spec.Spec) { writes(s); s.RequiresConfirmation = true }),
		one("secret", func(s *spec.Spec) { s.Idempotent, s.Requires = true, []string{"secret.read"} }),
		one("few", func(s *spec.Spec) { s.RateLimit = &spec.RateLimit{Calls: 1, Window: "1h"} }),
		one("beta", func(s *spec.Spec) { s.Availability = &spec.Availability{Features: []string{"beta"}} }),
		one("elsewhere", func(s *spec.Spec) { s.Availability = &spec.Availability{Agents: []string{"desk"}} }),
		one("timely", func(s *spec.Spec) {
			writes(s)
			s.RequiresConfirmation = true
			s.Availability = &spec.Availability{Zone: "UTC", Times: []spec.TimeWindow{{Since: "2000-01-01", Until: "2000-01-01", To: "00:01"}}}
		}),
		one("spoken", func(s *spec.Spec) { s.AllowedModes = []spec.Mode{spec.ModeVoice} }),
	}
}

// step is one answer of the model.
type step func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error)

// says is an answer in text, in two pieces.
func says(text string) step {
	return func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
		if text != "" {
			delta(text[:len(text)/2])
			delta(text[len(text)/2:])
		}
		return textmodel.Reply{Text: text, Usage: textmodel.Usage{Input: 10, Cached: 4, Output: 2}}, nil
	}
}

// callsTools is an answer that calls tools: their ids, names and arguments.
func callsTools(what ...string) step {
	var calls []textmodel.ToolCall
	for i := 0; i+2 < len(what); i += 3 {
		calls = append(calls, textmodel.ToolCall{ID: what[i], Name: what[i+1], Args: json.RawMessage(what[i+2])})
	}
	return func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
		return textmodel.Reply{Calls: calls, Usage: textmodel.Usage{Input: 5, Output: 1}}, nil
	}
}

// script is a Model that runs one step after another; it fails the test on an extra request.
type script struct {
	t testing.TB

	mu      sync.Mutex // guards the following fields
	steps   []step
	prompts []textmodel.Prompt
}

func (s *script) Complete(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
	s.mu.Lock()
	p.Messages = append([]textmodel.Message{}, p.Messages...)
	s.prompts = append(s.prompts, p)
	if len(s.steps) == 0 {
		s.mu.Unlock()
		s.t.Error("the model got an extra request")
		return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindUnreadable, Err: errors.New("the script has ended")}
	}
	do := s.steps[0]
	s.steps = s.steps[1:]
	s.mu.Unlock()
	return do(ctx, p, delta)
}

// memory stores conversations, like the store.
type memory struct {
	mu     sync.Mutex // guards the following fields
	kept   map[string][]byte
	revs   map[string]store.Revision
	taken  map[string]*lease
	saves  int
	before func(saves int) error // called before each Save; may be nil
}

func (m *memory) Load(_ context.Context, id string) (*conversation.Conversation, store.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[id] == nil {
		return nil, 0, store.ErrUnknown
	}
	c := new(conversation.Conversation)
	return c, m.revs[id], json.Unmarshal(m.kept[id], c)
}

func (m *memory) Save(ctx context.Context, c *conversation.Conversation, rev store.Revision) (store.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.saves++
	n, before := m.saves, m.before
	m.mu.Unlock()
	if before != nil {
		if err := before(n); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revs[c.ID] != rev {
		return 0, store.ErrChanged
	}
	return m.put(c), nil
}

// put stores a conversation; mu is held.
func (m *memory) put(c *conversation.Conversation) store.Revision {
	if m.kept == nil {
		m.kept, m.revs = map[string][]byte{}, map[string]store.Revision{}
	}
	m.kept[c.ID], _ = json.Marshal(c)
	testutil.Check(testutil.Conversations, m.kept[c.ID])
	m.revs[c.ID]++
	return m.revs[c.ID]
}

func (m *memory) Lease(_ context.Context, id string, _ time.Duration) (store.Held, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken[id] != nil {
		return nil, store.ErrBusy
	}
	if m.taken == nil {
		m.taken = map[string]*lease{}
	}
	m.taken[id] = &lease{m, id}
	return m.taken[id], nil
}

// lease is a lease of a conversation.
type lease struct {
	of *memory
	id string
}

// Release releases it.
func (l *lease) Release() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.taken[l.id] == l {
		delete(l.of.taken, l.id)
	}
}

// WhenLost never calls: a lease is only lost in a Check.
func (l *lease) WhenLost(func()) {}

// Check reports whether another holder has taken it.
func (l *lease) Check(context.Context) error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.taken[l.id] == nil {
		l.of.taken[l.id] = l
	}
	if l.of.taken[l.id] != l {
		return store.ErrFenced
	}
	return nil
}

// append adds entries from outside, as a voice session does at its end.
func (m *memory) append(t testing.TB, id string, entries ...conversation.Entry) {
	t.Helper()
	c, _, err := m.Load(t.Context(), id)
	if errors.Is(err, store.ErrUnknown) {
		c, err = conversation.New(id, "ada", "default", time.Now()), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Append(time.Now(), entries...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(c)
}

// answersKept stores the outcomes of messages, like the store.
type answersKept struct {
	mu   sync.Mutex // guards the following fields
	kept map[string][]byte
	ends map[string]time.Time
	revs store.Revision
	at   map[string]store.Revision
	fail error // the error of each Save; nil if it succeeds
}

func (a *answersKept) Load(_ context.Context, name string) ([]byte, store.Revision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept[name] == nil || !time.Now().Before(a.ends[name]) {
		return nil, 0, store.ErrUnknown
	}
	return a.kept[name], a.at[name], nil
}

func (a *answersKept) Save(_ context.Context, name string, data []byte, rev store.Revision, life time.Duration) (store.Revision, error) {
	testutil.Check(testutil.Conversations, data)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return 0, a.fail
	}
	if a.kept == nil {
		a.kept, a.ends, a.at = map[string][]byte{}, map[string]time.Time{}, map[string]store.Revision{}
	}
	old := a.at[name]
	if !time.Now().Before(a.ends[name]) {
		old = 0
	}
	if old != rev {
		return 0, store.ErrChanged
	}
	a.revs++
	a.kept[name], a.ends[name], a.at[name] = data, time.Now().Add(life), a.revs
	return a.revs, nil
}

// fixture is an Agent with a scripted model and everything in memory.
type fixture struct {
	t         testing.TB
	agent     *Agent
	model     *script
	executor  *execute.Executor
	ledger    *storetest.Ledger
	questions *storetest.Confirmations
	kept      *memory
	answers   *answersKept
	log       *bytes.Buffer

	// do is the handler of all tools; nil answers "done" at once.
	do handler
	// check is the tools' own check; nil refuses nothing.
	check func(toolCall) error

	mu      sync.Mutex // guards the following fields
	begun   []string   // tool and name, in order
	records []audit.Record
	// auditQueue gets the records that are not written yet; if it is nil, they are written at once.
	auditQueue chan audit.Record
}

// fixtureSetting is the settings that differ from the usual.
type fixtureSetting struct {
	options Options
	execute execute.Options
	shares  *fixture // whose store it shares
	feature func(agent, name string) bool
}

func newFixture(t testing.TB, set fixtureSetting) *fixture {
	t.Helper()
	f := &fixture{t: t, model: &script{t: t}, ledger: &storetest.Ledger{}, questions: &storetest.Confirmations{}, kept: &memory{}, answers: &answersKept{}, log: &bytes.Buffer{}}
	handlers := map[string]registry.Handler{}
	for _, e := range entries() {
		handlers[e.ToolID] = registry.Bind(f.handle, func(_ context.Context, c toolCall) error {
			if f.check == nil {
				return nil
			}
			return f.check(c)
		})
	}
	r, err := registry.Load(registrytest.File(t, entries()...), registry.Options{
		Feature:             set.feature,
		Handlers:            handlers,
		SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Messenger](), reflect.TypeFor[registry.Inviter](), reflect.TypeFor[registry.Gallery]()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if b := set.shares; b != nil { // another gateway on the same store
		f.ledger, f.questions, f.kept, f.answers = b.ledger, b.questions, b.kept, b.answers
	}
	x := set.execute
	x.Ledger, x.Confirmations = f.ledger, f.questions
	f.executor = execute.New(x)
	t.Cleanup(f.executor.Close)
	o := set.options
	o.Model, o.Executor, o.Conversations, o.Answers = f.model, f.executor, f.kept, f.answers
	o.Tools = r.Snapshot
	o.Instructions = func(p *Persona, _ *registry.Snapshot, own prompts.Mark, _ string) string {
		return "You are a test. " + p.Instructions + own.Text()
	}
	o.Audit = f.record
	o.Logger = testutil.Logger(slog.New(slog.NewTextHandler(f.log, nil)))
	if f.agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) record(r audit.Record) {
	testutil.CheckJSON(f.t, testutil.Audit, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
	if f.auditQueue == nil {
		close(r.Written)
	} else {
		f.auditQueue <- r
	}
}

func (f *fixture) handle(ctx context.Context, c toolCall) (registry.Result, error) {
	f.mu.Lock()
	f.begun = append(f.begun, strings.TrimSpace(c.Tool+" "+c.Args.Name))
	f.mu.Unlock()
	if f.do == nil {
		return registry.Result{Data: "done"}, nil
	}
	return f.do(ctx, c)
}

// ran returns the tools that ran so far, with their names.
func (f *fixture) ran() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.begun...)
}

// audited returns the records so far.
func (f *fixture) audited() []audit.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]audit.Record{}, f.records...)
}

// turnMessages has the messages of a turn.
type turnMessages struct {
	t    testing.TB
	mu   sync.Mutex // guards the following field
	msgs []protocol.ServerMessage
}

func (h *turnMessages) emit(m protocol.ServerMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs = append(h.msgs, m)
}

// respond runs a turn of the conversation "conv" of the user ada, unless the request has others.
func (f *fixture) respond(ctx context.Context, req Request, steps ...step) (*turnMessages, error) {
	f.t.Helper()
	f.model.mu.Lock()
	f.model.steps = append(f.model.steps, steps...)
	f.model.mu.Unlock()
	if req.User.IsZero() {
		req.User = user.Must("ada")
	}
	switch req.ConversationID {
	case "":
		req.ConversationID = "conv"
	case "none":
		req.ConversationID = ""
	}
	sent := &turnMessages{t: f.t}
	err := f.agent.Respond(ctx, req, sent.emit)
	if err != nil {
		testutil.Check(testutil.Errors, []byte(err.Error()))
	}
	return sent, err
}

// say is respond with a message, in a turn that begins.
func (f *fixture) say(message string, steps ...step) *turnMessages {
	f.t.Helper()
	sent, err := f.respond(f.t.Context(), Request{Message: message}, steps...)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent
}

// bubble runs a test in a synctest bubble with its own fixture.
func bubble(t *testing.T, set fixtureSetting, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t, set)) })
}

// pass waits in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// of returns the messages of a type.
func of[M protocol.ServerMessage](h *turnMessages) []M {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []M
	for _, m := range h.msgs {
		if m, ok := m.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

// types are the types of all messages except the turn's beginning, which must be first, and the pieces of text.
func (h *turnMessages) types() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for i, m := range h.msgs {
		if first, is := m.(*protocol.TurnStarted); is {
			if i != 0 || first.ConversationID == "" {
				h.t.Errorf("message %d is %+v", i, m)
			}
			continue
		}
		if _, piece := m.(*protocol.TextDelta); piece {
			continue
		}
		text, err := protocol.EncodeServer(1, m)
		if err != nil {
			h.t.Fatal(err)
		}
		parsed, err := protocol.ParseServer(text)
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, protocol.HeaderOf(parsed).Type)
	}
	return strings.Join(out, " ")
}

// done is the last message, which must be the only one of its type.
func (h *turnMessages) done() *protocol.Done {
	h.t.Helper()
	all := of[*protocol.Done](h)
	if len(all) != 1 || h.msgs[len(h.msgs)-1] != protocol.ServerMessage(all[0]) {
		h.t.Fatalf("the turn has not ended with one done: %s", h.types())
	}
	return all[0]
}

// errorTypes are the results of a turn's calls, in order; "ok" for a good answer.
func (h *turnMessages) errorTypes() []string {
	var out []string
	for _, e := range of[*protocol.ToolEnded](h) {
		if e.OK {
			out = append(out, "ok")
			continue
		}
		var sent struct{ Type string }
		if err := json.Unmarshal(e.Error, &sent); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, sent.Type)
	}
	return out
}

// last is the latest prompt.
func (f *fixture) last() textmodel.Prompt {
	f.t.Helper()
	f.model.mu.Lock()
	defer f.model.mu.Unlock()
	if len(f.model.prompts) == 0 {
		f.t.Fatal("the model was not asked")
	}
	return f.model.prompts[len(f.model.prompts)-1]
}

// answers are the envelopes at the end of a prompt.
func answers(t testing.TB, p textmodel.Prompt) []registry.Envelope {
	t.Helper()
	var out []registry.Envelope
	for _, m := range p.Messages {
		if m.Role != textmodel.RoleTool {
			continue
		}
		var env registry.Envelope
		if err := json.Unmarshal([]byte(m.Text), &env); err != nil {
			t.Fatal(err)
		}
		out = append(out, env)
	}
	return out
}

// markOf is the mark that the system text of a prompt names.
func markOf(p textmodel.Prompt) string {
	_, own, _ := strings.Cut(p.Messages[0].Text, "You are a test. ")
	return own
}

// transcript is a prompt in lines, without the system text. The mark of the conversation is written [own].
func transcript(p textmodel.Prompt) string {
	var lines []string
	own := markOf(p)
	for _, m := range p.Messages {
		switch m.Role {
		case textmodel.RoleSystem:
			continue
		case textmodel.RoleTool:
			lines = append(lines, "tool "+m.CallID)
			continue
		}
		line := string(m.Role) + ": " + m.Text
		for _, c := range m.Calls {
			line += " <" + c.ID + " " + c.Name + " " + string(c.Args) + ">"
		}
		lines = append(lines, line)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), own, "[own]")
}

// conversation is the stored conversation of an id.
func (f *fixture) conversation(id string) *conversation.Conversation {
	f.t.Helper()
	c, _, err := f.kept.Load(context.Background(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

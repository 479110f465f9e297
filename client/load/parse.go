package load

import (
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/strict"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// Limits and defaults of a script.
const (
	maxTurns  = 500
	maxWait   = 10 * time.Minute // of each time
	maxSpoken = 2000             // characters of a text other than a typed one

	// DefaultPatience exceeds the gateway's own wait for a model, so that the gateway reports a silent one.
	DefaultPatience = 20 * time.Second
	// DefaultUser gives each caller a user of its own.
	DefaultUser = "load-${session}"
)

var (
	topKeys   = []string{"name", "provider", "agent", "voice", "user", "microphone", "push_to_talk", "pause", "patience", "begin", "turns"}
	beginKeys = []string{"chat", "pending_request", "expect"}
	actKeys   = []string{"say", "type", "stop", "wait", "drop", "reload", "roam"}
	turnKeys  = append(slices.Clip(actKeys), "pause", "interrupt_after", "after", "into_speech", "wait_for", "approve", "patience",
		"expect")
	expectKeys = []string{"tool", "no_tool", "text", "no_text", "said", "within", "flush_within", "asks", "error"}
	waitWords  = []string{string(voice.ForAnswer), string(voice.ForFirstAudio), string(voice.ForNothing), string(voice.ForEnd)}
)

// ParseScript reads a script from YAML for a wire. The error, a *strict.Error, names the file.
func ParseScript(name string, data []byte, on wire.Wire) (*Script, error) {
	p := &parser{Reader: strict.NewReader(name), script: &Script{User: DefaultUser}, wire: on,
		pause: voice.DefaultPause, patience: DefaultPatience}
	if doc := p.Document(data); doc != nil {
		if top, ok := p.keys(doc, "a script", topKeys); ok {
			p.top(top)
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.script, nil
}

type parser struct {
	*strict.Reader
	script *Script
	wire   wire.Wire
	// pause and patience are the defaults of turns.
	pause, patience time.Duration
}

// keys reads a map whose keys have a meaning on the wire.
func (p *parser) keys(n *yaml.Node, what string, keys []string) (strict.Map, bool) {
	m, ok := p.Map(n, what, keys...)
	for _, key := range p.wire.Lacks {
		p.refuse(m, key, "the wire %s has no %s", p.wire.Name, key)
	}
	return m, ok
}

func (p *parser) top(m strict.Map) {
	s := p.script
	s.Name, _ = p.Text(m.Get("name"), "name")
	s.Provider, _ = p.Text(m.Get("provider"), "provider")
	s.Agent, _ = p.Text(m.Get("agent"), "agent")
	s.Voice, _ = p.Text(m.Get("voice"), "voice")
	if n := m.Get("user"); n != nil {
		s.User = p.filled(n, "user")
		if _, err := user.Parse(Variables{Session: 1, Call: 1}.Fill(s.User)); err != nil && s.User != "" {
			p.Problem(n, "user %v", err)
		}
	}
	on, ok := p.Bool(m.Get("microphone"), "microphone")
	s.NoMicrophone = ok && !on
	s.PushToTalk, _ = p.Bool(m.Get("push_to_talk"), "push_to_talk")
	if s.PushToTalk && s.NoMicrophone {
		p.Problem(m.Get("push_to_talk"), "push_to_talk needs a microphone")
	}
	p.times(m, &p.pause, &p.patience)
	if n := m.Get("begin"); n != nil {
		s.Begin = p.begin(n)
	}
	turns := m.Get("turns")
	if turns == nil {
		p.Problem(m.Node, "the key turns is missing: the list of turns")
		return
	}
	list := p.List(turns, "turns")
	if len(list) > maxTurns {
		p.Problem(turns, "%d turns are too many; at most %d are allowed", len(list), maxTurns)
		return
	}
	for i, n := range list {
		p.turn(n, i)
	}
}

// times reads the times that a script and a turn may have.
func (p *parser) times(m strict.Map, pause, patience *time.Duration) {
	if n := m.Get("pause"); n != nil {
		*pause, _ = p.Duration(n, "pause", maxWait)
	}
	if n := m.Get("patience"); n != nil {
		var ok bool
		if *patience, ok = p.Duration(n, "patience", maxWait); ok && *patience == 0 {
			p.Problem(n, "with patience 0 every turn is stuck; omit it or raise it")
		}
	}
}

func (p *parser) begin(n *yaml.Node) *Begin {
	m, ok := p.keys(n, "begin", beginKeys)
	if !ok {
		return nil
	}
	b := &Begin{Line: n.Line}
	if m.Has("chat") == m.Has("pending_request") {
		p.Problem(n, "begin needs either chat (a message to the text agent) or pending_request")
	}
	b.Chat = p.filled(m.Get("chat"), "chat")
	b.PendingRequest = p.filled(m.Get("pending_request"), "pending_request")
	if v := m.Get("expect"); v != nil {
		b.Expect = p.expect(v)
		if b.Expect.FlushWithin > 0 {
			p.Problem(v, "flush_within has no meaning in begin: it interrupts nothing")
		}
	}
	return b
}

func (p *parser) turn(n *yaml.Node, i int) {
	m, ok := p.keys(n, "a turn", turnKeys)
	if !ok {
		return
	}
	t := Turn{Line: n.Line, Turn: voice.Turn{Pause: p.pause, Patience: p.patience, WaitFor: voice.ForAnswer}}
	p.act(m, &t)
	p.times(m, &t.Pause, &t.Patience)
	if v := m.Get("approve"); v != nil {
		t.Approval = voice.ApprovalNo
		if yes, _ := p.Bool(v, "approve"); yes {
			t.Approval = voice.ApprovalYes
		}
	}
	if v := m.Get("wait_for"); v != nil {
		p.waitFor(v, &t)
	}
	if v := m.Get("expect"); v != nil {
		t.Expect = p.expect(v)
		t.Error, t.KeepText = t.Expect.Error, t.Expect.NeedsText()
	}
	if v := m.Get("interrupt_after"); v != nil {
		t.Interrupts = true
		t.InterruptAfter, _ = p.Duration(v, "interrupt_after", maxWait)
	}
	p.moment(m, &t)
	p.fits(m, &t, i)
	p.script.Turns = append(p.script.Turns, t)
}

func (p *parser) moment(m strict.Map, t *Turn) {
	answer, speech := m.Get("after"), m.Get("into_speech")
	before := spokenBefore(p.script.Turns)
	switch {
	case answer == nil && speech == nil:
	case !t.Act.Disconnects():
		for _, key := range []string{"after", "into_speech"} {
			p.refuse(m, key, "%s goes with drop, reload and roam", key)
		}
	case answer != nil && speech != nil:
		p.Problem(speech, "give after or into_speech, not both")
	case before.Act == "":
		p.Problem(m.Node, "there is no previous turn whose answer or speech could lose the connection")
	case answer != nil:
		t.From = voice.FromAnswer
		t.After, _ = p.Duration(answer, "after", maxWait)
		if before.WaitFor != voice.ForAnswer || before.Act == voice.Stop {
			p.Problem(answer, "the previous turn does not wait for its answer, so the answer cannot lose the connection")
		}
	default:
		t.From = voice.FromSpeech
		t.After, _ = p.Duration(speech, "into_speech", maxWait)
		if before.Act != voice.Say {
			p.Problem(speech, "the previous turn has no speech")
		}
	}
}

func spokenBefore(turns []Turn) (before Turn) {
	for _, t := range turns {
		if !t.Act.Disconnects() {
			before = t
		}
	}
	return before
}

func (p *parser) act(m strict.Map, t *Turn) {
	for _, key := range actKeys {
		v := m.Get(key)
		switch {
		case v == nil:
			continue
		case t.Act != "":
			p.Problem(v, "a turn has one action; this one has %s and %s", t.Act, key)
			continue
		}
		t.Act = voice.Act(key)
		switch t.Act {
		case voice.Say:
			p.say(v, t)
		case voice.Type:
			t.Text = p.filled(v, "type")
			if err := p.wire.Typed(Variables{}.Fill(t.Text)); err != nil {
				p.Problem(v, "type: %v", err)
			}
		case voice.Stop, voice.Roam:
			if on, ok := p.Bool(v, key); ok && !on {
				p.Problem(v, "%s must be true or omitted", key)
			}
		case voice.Wait, voice.Drop, voice.Reload:
			t.Wait, _ = p.Duration(v, key, maxWait)
		}
	}
	if t.Act == "" {
		p.Problem(m.Node, "the turn has no action; give it one of %s", strict.Join(actKeys))
	}
}

func (p *parser) say(v *yaml.Node, t *Turn) {
	if v.Kind == yaml.ScalarNode {
		t.Text = p.text(v, "say", maxSpoken)
		return
	}
	m, ok := p.Map(v, "say", "recording")
	if !ok {
		return
	}
	r := m.Get("recording")
	if r == nil {
		p.Problem(v, "say needs a text, or recording: the name of a file, or any")
		return
	}
	t.Recording = p.text(r, "recording", maxSpoken)
}

func (p *parser) waitFor(v *yaml.Node, t *Turn) {
	if v.Kind == yaml.ScalarNode {
		word, _ := p.Word(v, "wait_for", waitWords...)
		t.WaitFor = voice.WaitFor(word)
		return
	}
	m, ok := p.keys(v, "wait_for", []string{"tool"})
	if !ok {
		return
	}
	tool := m.Get("tool")
	if tool == nil {
		p.Problem(v, "wait_for must be one of %s, or tool with a name", strict.Join(waitWords))
		return
	}
	t.WaitFor = voice.ForTool
	t.Tool = p.text(tool, "tool", maxSpoken)
}

// fits rejects meaningless combinations, because silently ignoring an expectation is worse than an error.
func (p *parser) fits(m strict.Map, t *Turn, i int) {
	if t.Act == voice.Say && p.script.NoMicrophone {
		p.refuse(m, "say", "say needs a microphone; remove microphone: false, or use type")
	}
	if t.Act.Disconnects() {
		for _, key := range []string{"wait_for", "approve", "expect", "patience", "interrupt_after"} {
			p.refuse(m, key, "%s has no meaning with %s, which says nothing", key, t.Act)
		}
		return
	}
	if t.Act == voice.Wait || t.Act == voice.Stop {
		for _, key := range []string{"wait_for", "approve"} {
			p.refuse(m, key, "%s has no meaning with %s", key, t.Act)
		}
	}
	if t.Act == voice.Wait {
		p.refuse(m, "interrupt_after", "interrupt_after has no meaning with wait")
		p.refuse(m, "expect", "expect has no meaning with wait: nothing is asked")
	}
	if t.Act == voice.Stop && !t.Interrupts {
		p.Problem(m.Get("stop"), "stop needs interrupt_after, the time of the button press")
	}
	if t.Interrupts {
		p.refuse(m, "pause", "pause has no meaning with interrupt_after")
		p.interrupts(m.Get("interrupt_after"), i)
	}
	if t.Expect.FlushWithin > 0 && !t.Interrupts {
		p.refuse(m, "expect", "flush_within goes with interrupt_after")
	}
	if t.WaitFor == voice.ForNothing && t.Expect.Within > 0 {
		p.refuse(m, "expect", "within has no meaning with wait_for: nothing")
	}
	if t.Act == voice.Stop && (t.Expect.Within > 0 || t.Expect.NeedsText() || len(t.Expect.Tools) > 0) {
		p.refuse(m, "expect", "the stop button gets no answer; it can expect flush_within, no_tool and error")
	}
}

func (p *parser) refuse(m strict.Map, key, format string, args ...any) {
	if v := m.Get(key); v != nil {
		p.Problem(v, format, args...)
	}
}

func (p *parser) interrupts(v *yaml.Node, i int) {
	turns := p.script.Turns
	if i == 0 {
		p.Problem(v, "the first turn has no answer to interrupt")
		return
	}
	if len(turns) < i {
		return // an invalid turn, already reported
	}
	switch before := spokenBefore(turns); {
	case before.Act == "":
		p.Problem(v, "this turn has no previous answer to interrupt")
	case before.Act == voice.Wait || before.Act == voice.Stop:
		p.Problem(v, "the previous turn (%s) gets no answer", before.Act)
	case before.WaitFor != voice.ForAnswer:
		p.Problem(v, "the previous turn waits for %s; remove its wait_for, because this turn interrupts its answer", before.WaitFor)
	}
}

func (p *parser) expect(n *yaml.Node) Expect {
	m, ok := p.keys(n, "expect", expectKeys)
	if !ok {
		return Expect{}
	}
	var e Expect
	e.Tools = p.names(m.Get("tool"), "tool")
	e.NoTools = p.names(m.Get("no_tool"), "no_tool")
	e.Asks = p.names(m.Get("asks"), "asks")
	e.Text = p.pattern(m.Get("text"), "text")
	e.NoText = p.pattern(m.Get("no_text"), "no_text")
	e.Said = p.pattern(m.Get("said"), "said")
	e.Within = p.limit(m.Get("within"), "within")
	e.FlushWithin = p.limit(m.Get("flush_within"), "flush_within")
	e.Error = p.text(m.Get("error"), "error", maxSpoken)
	for _, tool := range e.Tools {
		if slices.Contains(e.NoTools, tool) || slices.Contains(e.NoTools, AnyTool) {
			p.Problem(m.Get("no_tool"), "%s cannot be both called and not called", tool)
		}
		if tool == AnyTool {
			p.Problem(m.Get("tool"), "tool needs names; any is only for no_tool")
		}
	}
	return e
}

func (p *parser) limit(n *yaml.Node, what string) time.Duration {
	d, ok := p.Duration(n, what, maxWait)
	if ok && d == 0 {
		p.Problem(n, "%s must be above 0; omit it or raise it", what)
	}
	return d
}

func (p *parser) names(n *yaml.Node, what string) []string {
	if n == nil {
		return nil
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = p.List(n, what)
	}
	var out []string
	for _, v := range nodes {
		name := p.text(v, what, maxSpoken)
		if slices.Contains(out, name) {
			p.Problem(v, "%s names %q twice", what, name)
			continue
		}
		out = append(out, name)
	}
	return out
}

func (p *parser) pattern(n *yaml.Node, what string) *regexp.Regexp {
	text := p.text(n, what, maxSpoken)
	if text == "" {
		return nil
	}
	if _, err := regexp.Compile(text); err != nil {
		p.Problem(n, "%s is not a regular expression: %v", what, err)
		return nil
	}
	re, err := regexp.Compile("(?is)" + text)
	if err != nil {
		p.Problem(n, "the regular expression %s is too large: %v", what, err)
		return nil
	}
	return re
}

// text reads a non-empty text of limited length. Like the methods of [strict.Reader] it accepts nil for a missing
// key.
func (p *parser) text(n *yaml.Node, what string, longest int) string {
	s, ok := p.Text(n, what)
	switch {
	case !ok:
		return ""
	case s == "":
		p.Problem(n, "%s is empty", what)
	case utf8.RuneCountInString(s) > longest:
		p.Problem(n, "%s has more than %d characters", what, longest)
	}
	return s
}

func (p *parser) filled(n *yaml.Node, what string) string {
	s := p.text(n, what, protocol.MaxTextChars)
	for _, found := range variable.FindAllStringSubmatch(s, -1) {
		if !slices.Contains(variables, found[1]) {
			p.Problem(n, "%s has no variable ${%s}%s; known: %s", what, found[1], strict.Near(found[1], variables), strict.Join(variables))
		}
	}
	return s
}

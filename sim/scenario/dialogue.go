package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialogue is one conversation. It is not safe for concurrent use. Keep it while its session may be resumed.
type Dialogue struct {
	// Fixed after NewDialogue.
	scenario *Scenario

	// Owned by the caller.
	source *rand.PCG // of rand
	rand   *rand.Rand
	spoken int         // utterances heard
	inputs int         // inputs of any kind
	used   map[int]int // how often each rule was used
	last   string      // the last line spoken
	then   []step      // for the results; nil without a script
	failed []step      // for failed results; nil without a script
	vars   map[string]string
	kept   map[string]string // values kept by remember steps
	// owed are the calls that then and failed belong to; nil if the last turn made none.
	owed []string
	past []past // the lines said, the newest last
}

// NewDialogue begins a conversation. The same seed and inputs give the same answers. A nil Scenario means Default().
func (s *Scenario) NewDialogue(seed uint64) *Dialogue {
	if s == nil {
		s = Default()
	}
	source := rand.NewPCG(seed, 0x7361796174)
	return &Dialogue{scenario: s, source: source, rand: rand.New(source), used: map[int]int{}, kept: map[string]string{}}
}

type match struct {
	heard string // transcript
	known string // known words; empty for speech without a script
	as    bool   // the input is treated as known
	rules []int  // rules used
	steps []step // nil for auto
	vars  map[string]string
}

// Hear answers a complete input of the user: for speech, call it after its end.
func (d *Dialogue) Hear(h Heard, c Context) Turn { return d.hear(h, c, false) }

func (d *Dialogue) hear(h Heard, c Context, again bool) Turn {
	m := d.match(h, c)
	d.inputs++
	if h.Spoken {
		d.spoken++
	}
	for _, i := range m.rules {
		d.used[i]++
	}
	if m.as {
		d.note(true, m.known)
	} else {
		d.note(true, m.heard)
	}
	b := builder{d: d, c: c, vars: vars{values: m.vars}, text: m.known, spoken: h.Spoken, heard: h.Duration, again: again}
	d.vars = m.vars
	d.owed = nil
	if m.steps == nil {
		b.auto()
	} else {
		b.add(m.steps)
	}
	b.force()
	return Turn{Heard: m.heard, Steps: b.finish()}
}

// Fork returns an independent copy for an answer outside the conversation. It makes other choices than d.
func (d *Dialogue) Fork() *Dialogue {
	copied := d.Clone()
	copied.source = rand.NewPCG(uint64(d.inputs), 0x6173696465)
	copied.rand = rand.New(copied.source)
	return copied
}

// Overhear records an unanswered input, counts an utterance, and returns the transcript.
func (d *Dialogue) Overhear(h Heard, c Context) string {
	m := d.match(h, c)
	d.inputs++
	if h.Spoken {
		d.spoken++
	}
	d.note(true, m.heard)
	return m.heard
}

// Clone returns an independent copy that makes the same choices, for a resumed session.
func (d *Dialogue) Clone() *Dialogue {
	copied := *d
	copied.used = maps.Clone(d.used)
	copied.vars = maps.Clone(d.vars)
	copied.kept = maps.Clone(d.kept)
	copied.past = slices.Clone(d.past)
	source := *d.source
	copied.source = &source
	copied.rand = rand.New(copied.source)
	return &copied
}

// New begins another conversation of the same scenario, without d's memory, seeded from d.
func (d *Dialogue) New() *Dialogue { return d.scenario.NewDialogue(d.rand.Uint64()) }

// Transcript returns the transcript of h without answering or changing anything, for wires that send it without an
// answer (create_response false) and pass h to Hear later.
func (d *Dialogue) Transcript(h Heard) string { return d.match(h, Context{}).heard }

// Expected returns the words that the next utterance will have, if a rule gives them; it changes nothing.
func (d *Dialogue) Expected(c Context) (words string, ok bool) {
	m := match{vars: d.values(0, c)}
	m.vars["text"], m.vars["utterance"] = "", strconv.Itoa(d.spoken+1)
	d.matchSpeech(&m, d.spoken+1, c)
	return m.known, m.known != ""
}

// unknownSpeech is the transcript of speech whose words no rule gives.
const unknownSpeech = "(speech, %.1f seconds)"

// HeardIn returns the input of a transcript: typed text, or the speech of such a transcript.
func HeardIn(transcript string) Heard {
	var seconds float64
	n, err := fmt.Sscanf(transcript, "(speech, %f seconds)", &seconds)
	if n == 1 && err == nil && strings.HasSuffix(transcript, "seconds)") {
		return Heard{Spoken: true, Duration: time.Duration(seconds * float64(time.Second))}
	}
	return Heard{Text: transcript}
}

// match finds the rules for an input. Speech is matched by number first; a rule that only gives its words leads on to
// the rules for text.
func (d *Dialogue) match(h Heard, c Context) match {
	m := match{heard: h.Text, known: h.Text}
	m.vars = d.values(h.Duration, c)
	m.vars["text"] = h.Text
	if h.Spoken && h.Text == "" {
		m.heard = fmt.Sprintf(unknownSpeech, h.Duration.Seconds())
		n := d.spoken + 1
		m.vars["utterance"] = strconv.Itoa(n)
		if d.matchSpeech(&m, n, c) {
			return m
		}
	}
	if m.known == "" {
		m.steps = d.scenario.otherwise
		return m
	}
	for range maxTreatAs {
		m.steps = d.scenario.otherwise
		if !d.matchText(&m, c) {
			break
		}
	}
	return m
}

const maxTreatAs = 5

// matchText finds the rule for the known words; true if it treats them as other words.
func (d *Dialogue) matchText(m *match, c Context) (again bool) {
	m.vars["text"], m.vars["event"] = m.known, event(m.known, nowOf(c))
	for i := range d.scenario.rules {
		u := &d.scenario.rules[i]
		if u.when.input != onText || !d.usable(i, c) || !capture(u.when.text, m.known, m.vars) || !u.when.knows(c.Memory, m.vars) {
			continue
		}
		m.rules, m.steps = append(m.rules, i), u.do
		if len(u.do) != 1 || u.do[0].key != "treat_as" {
			return false
		}
		m.steps = nil // a cycle ends in auto
		if text := strings.TrimSpace(u.do[0].as.fill(vars{values: m.vars})); text != "" {
			m.known, m.as = text, true
			return true
		}
		return false
	}
	return false
}

// matchSpeech tries the rules for utterance n; true if one of them has steps.
func (d *Dialogue) matchSpeech(m *match, n int, c Context) bool {
	for i := range d.scenario.rules {
		u := &d.scenario.rules[i]
		if u.when.input != onSpeech || u.when.utterance != 0 && u.when.utterance != n || !d.usable(i, c) ||
			!u.when.knows(c.Memory, m.vars) {
			continue
		}
		m.rules = append(m.rules, i)
		if !u.heard.empty() {
			m.known = u.heard.fill(vars{values: m.vars})
			m.heard = m.known
			m.vars["text"] = m.known
		}
		if u.do != nil {
			m.steps = u.do
			return true
		}
		return false
	}
	return false
}

func (d *Dialogue) usable(i int, c Context) bool {
	u := &d.scenario.rules[i]
	if u.times > 0 && d.used[i] >= u.times {
		return false
	}
	return u.when.declared == "" || c.Delegates || c.tool(u.when.declared) != nil
}

// capture matches text and puts the groups into values. A nil pattern matches everything.
func capture(re *regexp.Regexp, text string, values map[string]string) bool {
	if re == nil {
		return true
	}
	at := re.FindStringSubmatch(text)
	if at == nil {
		return false
	}
	for i, name := range re.SubexpNames() {
		values[strconv.Itoa(i)] = at[i]
		if name != "" {
			values[name] = at[i]
		}
	}
	return true
}

func (c *Context) tool(name string) *Tool {
	for i := range c.Tools {
		if c.Tools[i].Name == name {
			return &c.Tools[i]
		}
	}
	return nil
}

// Results answers all results since the last answer, in the order of their calls: first the then or on_error steps,
// then the rules for results; otherwise it speaks the results.
func (d *Dialogue) Results(rs []Result, c Context) Turn {
	return d.results(rs, c, false)
}

func (d *Dialogue) results(rs []Result, c Context, again bool) Turn {
	b := builder{d: d, c: c, vars: vars{values: maps.Clone(d.kept)}, again: again}
	maps.Copy(b.vars.values, d.vars)
	d.owed = nil
	first := outcome{ok: true}
	failed := false
	for i, r := range rs {
		o := judge(r.Output)
		if i == 0 || !o.ok && !failed {
			first = o
			b.vars.values["tool"] = r.Name
		}
		failed = failed || !o.ok
	}
	b.vars.values["memory"] = memoryText(c.Memory)
	spoken := speakResults(rs)
	b.vars.values["result"], b.vars.values["error"] = spoken, first.errType
	b.vars.result = first.value

	steps, scripted := d.then, d.then != nil
	if failed && d.failed != nil {
		steps, scripted = d.failed, true
	}
	if scripted {
		d.then, d.failed = nil, nil
		b.add(steps)
		return Turn{Steps: b.finish()}
	}
	for _, r := range rs {
		if i := d.matchResult(r, c, &b.vars); i >= 0 {
			d.used[i]++
			b.add(d.scenario.rules[i].do)
			return Turn{Steps: b.finish()}
		}
	}
	if spoken != "" {
		b.say(spoken)
	}
	return Turn{Steps: b.finish()}
}

func (d *Dialogue) matchResult(r Result, c Context, v *vars) int {
	o := judge(r.Output)
	for i := range d.scenario.rules {
		w := &d.scenario.rules[i].when
		if w.input != onResult || w.tool != "" && w.tool != r.Name || !d.usable(i, c) {
			continue
		}
		if w.ok != nil && *w.ok != o.ok || w.errType != "" && w.errType != o.errType {
			continue
		}
		if capture(w.output, r.Output, v.values) && w.knows(c.Memory, v.values) {
			v.values["tool"], v.values["error"], v.result = r.Name, o.errType, o.value
			return i
		}
	}
	return -1
}

// Continue answers a request without new input: with a greeting at first, later with something short.
func (d *Dialogue) Continue(c Context) Turn {
	b := builder{d: d, c: c, vars: vars{values: d.values(0, c)}}
	last := cmp.Or(d.last, lastSaid(c.Memory))
	switch {
	case d.inputs == 0 && last == "" && d.scenario.start != nil:
		b.add(d.scenario.start)
	case last == "":
		b.say("Hello! What can I do for you?")
	default:
		b.say("There is nothing new to answer. I said: " + last)
	}
	b.force()
	return Turn{Steps: b.finish()}
}

type builder struct {
	d      *Dialogue
	c      Context
	vars   vars
	text   string // known words of the input
	spoken bool
	heard  time.Duration
	steps  []Step
	called bool
	kept   bool // a call was omitted because tools are off
	again  bool // the input was answered before: see Replay
}

func (b *builder) add(steps []step) {
	for i := range steps {
		steps[i].run(b)
		if s := &steps[i]; s.key == "call" && !b.c.ToolsOff {
			b.d.then, b.d.failed = s.then, s.onError
		}
	}
}

func (b *builder) pick(lines []template) string { return lines[b.d.rand.IntN(len(lines))].fill(b.vars) }

func (b *builder) remember(keep map[string]template) {
	filled := make(map[string]string, len(keep))
	for name, value := range keep { // values from before the step
		filled[name] = value.fill(b.vars)
	}
	maps.Copy(b.d.kept, filled)
	maps.Copy(b.vars.values, filled)
	if b.d.vars != nil {
		maps.Copy(b.d.vars, filled)
	}
}

func (b *builder) say(text string) {
	if text == "" { // all of the line's variables are empty
		return
	}
	b.d.last = text
	b.steps = append(b.steps, Say{Text: text})
}

func (b *builder) refuse(text string) {
	b.say(text)
	if n := len(b.steps); n > 0 && text != "" {
		b.steps[n-1] = Say{Text: text, Refusal: true}
	}
}

func (b *builder) call(steps []callStep) {
	if b.c.ToolsOff {
		b.kept = true
		return
	}
	var calls []Call
	for _, cs := range steps {
		want := schema{}
		if t := b.c.tool(cs.tool); t != nil {
			want = parseSchema(t.Parameters)
		}
		args, err := json.Marshal(fillArgs(cs.args, b.vars, want))
		if err != nil { // Parse accepts only JSON values
			args = []byte("{}")
		}
		calls = append(calls, Call{Name: cs.tool, Args: args, ID: cs.id.fill(b.vars), WithoutID: cs.noID, Repeat: cs.repeat, Late: cs.late})
	}
	b.calls(calls)
}

func (b *builder) calls(calls []Call) {
	b.called = true
	b.d.then, b.d.failed, b.d.owed = nil, nil, make([]string, len(calls))
	for i, c := range calls {
		b.d.owed[i] = c.Name
	}
	b.steps = append(b.steps, Calls{Calls: calls})
}

func (b *builder) force() {
	if b.called || b.again || b.c.ToolsOff || !b.c.ToolRequired && b.c.ToolNamed == "" {
		return
	}
	for _, s := range b.steps {
		if _, ends := s.(End); ends {
			return
		}
	}
	if calls := b.choose(); len(calls) > 0 {
		b.steps = nil // a required call comes without an answer
		b.calls(calls)
	}
}

func (b *builder) finish() []Step {
	if b.kept && len(b.steps) == 0 {
		b.say("I may not use my tools for this, so that is all I can say.")
	}
	if !b.again {
		for _, s := range b.steps {
			if s, ok := s.(Say); ok {
				b.d.note(false, s.Text)
			}
		}
	}
	return b.steps
}

package orchestrator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// Exact sentences are said in given words, by the gateway or by PlayExact. One waits until its audio is there and the
// model is silent: it is never said in the middle of an answer, and the next answer plays behind it. It is an item of
// its own turn or, if a tool asked for it and the model waits for that tool, of the tool's turn: the call counts as
// running until the sentence was heard, and then ends with the tool's result.
//
// The session's notice comes first. Until it was heard the user is not listened to, and what was typed waits.

// Exact is a sentence that the user must still hear. Checkpoints contain its JSON form.
type Exact struct {
	Text     string `json:"text"`
	MustHear bool   `json:"must_hear,omitempty"` // it is said again until it was heard, at most maxExactTries times
	Notice   bool   `json:"notice,omitempty"`    // the session waits for it
}

// PrepareExact asks for the audio of a sentence. ExactReady or ExactFailed reports the result.
type PrepareExact struct{ ID, Text string }

// PlayExact queues the audio of a sentence, from ExactReady, as an item, which is open.
type PlayExact struct {
	Item  string
	Audio any
}

// SendExact has the provider play a sentence, by transport.PlayExact.
type SendExact struct{ Audio any }

// HoldUser replaces the user's audio by silence until a HoldUser without On.
type HoldUser struct{ On bool }

func (PrepareExact) action() {}
func (PlayExact) action()    {}
func (SendExact) action()    {}
func (HoldUser) action()     {}

// ExactReady reports that the audio of a sentence is there, AudioMS long.
type ExactReady struct {
	ID      string
	AudioMS int64
	Audio   any // opaque; PlayExact and SendExact have it
}

// ExactFailed reports that a sentence has no audio.
type ExactFailed struct{ ID string }

const (
	maxExacts     = 4  // limits the sentences that wait
	maxHeld       = 16 // limits the inputs that wait for the notice
	maxExactTries = 3
	// exactPatience limits the wait for a sentence's audio and, for a tool's, for its turn.
	exactPatience = 20 * time.Second
	// exactSlack is how much of a sentence's end may be unheard, in ms: less than a syllable, as clients round.
	exactSlack = 100
)

// Ways of saying a sentence, for the audit.
const (
	saidExactly = "exact"
	saidByModel = "by_model"
	saidNot     = "unsaid"
)

// sayings are the sentences that must be said exactly. State.clone copies it, and the page with it.
type sayings struct {
	named   int
	prefix  string  // makes names unique across processes
	all     []exact // the first is being said, or next
	held    []Input // what waits for the notice, oldest first
	results []heldResult
	gone    heardItem // the latest sentence that has left the line
}

type heardItem struct {
	item string
	ms   int64
}

// heldResult is a tool's result that waits for its sentences. why has why each sentence was not heard, in order; empty if it
// was.
type heldResult struct {
	in    calls.Finished
	waits int
	why   []string
}

type exact struct {
	Exact
	id      string
	call    string // its result waits; empty if none does
	asked   string // the call that asked for it, for the audit
	turn    int    // of that call, or the last one
	by      time.Time
	ready   bool
	failed  bool // it has no audio
	audioMS int64
	audio   any
	tries   int
	sent    bool   // the provider was asked to play it
	refused bool   // the provider did not
	item    string // that says it; empty if none does
	reading bool   // the model reads it, in a turn of its own
	over    bool   // that turn is over
	whole   bool   // and completed
}

func (s *sayings) clone() *sayings {
	if s == nil {
		return nil
	}
	c := *s
	c.all, c.held, c.results = slices.Clone(s.all), slices.Clone(s.held), slices.Clone(s.results)
	for i := range c.results {
		c.results[i].why = slices.Clone(c.results[i].why)
	}
	return &c
}

// first returns the sentence that is being said, or next; nil without one.
func (s *sayings) first() *exact {
	if s == nil || len(s.all) == 0 {
		return nil
	}
	return &s.all[0]
}

// noticeOpen reports whether the user must still hear the notice.
func (s *sayings) noticeOpen() bool { e := s.first(); return e != nil && e.Notice }

func (m *turnControl) addExact(e exact) {
	if m.sayings == nil {
		m.page = &page{m.contexts, m.resultAt, &sayings{}}
	}
	m.sayings.named++
	e.id, e.by = "exact_"+m.sayings.prefix+strconv.Itoa(m.sayings.named), m.at.Add(exactPatience)
	m.sayings.all = append(m.sayings.all, e)
	m.do(PrepareExact{e.id, e.Text})
	if e.Notice {
		m.do(HoldUser{On: true})
	}
}

// holds keeps an input of the user until the notice was heard. It returns false without one.
func (m *turnControl) holds(in Input) bool {
	switch {
	case !m.sayings.noticeOpen():
		return false
	case len(m.sayings.held) >= maxHeld:
		m.do(Failed{Failure: FailureUnsent, Retryable: true})
	default:
		m.sayings.held = append(m.sayings.held, in)
	}
	return true
}

func (in ExactReady) take(m *machine) {
	m.prepared(in.ID, func(e *exact) { e.ready, e.audioMS, e.audio = true, in.AudioMS, in.Audio })
}

func (in ExactFailed) take(m *machine) { m.prepared(in.ID, func(e *exact) { e.failed = true }) }

func (m *machine) prepared(id string, change func(*exact)) {
	if m.sayings == nil {
		return
	}
	if i := slices.IndexFunc(m.sayings.all, func(e exact) bool { return e.id == id && !e.ready && !e.failed }); i >= 0 {
		change(&m.sayings.all[i])
	}
}

// sayAfter keeps a tool's result that asks for sentences until they were said. It returns false if it asks for none, or they
// cannot be said now.
func (m *callControl) sayAfter(in calls.Finished) bool {
	if m.sayings != nil && slices.ContainsFunc(m.sayings.results, func(r heldResult) bool { return r.in.Call == in.Call }) {
		return true
	}
	turn, wanted, runs := m.calls.Running(in.Call)
	if !runs || m.phase != PhaseActive || !in.Envelope.OK || in.Envelope.Meta.CacheHit || m.sayings.noticeOpen() {
		return false
	}
	var all []registry.Intent
	for _, i := range in.Envelope.Intents {
		if i.Type == registry.IntentSayExactly && (wanted || i.MustHear) {
			all = append(all, i)
		}
	}
	if len(all) == 0 || m.sayings != nil && len(m.sayings.all)+len(all) > maxExacts {
		return false
	}
	for _, i := range all {
		m.addExact(exact{Exact: Exact{Text: i.Text, MustHear: i.MustHear}, call: in.Call, asked: in.Call, turn: turn})
	}
	m.sayings.results = append(m.sayings.results, heldResult{in: in, waits: len(all)})
	return true
}

// release lets the call's result pass once its last sentence is over. said tells the model what came of this one.
func (m *callControl) release(e *exact, why, said string) {
	i := slices.IndexFunc(m.sayings.results, func(r heldResult) bool { return r.in.Call == e.call })
	if e.call = ""; i < 0 {
		return
	}
	r := &m.sayings.results[i]
	r.why = append(r.why, why)
	r.in.Envelope.Meta.Said = strings.TrimSpace(r.in.Envelope.Meta.Said + " " + said)
	if r.waits--; r.waits > 0 {
		return
	}
	done := *r
	m.sayings.results = slices.Delete(m.sayings.results, i, i+1)
	m.finished(done.in, done.why)
}

// finished ends a call. why has why its sentences were not heard.
func (m *callControl) finished(in calls.Finished, why []string) {
	if do, ok := m.calls.Finished(in); ok {
		m.lastActive, m.unsaid = m.at, why
		m.carryOut(do)
		m.unsaid = nil
	}
}

// notSaid returns why the next sentence of the call that has just ended was not heard.
func (m *callControl) notSaid() (why string) {
	if len(m.unsaid) == 0 {
		return "the session cannot say it now"
	}
	why, m.unsaid = m.unsaid[0], m.unsaid[1:]
	return why
}

// place reports whether the next sentence may begin now, except for the wait after the user's speech; inTurn means as a part
// of the open turn.
func place(s State, e *exact) (inTurn, ok bool) {
	t := s.turn
	switch {
	case s.phase != PhaseActive || s.away() || s.leaving() || s.user.speaks(), !s.overlookedAt().IsZero(),
		slices.ContainsFunc(s.line.items, func(it item) bool { return !it.ended }):
		return false, false
	case t == nil:
		return false, !(e.failed && s.down()) // an earlier response may never end
	}
	return true, !e.failed && e.call != "" && t.number == e.turn && t.stage != done && t.cut == uncut && s.calls.Owed(t.number) &&
		(!s.response.underWay || !s.caps.RespondNeeded && s.calls.Holds(s.continues))
}

// talksOver reports that the model hears a user who is not listened to. What waits for the notice waits for its correction.
func talksOver(s State, e *exact) bool { return e.Notice && s.user.speaks() }

// exactFrom returns from when a sentence may follow the user's speech, which may get no answer if it was noise.
func exactFrom(s State) time.Time {
	at := latest(s.user.quietAt, s.workedUntil())
	if s.user.unanswered {
		at = latest(at, s.user.known.Add(s.policy.NudgeAfter))
	}
	return at
}

// exactAt returns the time at which the next sentence was heard, or may begin. Zero if something else comes first.
func (s State) exactAt() (at time.Time) {
	e := s.sayings.first()
	switch {
	case e == nil || s.phase != PhaseActive || e.reading || e.sent && e.item == "" || talksOver(s, e):
		return at
	case e.item != "":
		if i := s.line.index(e.item); i >= 0 && s.line.stopped.IsZero() {
			return s.line.heardAt(i)
		}
		return at
	}
	if inTurn, ok := place(s, e); ok && !inTurn && (e.ready || e.failed) {
		return exactFrom(s)
	}
	return at
}

// lateAt returns when the sentence at index i counts as one without audio, or the provider's turn to play it is over. Nothing
// is late while another sentence is being said.
func lateAt(s State, i int) (at time.Time) {
	e, first := &s.sayings.all[i], &s.sayings.all[0]
	if s.away() || e.failed || e.ready && e.call == "" && !e.sent || first.item != "" || first.reading {
		return at
	}
	return latest(e.by, s.absence.back.Add(exactPatience))
}

func exactDueAt(s State) (at time.Time) {
	if s.sayings.first() == nil || s.phase != PhaseActive {
		return at
	}
	at = s.exactAt()
	for i := range s.sayings.all {
		at = sooner(at, lateAt(s, i))
	}
	return at
}

// exactDue precedes the other deadlines, which may have waited for a call that a sentence has delayed.
func (m *machine) exactDue() {
	for i := range m.sayings.all {
		switch e := &m.sayings.all[i]; {
		case !m.overdue(lateAt(m.State, i)):
		case e.sent:
			e.sent, e.refused, e.by = false, true, m.at.Add(exactPatience)
		default:
			e.failed = true
		}
	}
	m.settleTurn()
	m.settleExacts()
}

// settleExacts continues with the sentences and with the inputs that waited for them.
func (m *machine) settleExacts() {
	// A call does not wait behind another sentence for one that cannot be said: that sentence may wait for the call's turn.
	for _, e := range slices.Clone(m.sayings.all) {
		if e.failed && e.call != "" {
			m.exactOver(&e, saidNot, false, 0)
		}
	}
	for m.sayExacts(); m.turn != nil && m.phase != PhaseEnded; m.sayExacts() {
		if m.settleTurn(); m.turn != nil {
			break
		}
	}
	if m.endNow && m.phase != PhaseEnded {
		m.breakOff(EndTool)
	}
}

// sayExacts says as many of the sentences as possible.
func (m *machine) sayExacts() {
	for e := m.sayings.first(); e != nil && m.phase == PhaseActive && !talksOver(m.State, e); e = m.sayings.first() {
		ms, over := int64(0), false
		if e.item != "" {
			if ms, over = m.exactHeard(e.item); !over {
				return
			}
			m.wasSaid(e, ms)
			continue
		}
		inTurn, ok := place(m.State, e)
		switch {
		case e.reading && e.over:
			m.wasRead(e)
		case e.reading || e.sent:
			return
		case e.failed && m.policy.RefuseUnsaid:
			m.exactOver(e, saidNot, false, 0)
		case !ok || !inTurn && m.at.Before(exactFrom(m.State)):
			return
		case e.failed:
			m.readExact(e)
			return
		case !e.ready:
			return
		case !e.refused && e.audioMS <= 1000*int64(m.caps.PlaysExact) && !m.down():
			e.sent, e.by = true, m.at.Add(exactPatience)
			m.do(SendExact{e.audio})
			return
		default:
			m.sayExact(e)
		}
	}
}

// sayExact says a sentence, in the open turn or in its own.
func (m *machine) sayExact(e *exact) {
	if m.turn == nil {
		m.openOwnTurn()
		m.turn.stage, m.turn.exact = done, true
	}
	item := e.id + "_" + strconv.Itoa(e.tries+1)
	if !m.line.meet(item) || !m.line.say(item, m.turn.number, m.at, e.audioMS) {
		e.failed = true // too many items wait, or the model took the name
		return
	}
	m.do(OpenItem{Item: item, Turn: m.turn.number}, PlayExact{item, e.audio})
	m.showExact(e, item)
	m.do(EndItem{Item: item, Turn: m.turn.number, AudioMS: e.audioMS})
}

func (m *machine) showExact(e *exact, item string) {
	e.item, e.turn, e.sent = item, m.turn.number, false
	if !m.suppressed.transcript {
		m.do(Transcript{Turn: e.turn, ID: item, Role: transport.RoleAssistant, Text: e.Text, Final: true, StartedAt: m.at})
	}
}

// playsExact recognizes the item in which the provider plays a sentence.
func (m *machine) playsExact(item string) {
	if e := m.sayings.first(); e != nil && e.sent && m.response.exact {
		m.line.items[len(m.line.items)-1].exact = true
		m.showExact(e, item)
	}
}

// exactSounds reports whether the user hears an exact sentence.
func (m *turnControl) exactSounds() bool {
	e := m.sayings.first()
	return e != nil && e.item != "" && m.line.index(e.item) >= 0
}

// says reports whether the item says a sentence whose words are known.
func (s *sayings) says(item string) bool {
	e := s.first()
	return e != nil && e.item == item && item != ""
}

// exactHeard returns how much of an item was heard, in ms, once no more of it will be.
func (m *turnControl) exactHeard(item string) (ms int64, over bool) {
	if i := m.line.index(item); i >= 0 {
		return m.line.exactMS(i, m.at), !m.line.unheard(i, m.at)
	}
	if i := slices.IndexFunc(m.cuts, func(c cut) bool { return c.item == item }); i >= 0 {
		return m.cuts[i].heardMS, false
	}
	if m.sayings.gone.item == item {
		ms = m.sayings.gone.ms
	}
	return ms, true
}

// settleLine drops the items that are over.
func (m *turnControl) settleLine() {
	if e := m.sayings.first(); e != nil && e.item != "" {
		if i := m.line.index(e.item); i >= 0 && m.line.over(i, m.at) {
			m.sayings.gone = heardItem{e.item, m.line.exactMS(i, m.at)}
		}
	}
	m.line.settle(m.at)
}

func (e *exact) heard(ms int64) bool { return ms+exactSlack >= e.audioMS }

// wasSaid ends an attempt. A sentence that must be heard is said again, but its tool's result waits no longer.
func (m *machine) wasSaid(e *exact, ms int64) {
	e.tries++
	e.item = ""
	if whole := e.heard(ms); whole || !(e.MustHear || e.Notice) || e.tries >= maxExactTries {
		m.exactOver(e, saidExactly, whole, ms)
		return
	}
	m.nextExact()
	if e.call != "" {
		m.release(e, "", prompts.ExactAgain(e.Text))
	}
}

// nextExact gives the waiting sentences time: none is being said now.
func (m *machine) nextExact() {
	for i := range m.sayings.all {
		m.sayings.all[i].by = m.at.Add(exactPatience)
	}
}

// readExact asks the model to read a sentence, in a turn of its own.
func (m *machine) readExact(e *exact) {
	m.openCausedTurn()
	m.turn.exact, e.reading, e.over, e.turn = true, true, false, m.turn.number
	m.sendNotice(prompts.ReadExactly(e.Text))
}

// exactTurnOver records the end of a turn in which the model reads a sentence.
func (m *turnControl) exactTurnOver(t *turn, completed bool) {
	if e := m.sayings.first(); e != nil && e.reading && e.turn == t.number {
		e.over, e.whole = true, completed && t.spoke
	}
}

func (m *machine) wasRead(e *exact) {
	e.tries++
	e.reading, e.over = false, false
	if e.whole || !(e.MustHear || e.Notice) || e.tries >= maxExactTries {
		m.exactOver(e, saidByModel, e.whole, 0)
		return
	}
	m.nextExact()
}

// exactOver ends a sentence: in the audit, for the model, and for what waited for it.
func (m *machine) exactOver(e *exact, spoken string, heard bool, ms int64) {
	was := *e
	why := ""
	switch {
	case spoken == saidNot && !m.policy.RefuseUnsaid:
		spoken, why = saidByModel, "it could not be said, so the model was asked to read it"
	case spoken == saidNot:
		why = "it could not be said"
	case !heard:
		why = "the user did not hear it to its end"
	}
	m.auditExact(&was, spoken, heard, ms, why)
	m.sayings.all = slices.DeleteFunc(m.sayings.all, func(e exact) bool { return e.id == was.id })
	m.nextExact()
	if _, reported, _ := m.calls.Running(was.call); spoken == saidExactly && !reported {
		m.knowExact(&was, ms)
	}
	switch {
	case was.call != "":
		m.release(&was, why, saidToModel(&was, spoken, heard, ms))
	case was.Notice && heard:
		m.noticeHeard()
	case was.Notice:
		m.breakOff(EndNotice)
	case spoken == saidNot:
		m.notify(notice{text: prompts.ExactUnsaid(was.Text)})
	}
}

func saidToModel(e *exact, spoken string, heard bool, ms int64) string {
	switch {
	case spoken == saidByModel:
		return prompts.ReadExactly(e.Text)
	case spoken == saidNot:
		return prompts.ExactUnsaid(e.Text)
	case heard:
		return prompts.ExactHeard(e.Text)
	}
	return prompts.ExactCut(textutil.SpokenPart(e.Text, ms, e.audioMS))
}

// knowExact gives the model a sentence that no result reports, as a part of the conversation.
func (m *callControl) knowExact(e *exact, ms int64) {
	text := e.Text
	if !e.heard(ms) {
		text = textutil.SpokenPart(e.Text, ms, e.audioMS)
	}
	if text != "" && m.caps.AddItem != transport.AddItemNone && len(m.contexts) < maxContexts {
		m.page = &page{append(slices.Clone(m.contexts), UserContext{Text: text, Role: transport.RoleAssistant,
			exact: true}), m.resultAt, m.sayings}
	}
}

// asks reports whether an input wants an answer, which a greeting would only delay.
func asks(in Input) bool {
	switch in.(type) {
	case UserText, UserAsk:
		return true
	}
	return false
}

// noticeHeard begins the conversation.
func (m *machine) noticeHeard() {
	held := m.sayings.held
	m.sayings.held, m.lastActive = nil, m.at
	m.do(HoldUser{})
	for i, in := range held {
		if b, ok := in.(Began); ok && slices.ContainsFunc(held[i:], asks) {
			b.Greeting = ""
			in = b
		}
		if m.phase == PhaseActive {
			in.take(m)
		}
	}
}

func (m *turnControl) auditExact(e *exact, spoken string, heard bool, ms int64, why string) {
	m.do(Audit{Record: audit.Said(m.at, spec.ModeVoice, e.turn, audit.Sentence{Spoken: spoken,
		HeardMS: min(ms, e.audioMS), LengthMS: e.audioMS, Tries: e.tries}, e.asked, e.Text, heard, why)})
}

// exactsOver audits the sentences that the end of the session leaves out, and ends the calls that wait for them.
func (m *callControl) exactsOver() {
	y := m.sayings
	if y == nil {
		return
	}
	for i := range y.all {
		e, ms := &y.all[i], int64(0)
		if e.item != "" {
			ms, _ = m.exactHeard(e.item)
			e.tries++
		}
		spoken := saidExactly
		if e.tries == 0 {
			spoken = saidNot
		}
		m.auditExact(e, spoken, spoken == saidExactly && e.heard(ms), ms, "the session ended")
	}
	m.sayings = nil
	for _, r := range y.results {
		m.finished(r.in, nil)
	}
}

// Held is an input that waits for the notice; one field is set. Checkpoints contain its JSON form.
type Held struct {
	Began *Began    `json:"began,omitempty"`
	Text  *UserText `json:"text,omitempty"`
	Ask   *UserAsk  `json:"ask,omitempty"`
}

func (s *sayings) memory() (all []Exact, held []Held) {
	if s == nil {
		return nil, nil
	}
	for _, e := range s.all {
		if e.Notice || e.MustHear {
			all = append(all, e.Exact)
		}
	}
	for _, in := range s.held {
		switch in := in.(type) {
		case Began:
			held = append(held, Held{Began: &in})
		case UserText:
			held = append(held, Held{Text: &in})
		case UserAsk:
			held = append(held, Held{Ask: &in})
		}
	}
	return all, held
}

// restoreExacts says the sentences again that another process has not seen heard.
func (m *machine) restoreExacts(in Restored) {
	was := in.Memory
	if len(was.Exacts) == 0 || was.Phase != PhaseActive {
		return
	}
	m.sayings = &sayings{prefix: strconv.FormatUint(in.Epoch, 10) + "_"}
	for _, e := range was.Exacts[:min(len(was.Exacts), maxExacts)] {
		m.addExact(exact{Exact: e, turn: was.Turn})
	}
	for _, h := range was.Held[:min(len(was.Held), maxHeld)] {
		switch {
		case !m.sayings.noticeOpen():
		case h.Began != nil:
			m.sayings.held = append(m.sayings.held, *h.Began)
		case h.Text != nil:
			m.sayings.held = append(m.sayings.held, *h.Text)
		case h.Ask != nil:
			m.sayings.held = append(m.sayings.held, *h.Ask)
		}
	}
}

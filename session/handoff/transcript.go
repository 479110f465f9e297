package handoff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

// Transcript is the timeline of a voice session, derived from the steps' decisions, with the bounds of a conversation.
// The mutex of the session's state guards it. A nil Transcript records nothing.
type Transcript struct {
	header      Part         // without its entries
	utterances  []*utterance // in the order in which they became known
	bytes       int          // of the texts
	dropped     int
	ended       int         // the last turn that has ended
	droppedCost cost.Amount // of dropped entries
	until       time.Time   // the newest time of an entry, including dropped ones
}

// NewTranscript returns an empty transcript.
func NewTranscript(of Part) *Transcript { return &Transcript{header: of} }

type utterance struct {
	entry conversation.Entry // its answered calls have arguments and envelopes, within the bounds of a history
	id    string             // of the transcript; empty for calls and notices
	draft bool               // the text is incomplete
	// audioMS is the length of the audio received so far, or of all.
	audioMS int64
	ended   bool // audioMS is final
	// cut: the user heard only heardMS. text is its length in bytes then, because later text was never spoken; maybe zero.
	cut     bool
	heardMS int64
	sentMS  int64 // sent to the client: the user cannot have heard more
	text    int
}

// Record takes an input and the step's actions. queued returns how much audio of an item had arrived before the step,
// in ms. done: a turn has ended, or more is known of an ended one.
func (y *Transcript) Record(in orchestrator.Input, actions []orchestrator.Action, at time.Time,
	queued func(item string) int64) (done bool) {
	if y == nil {
		return false
	}
	if p, ok := in.(orchestrator.Played); ok {
		y.played(p)
	}
	for _, a := range actions {
		y.action(a, at, queued)
		switch a := a.(type) {
		case orchestrator.TurnEnded:
			y.ended, done = max(y.ended, a.Turn), true
		case orchestrator.Transcript:
			done = done || a.Turn <= y.ended
		case orchestrator.FlushItem:
			done = done || a.Turn <= y.ended
		}
	}
	return done
}

// SoFar returns the part for a session that continues; all received audio counts as heard.
func (y *Transcript) SoFar(spent cost.Amount) Part { return y.Part(spent, allHeard) }

// sounding returns how much of a playing item's audio was heard and has arrived, in ms; ok is false for others.
type sounding func(item string) (heardMS, queuedMS int64, ok bool)

func allHeard(string) (heardMS, queuedMS int64, ok bool) { return 0, 0, false }

// Costs adds to a turn's cost, maybe a negative amount, and reports whether the transcript has the turn.
func (y *Transcript) Costs(turn int, more cost.Amount) bool {
	if y == nil {
		return false
	}
	at := y.lasting(turn)
	if at == nil {
		return false
	}
	charge(&at.entry, more)
	return true
}

func charge(e *conversation.Entry, more cost.Amount) {
	e.CostUSDMicros += int64(more.Micros)
	e.Unpriced += more.Unpriced
}

func costOf(e conversation.Entry) cost.Amount {
	return cost.Amount{Micros: cost.Micros(e.CostUSDMicros), Unpriced: e.Unpriced}
}

// Unplaced returns the part of the session's cost (spent) that no entry of its Part or History contains: between turns,
// or in turns without words.
func (y *Transcript) Unplaced(spent cost.Amount, entries []conversation.Entry) cost.Amount {
	if y == nil {
		return cost.Amount{}
	}
	rest := spent.Minus(y.droppedCost)
	for _, e := range entries {
		rest = rest.Minus(costOf(e))
	}
	return cost.Amount{Micros: max(rest.Micros, 0), Unpriced: max(rest.Unpriced, 0)}
}

// lasting returns an entry of a turn that will stay, preferably one with words or calls; nil without any.
func (y *Transcript) lasting(turn int) (at *utterance) {
	for _, s := range slices.Backward(y.utterances) {
		if s.entry.Turn == turn && (at == nil || strings.TrimSpace(s.entry.Text) != "" || len(s.entry.Calls) > 0) {
			at = s
		}
	}
	return at
}

func (y *Transcript) action(a orchestrator.Action, at time.Time, queued func(item string) int64) {
	switch a := a.(type) {
	case orchestrator.Transcript:
		y.transcript(a)
	case orchestrator.EndItem:
		if s := y.find(a.Item, conversation.RoleAssistant); s != nil {
			s.audioMS, s.ended = a.AudioMS, true
		} else {
			// Its transcript follows.
			y.add(&utterance{id: a.Item, audioMS: a.AudioMS, ended: true, entry: y.entry(at, conversation.RoleAssistant, a.Turn)})
		}
	case orchestrator.FlushItem:
		s := y.find(a.Item, conversation.RoleAssistant)
		if s == nil {
			s = &utterance{id: a.Item, entry: y.entry(at, conversation.RoleAssistant, a.Turn)}
			y.add(s)
		}
		s.stop(a.HeardMS, queued(a.Item))
		s.sentMS = a.SentMS
	case orchestrator.AboutCall:
		if told, ok := a.Do.(calls.ToClient); ok {
			y.message(told.Message, at)
		}
	case orchestrator.AgentSwitched:
		y.noticed(at, a.Turn, prompts.AgentWentOn(clip(a.From), clip(a.To)))
	case orchestrator.ContextGiven:
		e := y.entry(at, conversation.RoleContext, 0)
		if a.Role != "" {
			e.Role = conversation.Role(a.Role)
		}
		e.Text = a.Text
		y.add(&utterance{entry: e})
	case orchestrator.ToolEnded:
		y.answered(a)
	case orchestrator.TurnEnded:
		y.Costs(a.Turn, a.Cost)
		if at := y.lasting(a.Turn); at != nil && a.Latency != nil {
			at.entry.LatencyMS = a.Latency.Total.Milliseconds()
		}
	}
}

func (y *Transcript) message(m protocol.ServerMessage, at time.Time) {
	switch a := m.(type) {
	case *protocol.ToolStarted:
		y.called(a, at)
	case *protocol.ConfirmationEnded:
		y.noticed(at, a.Turn, prompts.AskedToApprove(clip(a.Tool), string(a.Outcome)))
	}
}

func (y *Transcript) noticed(at time.Time, turn int, text string) {
	e := y.entry(at, conversation.RoleNotice, turn)
	e.System, e.Text = true, text
	y.add(&utterance{entry: e})
}

func (y *Transcript) played(in orchestrator.Played) {
	if s := y.find(in.Item, conversation.RoleAssistant); s != nil { // sentMS is zero before a flush
		s.heardMS = min(max(in.MS, 0), s.sentMS)
	}
}

func (s *utterance) stop(heardMS, queuedMS int64) {
	s.cut, s.heardMS, s.text = true, heardMS, len(s.entry.Text)
	if !s.ended {
		s.audioMS = queuedMS
	}
}

func (y *Transcript) entry(at time.Time, role conversation.Role, turn int) conversation.Entry {
	return conversation.Entry{At: at.UTC(), Side: conversation.SideVoice, Role: role, Turn: turn, SessionID: y.header.SessionID}
}

func (y *Transcript) find(id string, role conversation.Role) *utterance {
	for _, s := range slices.Backward(y.utterances) {
		if s.id == id && id != "" && s.entry.Role == role {
			return s
		}
	}
	return nil
}

func (y *Transcript) transcript(a orchestrator.Transcript) {
	role := conversation.RoleUser
	if a.Role == transport.RoleAssistant {
		role = conversation.RoleAssistant
	}
	s := y.find(a.ID, role)
	if s == nil {
		s = &utterance{id: a.ID, entry: y.entry(a.StartedAt, role, a.Turn)}
		y.add(s)
	}
	text := a.Text
	if utf8.RuneCountInString(text) > conversation.MaxText {
		text = string([]rune(text)[:conversation.MaxText])
	}
	y.bytes += len(text) - len(s.entry.Text)
	s.draft = !a.Final
	s.entry.Text, s.entry.At, s.entry.Turn = text, a.StartedAt.UTC(), a.Turn
	y.newest(s)
	y.bound()
}

func (y *Transcript) called(a *protocol.ToolStarted, at time.Time) {
	call := conversation.Call{ID: a.CallID, Tool: clip(a.Tool)}
	if n := len(y.utterances); n > 0 {
		last := &y.utterances[n-1].entry
		if last.Turn == a.Turn && last.Calls != nil && len(last.Calls) < maxCallsTogether {
			last.Calls = append(last.Calls, call)
			return
		}
	}
	e := y.entry(at, conversation.RoleAssistant, a.Turn)
	e.Calls = []conversation.Call{call}
	y.add(&utterance{entry: e})
}

const maxCallsTogether = 32

func (y *Transcript) answered(a orchestrator.ToolEnded) {
	for _, s := range slices.Backward(y.utterances) {
		i := slices.IndexFunc(s.entry.Calls, func(c conversation.Call) bool { return c.ID == a.Call })
		if i < 0 {
			continue
		}
		c := &s.entry.Calls[i]
		c.OK, c.Asked = a.Envelope.OK, a.Envelope.AsksUser()
		y.bytes -= len(c.Envelope)
		c.Args = pastArgs(a.Written)
		c.Envelope = json.RawMessage(textutil.Shorten(string(a.Envelope.Encode()), maxPastOutput))
		y.bytes += len(c.Envelope)
		y.bound()
		return
	}
}

func (y *Transcript) newest(s *utterance) {
	if s.entry.At.After(y.until) {
		y.until = s.entry.At
	}
}

func (y *Transcript) add(s *utterance) {
	y.utterances = append(y.utterances, s)
	y.newest(s)
	y.bytes += len(s.entry.Text)
	y.bound()
}

func (y *Transcript) bound() {
	for len(y.utterances) > 1 && (len(y.utterances) > conversation.MaxEntries || y.bytes > conversation.MaxBytes) {
		y.bytes -= len(y.utterances[0].entry.Text)
		for _, c := range y.utterances[0].entry.Calls {
			y.bytes -= len(c.Envelope)
		}
		y.droppedCost = y.droppedCost.Plus(costOf(y.utterances[0].entry))
		y.utterances[0] = nil
		y.utterances = y.utterances[1:]
		y.dropped++
	}
}

// Part returns the session's part so far. spent is its cost; the newest entry gets what belongs to no turn. is returns
// how much of a playing item's audio was heard and has arrived, in ms; ok is false for others.
func (y *Transcript) Part(spent cost.Amount, is func(item string) (heardMS, queuedMS int64, ok bool)) Part {
	if y == nil {
		return Part{}
	}
	part := y.header
	part.Until = y.until
	part.Entries = y.entries(is)
	if n := len(part.Entries); n > 0 {
		charge(&part.Entries[n-1], y.Unplaced(spent, part.Entries))
	}
	return part
}

// timed is an entry with the item that spoke it; empty without one.
type timed struct {
	conversation.Entry
	item string
}

func (y *Transcript) entries(is sounding) []conversation.Entry {
	var out []conversation.Entry
	for _, e := range y.timeline(is) {
		for i := range e.Calls { // a copy
			e.Calls[i].Args, e.Calls[i].Envelope = nil, nil
		}
		out = append(out, e.Entry)
	}
	return out
}

func (y *Transcript) timeline(is sounding) []timed {
	var out []timed
	for _, s := range y.utterances {
		one := *s
		if one.id != "" && one.entry.Role == conversation.RoleAssistant {
			if heard, queued, ok := is(one.id); ok {
				one.stop(heard, queued)
			}
		}
		one.cutText()
		if strings.TrimSpace(one.entry.Text) == "" && len(one.entry.Calls) == 0 {
			continue
		}
		one.entry.Calls = slices.Clone(one.entry.Calls)
		e := timed{Entry: one.entry}
		if one.entry.Role == conversation.RoleAssistant {
			e.item = one.id
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b timed) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return joined(out)
}

// joined merges calls and the following words of the same turn into one entry, because they are one answer.
func joined(entries []timed) []timed {
	var out []timed
	for _, e := range entries {
		if n := len(out); n > 0 && e.Role == conversation.RoleAssistant && e.Turn == out[n-1].Turn &&
			len(e.Calls) == 0 && len(out[n-1].Calls) > 0 && out[n-1].Text == "" {
			out[n-1].Text, out[n-1].Interrupted, out[n-1].item = e.Text, e.Interrupted, e.item
			charge(&out[n-1].Entry, costOf(e.Entry))
			out[n-1].LatencyMS = max(out[n-1].LatencyMS, e.LatencyMS)
			continue
		}
		out = append(out, e)
	}
	return out
}

// cutText cuts an interrupted utterance's text to the heard share of its audio, at the end of a word.
func (s *utterance) cutText() {
	if !s.cut || s.ended && s.heardMS >= s.audioMS {
		return
	}
	text := s.entry.Text
	if !s.ended && s.text > 0 {
		text = text[:min(s.text, len(text))] // the text of the received audio
	}
	s.entry.Interrupted, s.entry.Text = true, textutil.SpokenPart(text, s.heardMS, s.audioMS)
}

// clip bounds a tool's name, which the model may have invented.
func clip(s string) string { return textutil.Shorten(s, 64) }

// The bounds of the history for a new connection, in bytes.
const (
	// maxPast is how much of the conversation's end is included verbatim. The rest is summarised.
	maxPast = 24 << 10
	// maxPastArgs and maxPastOutput bound the kept part of one tool call.
	maxPastArgs   = 2 << 10
	maxPastOutput = 4 << 10
)

// Invalid or too long arguments become an empty object, because providers require one.
func pastArgs(written json.RawMessage) json.RawMessage {
	if args := registry.Decode(written).Object(); len(args) <= maxPastArgs {
		return args
	}
	return json.RawMessage("{}")
}

// Past returns the conversation for a model without memory of it, oldest first. own is the mark of the gateway's words,
// which is removed from all others. Words that are still playing count as heard.
func (y *Transcript) Past(own prompts.Mark, lasted time.Duration) []transport.Past {
	if y == nil {
		return nil
	}
	utterances := slices.Clone(y.utterances)
	slices.SortStableFunc(utterances, func(a, b *utterance) int { return cmp.Compare(a.entry.At.UnixNano(), b.entry.At.UnixNano()) })
	from, size := len(utterances), 0
	for from > 0 {
		one := utterances[from-1]
		size += len(one.entry.Text)
		for _, c := range one.entry.Calls {
			size += len(c.Args) + len(c.Envelope)
		}
		if size > maxPast {
			break
		}
		from--
	}
	var past []transport.Past
	if from > 0 || y.dropped > 0 {
		past = append(past, transport.PastNote{Text: own.Notice(
			prompts.SaidBefore(conversation.Summary(entriesOf(utterances[:from]), lasted)))})
	}
	for _, s := range utterances[from:] {
		past = append(past, s.past(own)...)
	}
	return past
}

func entriesOf(utterances []*utterance) (entries []conversation.Entry) {
	for _, s := range utterances {
		one := *s
		one.cutText()
		entries = append(entries, one.entry)
	}
	return entries
}

func (s *utterance) past(own prompts.Mark) (past []transport.Past) {
	one := *s
	one.cutText()
	for _, c := range one.entry.Calls {
		if c.Envelope != nil {
			past = append(past, transport.PastTool{Name: c.Tool, Args: own.JSON(c.Args),
				Output: json.RawMessage(own.Foreign(string(c.Envelope))), OK: c.OK})
		}
	}
	text := own.Foreign(one.entry.Text)
	switch {
	case strings.TrimSpace(text) == "":
	case one.entry.Role == conversation.RoleUser:
		past = append(past, transport.PastUser{Text: text})
	case one.entry.Role == conversation.RoleAssistant:
		past = append(past, transport.PastAssistant{Text: text, Interrupted: one.entry.Interrupted})
	case one.entry.Role == conversation.RoleContext:
		past = append(past, transport.PastUser{Text: own.Notice(prompts.PageContext(text))}) // not as the system's words
	default:
		past = append(past, transport.PastNote{Text: own.Notice(text)})
	}
	return past
}

package session

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"voicegw/conversation"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/transport"
)

// story is a session's line of time: what was said on both sides and which tools were
// called, made of what the steps decide. It is bounded as a conversation is. It has no
// lock: what the session guards its state with guards this too.
type story struct {
	session string
	said    []*saying // in the order in which they became known
	bytes   int       // of the texts
	dropped int
}

// saying is an entry in the making.
type saying struct {
	entry conversation.Entry
	id    string // of the transcript; empty for calls and notices
	// audioMS is how much audio of it there is: so far, or in all.
	audioMS int64
	ended   bool // audioMS is all of it
	// What was heard of it, once the user has cut it off. text is how long it was then,
	// in bytes: what is written of it later was never spoken to the client. Zero where
	// none of it was written yet.
	cut     bool
	heardMS int64
	sentMS  int64 // so much had left for the client: no more can have been heard
	text    int
}

// note takes what a step has decided. queued says how much audio of an item has come, in
// ms, as of before the step.
func (y *story) note(a orchestrator.Action, at time.Time, queued func(item string) int64) {
	switch a := a.(type) {
	case orchestrator.Transcript:
		y.transcript(a)
	case orchestrator.EndItem:
		if s := y.find(a.Item, conversation.RoleAssistant); s != nil {
			s.audioMS, s.ended = a.AudioMS, true
		} else {
			// Its transcript comes later.
			y.add(&saying{id: a.Item, audioMS: a.AudioMS, ended: true, entry: y.entry(at, conversation.RoleAssistant, a.Turn)})
		}
	case orchestrator.FlushItem:
		s := y.find(a.Item, conversation.RoleAssistant)
		if s == nil {
			s = &saying{id: a.Item, entry: y.entry(at, conversation.RoleAssistant, a.Turn)}
			y.add(s)
		}
		s.stop(a.HeardMS, queued(a.Item))
		s.sentMS = a.SentMS
	case orchestrator.AboutCall:
		if told, ok := a.Do.(calls.Tell); ok {
			y.told(told.Message, at)
		}
	case orchestrator.ToolEnded:
		y.answered(a)
	}
}

// told takes what the client is told of a call or a question.
func (y *story) told(m protocol.ServerMessage, at time.Time) {
	switch a := m.(type) {
	case *protocol.ToolStarted:
		y.called(a, at)
	case *protocol.ConfirmationEnded:
		e := y.entry(at, conversation.RoleNotice, a.Turn)
		e.System = true
		e.Text = prompts.AskedToApprove(clip(a.Tool), string(a.Outcome))
		y.add(&saying{entry: e})
	}
}

// played takes the client's report of what was heard of an item that was cut off.
func (y *story) played(in orchestrator.Played) {
	if s := y.find(in.Item, conversation.RoleAssistant); s != nil { // before a flush it counts for nothing
		s.heardMS = min(max(in.MS, 0), s.sentMS)
	}
}

// stop notes that the user heard no more than so much of it.
func (s *saying) stop(heardMS, queuedMS int64) {
	s.cut, s.heardMS, s.text = true, heardMS, len(s.entry.Text)
	if !s.ended {
		s.audioMS = queuedMS
	}
}

func (y *story) entry(at time.Time, role conversation.Role, turn int) conversation.Entry {
	return conversation.Entry{At: at.UTC(), Side: conversation.SideVoice, Role: role, Turn: turn, SessionID: y.session}
}

// find returns the utterance of that id, the newest first.
func (y *story) find(id string, role conversation.Role) *saying {
	for _, s := range slices.Backward(y.said) {
		if s.id == id && id != "" && s.entry.Role == role {
			return s
		}
	}
	return nil
}

// transcript takes the whole text of an utterance so far.
func (y *story) transcript(a orchestrator.Transcript) {
	role := conversation.RoleUser
	if a.Role == transport.RoleAssistant {
		role = conversation.RoleAssistant
	}
	s := y.find(a.ID, role)
	if s == nil {
		s = &saying{id: a.ID, entry: y.entry(a.StartedAt, role, a.Turn)}
		y.add(s)
	}
	text := a.Text
	if utf8.RuneCountInString(text) > conversation.MaxText {
		text = string([]rune(text)[:conversation.MaxText])
	}
	y.bytes += len(text) - len(s.entry.Text)
	s.entry.Text, s.entry.At, s.entry.Turn = text, a.StartedAt.UTC(), a.Turn
	y.bound()
}

// called names a call, beside those that were called with it.
func (y *story) called(a *protocol.ToolStarted, at time.Time) {
	call := conversation.Call{ID: a.CallID, Tool: clip(a.Tool)}
	if n := len(y.said); n > 0 && y.said[n-1].entry.Turn == a.Turn && y.said[n-1].entry.Calls != nil && len(y.said[n-1].entry.Calls) < maxCallsTogether {
		last := y.said[n-1]
		last.entry.Calls = append(last.entry.Calls, call)
		return
	}
	e := y.entry(at, conversation.RoleAssistant, a.Turn)
	e.Calls = []conversation.Call{call}
	y.add(&saying{entry: e})
}

// maxCallsTogether bounds the calls of one entry.
const maxCallsTogether = 32

// answered notes how a call went.
func (y *story) answered(a orchestrator.ToolEnded) {
	for _, s := range slices.Backward(y.said) {
		for i := range s.entry.Calls {
			if s.entry.Calls[i].ID == a.Call {
				s.entry.Calls[i].OK = a.Envelope.OK
				s.entry.Calls[i].Asked = a.Envelope.AsksUser()
				return
			}
		}
	}
}

func (y *story) add(s *saying) {
	y.said = append(y.said, s)
	y.bytes += len(s.entry.Text)
	y.bound()
}

// bound drops the oldest where there is more than a conversation holds.
func (y *story) bound() {
	for len(y.said) > 1 && (len(y.said) > conversation.MaxEntries || y.bytes > conversation.MaxBytes) {
		y.bytes -= len(y.said[0].entry.Text)
		y.said[0] = nil
		y.said = y.said[1:]
		y.dropped++
	}
}

// entries is the line of time as it is now, in the order in which things were begun.
// sounding says how much was heard of what is still being played.
func (y *story) entries(sounding func(item string) (heardMS, queuedMS int64, ok bool)) []conversation.Entry {
	var out []conversation.Entry
	for _, s := range y.said {
		one := *s
		if one.id != "" && one.entry.Role == conversation.RoleAssistant {
			if heard, queued, ok := sounding(one.id); ok {
				one.stop(heard, queued)
			}
		}
		one.cutText()
		if strings.TrimSpace(one.entry.Text) == "" && len(one.entry.Calls) == 0 {
			continue
		}
		one.entry.Calls = slices.Clone(one.entry.Calls)
		out = append(out, one.entry)
	}
	slices.SortStableFunc(out, func(a, b conversation.Entry) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return joined(out)
}

// joined puts calls and the words that follow them in the same turn into one entry: one
// answer.
func joined(entries []conversation.Entry) []conversation.Entry {
	var out []conversation.Entry
	for _, e := range entries {
		if n := len(out); n > 0 && e.Role == conversation.RoleAssistant && e.Turn == out[n-1].Turn &&
			len(e.Calls) == 0 && len(out[n-1].Calls) > 0 && out[n-1].Text == "" {
			out[n-1].Text, out[n-1].Interrupted = e.Text, e.Interrupted
			continue
		}
		out = append(out, e)
	}
	return out
}

// cutText leaves of an utterance what was heard of it: as much of its text as of its
// audio, to the end of a word.
func (s *saying) cutText() {
	if !s.cut || s.ended && s.heardMS >= s.audioMS {
		return
	}
	text := s.entry.Text
	if !s.ended && s.text > 0 {
		text = text[:min(s.text, len(text))] // as long as that audio was
	}
	s.entry.Interrupted, s.entry.Text = true, heardOf(text, s.heardMS, s.audioMS)
}

// heardOf is the part of a text that was spoken in the first heardMS of audioMS, without a
// word that was not heard to its end.
func heardOf(text string, heardMS, audioMS int64) string {
	if heardMS <= 0 || audioMS <= 0 || text == "" {
		return ""
	}
	if heardMS >= audioMS {
		return text
	}
	runes := []rune(text)
	n := int(int64(len(runes)) * heardMS / audioMS)
	if unicode.IsSpace(runes[n]) {
		return strings.TrimSpace(string(runes[:n]))
	}
	for n > 0 && !unicode.IsSpace(runes[n-1]) {
		n--
	}
	return strings.TrimSpace(string(runes[:n]))
}

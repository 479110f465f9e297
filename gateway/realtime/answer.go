package realtime

import (
	"maps"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/protocol"
)

type answerState struct {
	turn     int       // the session's newest
	response *response // the active one; nil without one
	muted    int       // the newest turn whose answer the client has cancelled
	asked    int       // turns that the client has asked for, and that have not begun
	skip     int       // of them, those to cancel once they begin

	voices  []*voice
	sounds  *voice    // the item of the frames to come; nil drops them
	playEnd time.Time // when a client that plays in real time has played everything
	reports bool      // the session has got a playback report, so it expects one for each item
	coded   []byte    // scratch
	failure *protocol.Error
	used    openaiwire.Usage // by the turn usedBy
	usedBy  int
	owed    openaiwire.Usage // used, but in no response.done yet
}

type response struct {
	*openaiwire.Response
	turn  int // of the session; zero before it began
	open  []*voice
	until time.Time // see beginTime

	calls   int                   // of the client's tools
	begun   []begunCall           // calls of the client's tools that the client does not know yet, in the model's order
	waiting *protocol.AnswerEnded // the answer waits for the results of calls; nil before
	settle  time.Time             // when the wait for begun ends; zero without a wait
	// absorbs: it follows an approval or a commit, so it also answers the response.create that clients then send.
	absorbs bool
	// continues: it answers results of the client's tools.
	continues bool
}

// begunCall is a call of a client's tool, by the session's id; call has the client's, and is nil before the session asks
// the client to run it.
type begunCall struct {
	id   string
	call *protocol.ToolCall
}

// voice is a message of the model. The client can truncate it once it is complete.
type voice struct {
	item   *openaiwire.Item
	place  openaiwire.Place
	source string // the session's id of the item
	words  string
	open   bool // the response has it, incomplete
	from   time.Time
	sent   int  // bytes of PCM
	ended  bool // its audio
	// reportAt is when the client has heard it, or the answer to a flush is due; zero for never.
	reportAt time.Time
	flushed  bool
	heardMS  int64 // at the flush
	told     bool  // the session knows how much was heard
}

// maxVoices bounds the items that can still be truncated.
const maxVoices = 32

// create begins a response. turn is zero before the session's turn began.
func (s *State) create(now time.Time, turn int, q *openaiwire.ResponseParams) *response {
	r := &response{Response: openaiwire.NewResponse(s.ids.New("resp"), s.conversation, s.sess, q), turn: turn}
	s.answer.response, s.in.idleAt = r, time.Time{}
	r.alive(now)
	s.tell("response.created", r.Response)
	return r
}

func (r *response) alive(now time.Time) {
	r.until = now.Add(deadTime)
	if r.turn == 0 {
		r.until = now.Add(beginTime)
	}
}

// responseOf returns the response for a turn's answer, and begins one if no response is active. It returns nil if the
// client has cancelled the answer.
func (s *State) responseOf(now time.Time, turn int) *response {
	a := &s.answer
	switch {
	case turn != 0 && turn <= a.muted:
		return nil
	case a.response == nil:
		return s.create(now, turn, &openaiwire.ResponseParams{})
	case a.response.turn == 0:
		a.response.turn = turn
	}
	a.response.alive(now)
	return a.response
}

func (s *State) turnStarted(now time.Time, turn int) {
	a := &s.answer
	a.turn, a.failure, s.tools.early, s.in.own = turn, nil, false, false
	if r := a.response; r != nil && r.turn != 0 && r.turn != turn {
		s.finish(openaiwire.Cancelled, "reason", "turn_detected")
	}
	asked := a.asked > 0
	if asked {
		a.asked--
	} else {
		s.commitSpeech(turn)
	}
	s.in.begins(turn)
	absorbs := s.in.ordered && a.response == nil
	if s.in.ordered = false; !asked && s.tools.approvals > 0 {
		absorbs = true
		s.tools.approvals--
	}
	if asked && a.skip > 0 {
		a.skip, a.muted = a.skip-1, turn
		if a.asked == 0 { // otherwise it would interrupt the newer turn, which ends this one
			s.put(&protocol.Interrupt{})
		}
		return
	}
	if r := s.responseOf(now, turn); r != nil {
		r.absorbs = absorbs
	}
}

// message opens the item of a response for a spoken or written item of the session. It returns nil for one that is
// complete or that the client does not get.
func (s *State) message(now time.Time, turn int, source string) *voice {
	if v := s.voice(source); v != nil && v.open {
		return v
	} else if v != nil {
		return nil
	}
	r := s.responseOf(now, turn)
	if r == nil {
		return nil
	}
	s.closeEnded(r)
	it := &openaiwire.Item{ID: s.ids.New("item"), Type: openaiwire.Message, Status: openaiwire.InProgress, Role: "assistant"}
	v := &voice{item: it, source: source, open: true, place: s.openItem(r, it)}
	s.emit(v.place.Event("response.content_part.added", openaiwire.Part(r.InText(), "")))
	r.open = append(r.open, v)
	a := &s.answer
	if len(a.voices) == maxVoices {
		a.voices = slices.Delete(a.voices, 0, 1)
	}
	a.voices = append(a.voices, v)
	return v
}

// openItem adds an item to the response and the conversation.
func (s *State) openItem(r *response, it *openaiwire.Item) openaiwire.Place {
	place := openaiwire.Place{ResponseID: r.ID, ItemID: it.ID, Output: len(r.Output)}
	r.Output = append(r.Output, it)
	previous := s.mirror.Last()
	s.emit(place.Event("response.output_item.added", it))
	s.mirror.insert(it, nil)
	s.tell("conversation.item.added", previous, it)
	return place
}

func (s *State) closeItem(place openaiwire.Place, it *openaiwire.Item, status string) {
	it.Status = status
	s.tell("conversation.item.done", s.mirror.Before(it.ID), it)
	s.emit(place.Event("response.output_item.done", it))
}

func (s *State) voice(source string) *voice {
	for _, v := range slices.Backward(s.answer.voices) {
		if v.source == source {
			return v
		}
	}
	return nil
}

func (s *State) closeEnded(r *response) {
	r.open = slices.DeleteFunc(r.open, func(v *voice) bool {
		if v.ended {
			s.closeMessage(r, v, openaiwire.Completed)
		}
		return v.ended
	})
}

func (s *State) closeMessage(r *response, v *voice, status string) {
	v.open = false
	if s.answer.sounds == v {
		s.answer.sounds = nil
	}
	s.emit(v.place.CloseMessage(v.item, r.InText(), v.words)...)
	v.item.Size += len(v.words)
	s.mirror.grew(len(v.words))
	s.closeItem(v.place, v.item, status)
}

// finish ends the active response, if there is one. details are the members of status_details after its type.
func (s *State) finish(status string, details ...any) {
	a, r := &s.answer, s.answer.response
	if r == nil {
		return
	}
	itemStatus := r.End(status, details...)
	for _, v := range r.open {
		s.closeMessage(r, v, itemStatus)
	}
	toolSide{s}.endToolItems(r)
	r.Usage, a.owed, a.response = a.owed, openaiwire.Usage{}, nil
	s.tell("response.done", r.Response)
	if len(s.tools.open) == 0 {
		s.reconfigure(&openaiwire.ResponseParams{}) // those of the response are over
	}
	if t := s.sess.Audio.Input.TurnDetection; t != nil && t.IdleTimeoutMS != nil && status == openaiwire.Completed && r.turn != 0 {
		// It counts from the end of the playback.
		s.in.idleAt = later(a.playEnd, r.until.Add(-deadTime)).Add(time.Duration(*t.IdleTimeoutMS) * time.Millisecond)
	}
}

func (s *State) fail(kind, code, message string) {
	if r := s.answer.response; r != nil && r.turn == 0 {
		s.answer.asked, s.in.own, s.in.ordered = max(s.answer.asked-1, 0), false, false // its turn does not begin
	}
	s.finish(openaiwire.Failed, "error", openaiwire.Object{"type", kind, "code", code, "message", message})
}

// spent takes the usage of a turn so far. The next response.done reports the part that no earlier one did, because models
// report the usage of an interrupted response late.
func (a *answerState) spent(turn int, u protocol.Usage) {
	if a.usedBy != turn {
		a.used, a.usedBy = openaiwire.Usage{}, turn
	}
	// Tokens of no known modality count as text.
	now := openaiwire.Usage{
		InputText: int(u.InputTokens - u.Input.Audio), InputAudio: int(u.Input.Audio), CachedText: int(u.Input.CachedText),
		CachedAudio: int(u.Input.CachedAudio), OutputText: int(u.OutputTokens - u.Output.Audio), OutputAudio: int(u.Output.Audio),
	}
	if now.Total() > a.used.Total() {
		a.owed, a.used = a.owed.Add(now, 1).Add(a.used, -1), now
	}
}

func (s *State) said(now time.Time, m *protocol.Transcript) {
	v := s.voice(m.ID)
	if v == nil && (m.Turn != s.answer.turn || s.answer.response == nil) {
		return // late words of an answer that is over
	}
	open := s.message(now, m.Turn, m.ID)
	if r := s.answer.response; r != nil {
		r.alive(now)
	}
	if open == nil {
		if v == nil {
			return
		}
		if it, _ := s.mirror.Find(v.item.ID); it != nil && m.Final && len(it.Content) == 1 && it.Content[0].Transcript != nil {
			s.mirror.say(it, m.Text)
		}
		return
	}
	delta, grows := strings.CutPrefix(m.Text, open.words)
	switch {
	case grows && delta != "":
		open.words = m.Text
		s.emit(open.place.WordsDelta(s.answer.response.InText(), delta))
	case m.Final:
		open.words = m.Text
	}
}

func (s *State) sound(now time.Time, m *protocol.AudioStart) {
	s.answer.sounds = s.message(now, m.Turn, m.ItemID)
}

// AppendAudio appends the event for a frame of the current item to dst; nothing if the client does not get the frame.
func (s *State) AppendAudio(dst []byte, now time.Time, pcm []byte) []byte {
	a := &s.answer
	v, r := a.sounds, a.response
	if s.closed || v == nil || !v.open || r == nil {
		return dst
	}
	out := s.sess.Audio.Output.Format
	length := audio.Duration(out.Hz(), len(pcm))
	r.alive(now)
	if v.sent += len(pcm); r.InText() {
		return dst
	}
	if a.playEnd.Before(now) {
		a.playEnd = now
	}
	if v.from.IsZero() {
		v.from = a.playEnd
	}
	a.playEnd = a.playEnd.Add(length)
	s.sess.VoiceFixed = true
	return v.place.AppendAudioDelta(dst, s.ids, out.Encode(&a.coded, pcm))
}

func (v *voice) sentMS(s *State) int64 { return audio.MS(s.sess.Audio.Output.Format.Hz(), v.sent) }

// heardMS estimates how much of an item the client has heard, as if it played in real time.
func (s *State) heardMS(v *voice, now time.Time) int64 {
	if v.from.IsZero() {
		return 0
	}
	return min(max(now.Sub(v.from).Milliseconds(), 0), v.sentMS(s))
}

func (s *State) soundEnded(source string) {
	v := s.voice(source)
	if v == nil {
		return
	}
	v.ended = true
	if s.answer.sounds == v {
		s.answer.sounds = nil
	}
	switch {
	case v.from.IsZero(): // a text, or nothing that the client gets
		s.put(&protocol.Playback{ItemID: v.source, PlayedMS: v.sentMS(s), Done: true})
		s.answer.reports = true
	case s.answer.reports:
		v.reportAt = s.answer.playEnd
	}
}

// flushWait is how long a client may take to truncate a flushed item. The session waits for 250 ms.
const flushWait = 200 * time.Millisecond

// flushed takes the session's order to play no more of an item.
func (s *State) flushed(now time.Time, m *protocol.AudioFlush) {
	reason := "client_cancelled"
	if m.Reason == "user_speech" {
		reason = "turn_detected"
		s.beginSpeech()
	}
	if v := s.voice(m.ItemID); v != nil && !v.flushed {
		v.flushed, v.heardMS, v.reportAt = true, s.heardMS(v, now), time.Time{}
		if s.answer.reports {
			v.reportAt = now.Add(flushWait)
		}
		if s.answer.sounds == v {
			s.answer.sounds = nil
		}
	}
	if now.Before(s.answer.playEnd) {
		s.answer.playEnd = now
	}
	if r := s.answer.response; r != nil && r.turn != 0 && r.turn == m.Turn {
		s.finish(openaiwire.Cancelled, "reason", reason)
	}
}

func (a *answerState) reportAt() (at time.Time) {
	for _, v := range a.voices {
		at = earlier(at, v.reportAt)
	}
	return at
}

// reportPlayed sends the session the playback reports that are due: clients report only the items that they truncate.
func (s *State) reportPlayed(now time.Time) {
	for _, v := range s.answer.voices {
		if v.reportAt.IsZero() || now.Before(v.reportAt) {
			continue
		}
		v.reportAt, v.told = time.Time{}, true
		heard := v.heardMS
		if !v.flushed {
			heard = v.sentMS(s)
		}
		s.put(&protocol.Playback{ItemID: v.source, PlayedMS: heard, Done: true})
	}
}

// truncate takes the client's report of how much of an item was heard. Clients estimate by the clock, so a position
// after the end means the end.
func (s *State) truncate(now time.Time, e *openaiwire.ClientEvent) *openaiwire.Error {
	it, _ := s.mirror.Find(e.ItemID)
	switch {
	case it == nil:
		return openaiwire.NoSuchItem("item_id", e.ItemID)
	case it.Type != openaiwire.Message || it.Role != "assistant":
		return openaiwire.NotSpeech()
	}
	end := e.EndMS
	for _, v := range s.answer.voices {
		if v.item.ID != it.ID || v.from.IsZero() {
			continue
		}
		end = min(end, int(v.sentMS(s)))
		if !v.told {
			s.put(&protocol.Playback{ItemID: v.source, PlayedMS: int64(end), Done: true})
		}
		v.reportAt, v.told, s.answer.reports = time.Time{}, true, true
		for _, other := range s.answer.voices {
			if !other.told && !other.flushed && other.ended && now.Before(s.answer.playEnd) {
				other.reportAt = s.answer.playEnd
			}
		}
	}
	for i := range it.Content {
		it.Content[i].Transcript = nil
	}
	s.tell("conversation.item.truncated", it.ID, end)
	return nil
}

func (s *State) answerEnded(now time.Time, m *protocol.AnswerEnded) {
	r := s.answer.response
	switch {
	case r == nil || r.turn != m.Turn:
	case m.Waiting:
		r.waiting = m
		s.callsKnown(now, r)
	default:
		s.answer.spent(m.Turn, m.Usage)
		s.finish(openaiwire.Completed)
	}
}

// settleCalls is how long a response waits for calls that have begun: not all of them may run at the same time.
const settleCalls = 200 * time.Millisecond

// callsKnown shows calls of the client's tools in the model's order, and ends their response once all are known.
func (s *State) callsKnown(now time.Time, r *response) {
	late := !r.settle.IsZero() && !now.Before(r.settle)
	for len(r.begun) > 0 && (late || r.begun[0].call != nil) {
		first := r.begun[0]
		if r.begun = r.begun[1:]; first.call != nil {
			toolSide{s}.showClientCall(r, first.call)
		}
	}
	switch {
	case len(r.begun) > 0:
		if r.settle.IsZero() {
			r.settle = now.Add(settleCalls)
		}
	case r.waiting != nil && r.calls > 0:
		s.tools.waited = r.turn
		s.answer.spent(r.turn, r.waiting.Usage)
		s.finish(openaiwire.Completed)
	default:
		r.settle = time.Time{}
	}
}

// turnEnded ends the response of a turn if it is still active.
func (s *State) turnEnded(m *protocol.TurnEnded) {
	s.completeSpeech(m.Turn)
	s.answer.spent(m.Turn, m.Usage)
	r := s.answer.response
	if r == nil || r.turn != m.Turn {
		return
	}
	switch m.Status {
	case "completed":
		s.finish(openaiwire.Completed)
	case "interrupted":
		s.finish(openaiwire.Cancelled, "reason", "turn_detected")
	default:
		code, message := "no_answer", "The model gave no answer."
		if f := s.answer.failure; f != nil {
			code, message = f.Code, f.Message
		}
		s.fail("server_error", openAICode(code), message)
	}
}

// openAICode returns OpenAI's code for an error, which some clients know.
func openAICode(code string) string {
	switch code {
	case protocol.CodeProviderQuota, protocol.CodeBudget:
		return "insufficient_quota"
	case protocol.CodeProviderBusy:
		return "rate_limit_exceeded"
	}
	return code
}

// failed takes an error of the session. Clients that treat every error as fatal must not see those that are not, so an
// error appears in the response that it ends, or with the end of the session.
func (s *State) failed(m *protocol.Error) {
	s.ending = m
	switch m.Code {
	case protocol.CodeTranscriptionFailed:
		s.transcriptionFailed(m)
		return
	case protocol.CodeAudioTooFast, protocol.CodeInvalidAudio, protocol.CodeLimit, protocol.CodeInvalidMessage:
		s.Dropped++
	}
	s.answer.failure = m
	if r := s.answer.response; r != nil && r.turn == 0 {
		s.fail("server_error", openAICode(m.Code), m.Message)
	}
}

// Take takes a message of the session.
func (s *State) Take(now time.Time, m protocol.ServerMessage) {
	if s.closed {
		return
	}
	turn := protocol.HeaderOf(m).Turn
	switch m := m.(type) {
	case *protocol.SessionStarted:
		s.ready = true
	case *protocol.TurnStarted:
		s.turnStarted(now, turn)
	case *protocol.SpeechStarted:
		s.speechStarted(now, m)
	case *protocol.SpeechStopped:
		s.speechStopped(m)
	case *protocol.Transcript:
		if m.Role == "user" {
			s.heard(m)
		} else {
			s.said(now, m)
		}
	case *protocol.AudioStart:
		s.sound(now, m)
	case *protocol.AudioEnd:
		s.soundEnded(m.ItemID)
	case *protocol.AudioFlush:
		s.flushed(now, m)
	case *protocol.AnswerEnded:
		s.answerEnded(now, m)
	case *protocol.TurnEnded:
		s.turnEnded(m)
	case *protocol.Error:
		s.failed(m)
	case *protocol.ToolCall:
		toolSide{s}.call(now, m)
	case *protocol.ToolStarted:
		toolSide{s}.showCall(now, turn, m)
	case *protocol.ToolEnded:
		toolSide{s}.callEnded(now, m)
	case *protocol.InspectCall:
		toolSide{s}.inspected(m)
	case *protocol.ConfirmationRequest:
		toolSide{s}.confirm(now, m)
	case *protocol.ConfirmationEnded:
		maps.DeleteFunc(s.tools.asked, func(_, token string) bool { return token == m.Token })
	}
	s.answerTurn(now)
}

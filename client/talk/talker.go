package talk

import (
	"cmp"
	"fmt"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// maxHeardBytes bounds the recorded answers: 23 minutes at 24 kHz.
const maxHeardBytes = 64 << 20

// talker turns a conversation's observations into events and a report. It is not safe for concurrent use.
type talker struct {
	*voice.Conversation

	// Fixed when the conversation begins.
	o     Options
	began time.Time

	started  protocol.SessionStarted
	handback *protocol.Handback
	said     []*voice.Exchange          // in order
	reasons  map[*voice.Exchange]string // why turns were not answered

	pcm        map[*voice.Item][]byte // of open answers, with KeepAudio
	kept       int                    // bytes in pcm and heard
	heard      []byte
	underruns  int
	staleBytes int64
	err        error

	moves  bool // the newest lost connection was lost by a move of the session
	moving bool // the user was informed of the move
}

func (t *talker) emit(now time.Time, e Event) {
	e.AtMS = now.Sub(t.began).Milliseconds()
	t.o.Events(e)
}

func (t *talker) name(x *voice.Exchange) string {
	if x.Index < 0 {
		return ""
	}
	return t.o.Turns[x.Index].Name
}

func (t *talker) Heard(now time.Time, m protocol.ServerMessage) {
	turn := 0
	if x := t.OfTurn(protocol.HeaderOf(m).Turn); x != nil {
		turn = x.Number
	}
	t.emit(now, Event{Event: protocol.HeaderOf(m).Type, Turn: turn, Message: m})
	switch m := m.(type) {
	case *protocol.SessionStarted:
		t.started = *m
	case *protocol.SessionEnded:
		t.handback = m.Handback
	}
}

func (t *talker) HeardAudio(_ time.Time, pcm []byte, i *voice.Item) {
	switch {
	case i == nil:
		t.staleBytes += int64(len(pcm))
	case t.o.KeepAudio:
		pcm = pcm[:min(len(pcm), maxHeardBytes-t.kept)]
		t.kept += len(pcm)
		t.pcm[i] = append(t.pcm[i], pcm...)
	}
}

func (t *talker) Played(i *voice.Item) {
	pcm := t.pcm[i]
	heard := pcm[:min(i.Heard, len(pcm))]
	t.heard = append(t.heard, heard...)
	t.kept -= len(pcm) - len(heard)
	delete(t.pcm, i)
}

func (t *talker) Underrun(int, time.Duration) { t.underruns++ }

// ownEvents are the events of turns without a text.
var ownEvents = map[voice.Kind]string{
	voice.Spoken: EventSpoken, voice.PendingBegan: EventPending, voice.FirstAudio: EventFirstAudio, voice.Answered: EventAnswered,
}

// approvals are the events of a question.
var approvals = map[voice.Approval]string{
	voice.ApprovalAsk: EventAsking, voice.ApprovalYes: EventApproving, voice.ApprovalNo: EventDeclining,
	voice.ApprovalNobody: EventUnanswerable,
}

func (t *talker) Happened(now time.Time, e voice.Event) {
	if name := ownEvents[e.Kind]; name != "" {
		t.emitTurn(now, name, e.X, "")
	}
	switch e.Kind {
	case voice.Began:
		t.said = append(t.said, e.X)
		t.reasons[e.X] = "the conversation ended first"
		if e.X.Interrupts != nil {
			t.emitTurn(now, EventInterrupting, e.X, t.name(e.X))
		}
	case voice.Speaking:
		if e.X.Turn.Act == voice.Type {
			t.emitTurn(now, EventTyped, e.X, e.X.Words.Text)
			break
		}
		t.emitTurn(now, EventSpeaking, e.X, t.name(e.X))
	case voice.Answered, voice.Interrupted:
		delete(t.reasons, e.X)
	case voice.Failed:
		t.failed(now, e.X, e.Text+explained(e.GatewayError))
	case voice.NothingPending: // the ticket's session begins with the client
		t.said = nil
		if len(t.o.Turns) == 0 {
			t.err = fmt.Errorf("%w: no pending request and no turns; give at least one turn", ErrUnanswered)
		}
	case voice.Stuck:
		t.failed(now, e.X, fmt.Sprintf("nothing was heard for %s", t.o.Patience))
	case voice.Question:
		t.emit(now, Event{Event: approvals[e.Approval], Text: e.Text})
	case voice.Violation:
		t.broken(now, e)
	case voice.Refused:
		t.lost(ErrConnect, e)
	case voice.Lost:
		t.lost(ErrLost, e)
	default:
		t.connectionEvent(now, e)
	}
}

// silentMove is how long a move of the session stays unreported, because speech is stored during it.
const silentMove = 2 * time.Second

func (t *talker) connectionEvent(now time.Time, e voice.Event) {
	switch e.Kind {
	case voice.Disconnected:
		if t.moves = e.Act == voice.Move; t.moves {
			return // reported when the session resumes
		}
		t.emit(now, Event{Event: EventDisconnected, Text: e.Err.Error()})
	case voice.Retrying:
		switch {
		case !t.moves:
			t.emit(now, Event{Event: EventRetrying, Text: e.Err.Error()})
		case !t.moving:
			// The first gateway tried may be the one that is leaving.
			t.moving = true
			t.emit(now, Event{Event: EventMoving,
				Text: "the gateway is stopping; the call continues on another one, or here after a restart"})
		}
	case voice.Resumed:
		t.moving = false
		if e.Resumption.Act == voice.Move && e.Resumption.Away < silentMove {
			return
		}
		text := fmt.Sprintf("reconnected after %s; the session continues", e.Resumption.Away.Round(time.Millisecond))
		if e.Resumption.Snapshot {
			text += ", but some messages were lost"
		}
		t.emit(now, Event{Event: EventResumed, Text: text})
	case voice.ResumeFailed:
		t.emit(now, Event{Event: EventNotResumed, Text: "the session cannot be resumed" +
			cmp.Or(explained(e.GatewayError), because(e.Err.Error()))})
	case voice.SpeechLost:
		t.emit(now, Event{Event: EventSpeechLost, Text: fmt.Sprintf("%s of speech were lost", time.Duration(e.N)*frameLength)})
	case voice.MissedMessages:
		t.err = cmp.Or(t.err, fmt.Errorf("%w: %s", ErrProtocol, e.Text))
	case voice.MissedAudio:
		t.err = cmp.Or(t.err, fmt.Errorf("%w: %d bytes of the answer %s are missing", ErrProtocol, e.N, e.Text))
	}
}

func (t *talker) emitTurn(now time.Time, name string, x *voice.Exchange, text string) {
	t.emit(now, Event{Event: name, Turn: x.Number, Text: text})
}

func (t *talker) failed(now time.Time, x *voice.Exchange, reason string) {
	t.reasons[x] = reason
	t.emitTurn(now, EventFailed, x, reason)
}

func (t *talker) broken(now time.Time, e voice.Event) {
	err := fmt.Errorf("%w: %s", ErrProtocol, e.Text)
	if e.Err != nil {
		err = fmt.Errorf("%w: %w", ErrProtocol, e.Err)
	}
	t.err = cmp.Or(t.err, err)
	t.Leave(now)
}

// lost records why the connection ended, unless this side hung up.
func (t *talker) lost(what error, e voice.Event) {
	if !t.LeftAt().IsZero() {
		return
	}
	reason := t.Ended()
	if e := t.LastError(); e != nil {
		reason = cmp.Or(e.Message, reason)
	}
	reason = because(reason)
	err := fmt.Errorf("%w: %s", what, e.Text)
	if e.Err != nil {
		err = fmt.Errorf("%w: %w%s", what, e.Err, reason)
		if code := protocol.CloseStatus(e.Err); code >= 0 {
			err = fmt.Errorf("%w: the gateway closed with %d%s", what, code, reason)
		}
	}
	t.err = cmp.Or(t.err, err)
}

func explained(e *protocol.Error) string {
	if e == nil {
		return ""
	}
	return because(e.Message)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (t *talker) result() (Report, error) {
	r := Report{
		SessionID: t.started.SessionID, Provider: t.started.Provider, Model: t.started.Model,
		InputRate: t.o.InputRate, OutputRate: t.o.OutputRate,
		StaleBytes: t.staleBytes, Underruns: t.underruns, Audio: t.heard, Handback: t.handback,
	}
	begun := 0
	for n, x := range t.said {
		var by *voice.Exchange
		if n+1 < len(t.said) && t.said[n+1].Interrupts == x {
			by = t.said[n+1]
		}
		r.Turns = append(r.Turns, t.report(x, by))
		begun = x.Index + 1
	}
	for _, turn := range t.o.Turns[begun:] {
		r.Turns = append(r.Turns, TurnReport{Name: turn.Name, Typed: !turn.spoken(), Reason: "not started"})
	}
	missing, number := "", 1
	for _, turn := range r.Turns {
		if turn.Pending {
			number = 0
		}
		if !turn.Answered {
			missing = cmp.Or(missing, fmt.Sprintf("turn %d: %s", number, turn.Reason))
		}
		r.Usage = r.Usage.Plus(turn.Usage)
		number++
	}
	switch {
	case t.err != nil:
		return r, t.err
	case missing != "":
		return r, fmt.Errorf("%w: %s", ErrUnanswered, missing)
	case t.staleBytes > 0:
		return r, fmt.Errorf("%w: %d bytes of audio belonged to no item", ErrProtocol, t.staleBytes)
	default:
		return r, nil
	}
}

// report returns a turn's result; by is the exchange that interrupted it, or nil.
func (t *talker) report(x, by *voice.Exchange) TurnReport {
	reason, missing := t.reasons[x]
	r := TurnReport{
		Name: t.name(x), Typed: x.Index >= 0 && x.Turn.Act == voice.Type, Pending: x.Index < 0, Answered: !missing, Reason: reason,
		Said: x.Said.String(), Answer: x.Answer.String(),
		FirstAudioMS: between(x.Spoken, x.First),
		AnswerMS:     audio.MS(t.o.OutputRate, x.Bytes), HeardMS: audio.MS(t.o.OutputRate, x.Heard),
		Latency: x.Latency, Usage: x.Usage,
	}
	if by != nil {
		r.Interruption = &Interruption{FlushMS: between(by.Onset, by.Flushed)}
		if x.Last.After(by.Onset) {
			r.Interruption.LastAudioMS = x.Last.Sub(by.Onset).Milliseconds()
		}
	}
	return r
}

// Report is the result of a conversation.
type Report struct {
	SessionID  string `json:"session_id"`
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	InputRate  int    `json:"input_rate"`
	OutputRate int    `json:"output_rate"`
	// Turns are in order. A pending request, and a turn repeated as an interruption, each add one to those of
	// Options.
	Turns []TurnReport   `json:"turns"`
	Usage protocol.Usage `json:"usage"`
	// StaleBytes of audio belonged to no item, as after a flush. It must be zero.
	StaleBytes int64 `json:"stale_bytes"`
	// Underruns counts the gaps in answers caused by late audio.
	Underruns int `json:"underruns"`
	// Handback is set if the session continued a text conversation.
	Handback *protocol.Handback `json:"handback,omitempty"`
	// Audio is the audio heard, at OutputRate, with Options.KeepAudio; at most maxHeardBytes.
	Audio []byte `json:"-"`
}

// TurnReport is the result of one turn. Times are in ms.
type TurnReport struct {
	Name  string `json:"name,omitempty"`
	Typed bool   `json:"typed,omitempty"`
	// Pending means that it is the pending request of a ticket.
	Pending bool `json:"pending,omitempty"`
	// Answered means that the answer was heard or interrupted as requested; otherwise Reason explains why not.
	Answered bool   `json:"answered"`
	Reason   string `json:"reason,omitempty"`
	Said     string `json:"said,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// FirstAudioMS is the time from the last voiced sample sent (or the text) to the first audio byte of the answer;
	// absent without one.
	FirstAudioMS *int64 `json:"first_audio_ms,omitempty"`
	// AnswerMS is the audio received, HeardMS the audio played.
	AnswerMS     int64             `json:"answer_ms"`
	HeardMS      int64             `json:"heard_ms"`
	Interruption *Interruption     `json:"interruption,omitempty"`
	Latency      *protocol.Latency `json:"latency,omitempty"`
	Usage        protocol.Usage    `json:"usage"`
}

// Interruption has the times to stop an answer, in ms from the first voiced sample (or the text) of the interruption.
type Interruption struct {
	// FlushMS is the time to audio.flush; absent without one.
	FlushMS *int64 `json:"flush_ms,omitempty"`
	// LastAudioMS is the time to the last audio byte of the interrupted answer; 0 if all of it had arrived before.
	LastAudioMS int64 `json:"last_audio_ms"`
}

// between returns the ms between two times; nil if either is zero.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := max(to.Sub(from), 0).Milliseconds()
	return &ms
}

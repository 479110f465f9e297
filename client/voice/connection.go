package voice

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/protocol"
)

// Times of a connection that can be lost.
const (
	// firstPause and longestPause bound the pause before an attempt, which doubles each time. The actual pause is
	// between half and all of it.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// limitPause is how long a gateway refuses a client that tried too often.
	limitPause = 10 * time.Second
	// pingEvery is the interval of acknowledgements, which the gateway answers. After probeAfter without a message the
	// client pings every probeEvery.
	pingEvery  = 5 * time.Second
	probeAfter = 2 * time.Second
	probeEvery = time.Second
	// readTime is the time without data after which a connection counts as lost.
	readTime = 5 * time.Second
	// moveInterval is the minimum time between two moves that are followed without a pause.
	moveInterval = 30 * time.Second
	// displaceTime limits how long the gateway may leave a replaced connection open.
	displaceTime = 10 * time.Second
)

// Errors of a connection.
var (
	errMoved   = errors.New("the gateway moved the session")
	errTooLong = errors.New("could not resume in time") // all attempts failed
	errSilent  = fmt.Errorf("no data received for %s", readTime)
	errNoStart = errors.New("no session.started received")
	errCut     = errors.New("the connection was cut") // on purpose
)

// noToken is the reason for skipping an outage.
const noToken = "the gateway sent no resume_token; set limits.resume_grace to allow resuming"

// connState is the state of the connection to the gateway.
type connState int

const (
	online  connState = iota // connected, or opening the first connection
	away                     // disconnected
	opening                  // session.start with resume was sent
)

// connRequest is a request about connections.
type connRequest int

const (
	requestDial   connRequest = iota // open another one, then call dialled or dialFailed
	requestReset                     // reset the connection
	requestGoAway                    // close it like a page that is left
)

// connection is the connection to the gateway, which can be lost and replaced.
type connection struct {
	// Fixed after New.
	o    *Options
	emit func(now time.Time, e Event) // reports an event of the current exchange

	out      []protocol.ClientMessage // to be sent while online
	requests []connRequest
	sequence sequence

	state   connState
	closing bool      // the conversation is ending: no more resumes while online
	roaming bool      // another connection is being opened while this one is in use
	began   time.Time // when the session began, or zero
	resumes int       // how often the session was resumed

	sessionID string
	token     string // for the next resume; empty without one
	act       Act    // the act that disconnected; empty if the connection was lost
	// lost is the time of the loss, asked that of the last session.start; tries counts attempts.
	lost, asked time.Time
	tries       int
	dialAt      time.Time       // when to dial; zero for never
	start       *protocol.Start // to send; nil afterwards
	moved       time.Time       // when a move was followed without a pause, or zero

	heard  time.Time // when data last arrived
	pinged time.Time
	// pingT is T of the ping after a resume, whose answer follows the replay; zero after the answer.
	pingT float64
	// snapshot: turns may have ended without a message.
	snapshot bool
	replaced time.Time // since when a replaced connection has been open, or zero
}

func (w *connection) send(m protocol.ClientMessage) { w.out = append(w.out, m) }

func (w *connection) request(r connRequest) { w.requests = append(w.requests, r) }

// sendable reports whether messages can be sent now.
func (w *connection) sendable() bool {
	return w.state == online && len(w.out) > 0 || w.state == opening && w.start != nil
}

// take appends the messages to send now to out.
func (w *connection) take(out []protocol.ClientMessage) []protocol.ClientMessage {
	switch w.state {
	case online:
		out = append(out, w.out...)
		clear(w.out)
		w.out = w.out[:0]
	case opening:
		if w.start != nil {
			out = append(out, w.start)
			w.start = nil
		}
	case away:
	}
	return out
}

// dropPresses drops unsent changes of the push-to-talk button.
func (w *connection) dropPresses() {
	w.out = slices.DeleteFunc(w.out, func(m protocol.ClientMessage) bool { _, press := m.(*protocol.InputActivity); return press })
}

// report acknowledges messages and played audio, so that the gateway can drop them. Without a connection, the next
// report includes them.
func (w *connection) report(p protocol.Playback, received int64) {
	if w.token != "" {
		p.ReceivedMS, p.Seq = received, w.sequence.highest
	}
	if w.state == online || p.Done {
		w.send(&p)
	}
}

// accept records a message and reports whether to handle it: only session.started and errors answer a resume, and
// repeated messages were handled before.
func (w *connection) accept(now time.Time, m protocol.ServerMessage) bool {
	switch m.(type) {
	case *protocol.SessionStarted:
	case *protocol.Error:
		if w.state == opening {
			return true // a connection that gets no session has numbers of its own
		}
	default:
		if w.state != online {
			return false
		}
	}
	before, seq := w.sequence.highest, protocol.HeaderOf(m).Seq
	fresh, missing := w.sequence.receive(seq)
	if missing > 0 {
		w.emit(now, Event{Kind: MissedMessages, N: missing, Text: fmt.Sprintf("message %d was followed by message %d", before, seq)})
	}
	return fresh
}

// started handles session.started of a new session.
func (w *connection) started(now time.Time, m *protocol.SessionStarted) {
	w.began, w.heard, w.pinged = now, now, now
	if w.o.Resume.Within > 0 {
		w.token = m.ResumeToken
	}
	if w.token == "" && len(w.o.Outages) > 0 {
		w.emit(now, Event{Kind: OutageSkipped, Text: noToken})
	}
}

// steady reports whether the connection may be closed on purpose.
func (w *connection) steady() bool {
	return w.state == online && !w.roaming && w.token != "" && !w.closing
}

// disconnect closes the connection for at least the given time.
func (w *connection) disconnect(now time.Time, act Act, wait time.Duration) {
	switch {
	case w.token == "":
		w.emit(now, Event{Kind: OutageSkipped, Text: noToken})
		return
	case !w.steady():
		w.emit(now, Event{Kind: OutageSkipped, Text: "not connected"})
		return
	}
	w.act = act
	switch act {
	case Roam:
		w.roaming = true
		w.request(requestDial)
		return
	case Reload:
		w.request(requestGoAway)
	default:
		w.request(requestReset)
	}
	w.lose(now, errCut)
	w.dialAt = later(w.dialAt, now.Add(wait))
}

// resumable reports whether a session whose connection is lost may be resumed.
func (w *connection) resumable() bool {
	return w.o.Resume.Within > 0 && w.token != "" && (!w.closing || w.state != online)
}

// mayHelp reports whether reconnecting may help after a read error.
func mayHelp(err error) bool {
	code := protocol.CloseStatus(err)
	return code != protocol.CloseDone && code != protocol.ClosePolicy && code != protocol.CloseTooBig && code < protocol.CloseBadProtocol
}

// fail begins or continues to resume after a read error.
func (w *connection) fail(now time.Time, err error) {
	switch {
	case w.state != online:
		w.retry(now, err)
	case protocol.CloseStatus(err) == protocol.CloseMoving:
		w.follow(now, err)
	default:
		w.act = ""
		w.lose(now, err)
	}
}

// move handles session.moving: the gateway gave up the session and closes the connection.
func (w *connection) move(now time.Time) {
	if !w.closing && w.resumable() {
		w.request(requestReset)
		w.follow(now, errMoved)
	}
}

// follow resumes at once on the session's new gateway. If sessions move again soon, the client pauses before it follows.
func (w *connection) follow(now time.Time, err error) {
	w.act = Move
	w.lose(now, err)
	if w.moved.IsZero() || now.Sub(w.moved) >= moveInterval {
		w.moved, w.dialAt = now, now
	}
}

// lose records the loss of the connection.
func (w *connection) lose(now time.Time, err error) {
	w.state, w.roaming, w.pingT = away, false, 0
	w.lost, w.tries = now, 0
	w.dialAt = now.Add(w.pause(1))
	w.emit(now, Event{Kind: Disconnected, Act: w.act, Err: err})
}

// pause returns the wait before an attempt, counted from 1.
func (w *connection) pause(attempt int) time.Duration {
	whole := min(firstPause<<min(attempt-1, 10), longestPause)
	return whole/2 + time.Duration(w.o.Resume.Random()*float64(whole/2))
}

// retry schedules the next attempt.
func (w *connection) retry(now time.Time, err error) {
	w.state, w.start = away, nil
	pause := w.pause(w.tries + 1)
	if protocol.CloseStatus(err) == protocol.CloseLimit {
		pause = limitPause
	}
	w.dialAt = now.Add(pause)
	w.emit(now, Event{Kind: Retrying, Err: err})
}

// tick performs the due actions of the connection. An error means that the session cannot be resumed.
func (w *connection) tick(now time.Time) error {
	switch w.state {
	case online:
		w.tickOnline(now)
	case away:
		if now.Sub(w.lost) >= w.o.Resume.Within {
			return errTooLong
		}
		if !w.dialAt.IsZero() && !now.Before(w.dialAt) {
			w.dialAt = time.Time{}
			w.request(requestDial)
		}
	case opening:
		if now.Sub(w.asked) >= w.o.ConnectTime {
			w.request(requestReset)
			w.retry(now, errNoStart)
		}
	}
	return nil
}

func (w *connection) tickOnline(now time.Time) {
	if !w.replaced.IsZero() && now.Sub(w.replaced) >= displaceTime {
		w.replaced = time.Time{}
		w.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("a replaced connection was not closed within %s", displaceTime)})
	}
	switch {
	case w.token == "" || w.closing:
	case now.Sub(w.heard) >= readTime:
		w.act = ""
		w.request(requestReset)
		w.lose(now, errSilent)
	case !now.Before(w.pingAt()):
		w.ping(now)
	}
}

// pingAt returns when the next ping is due.
func (w *connection) pingAt() time.Time {
	return earlier(w.pinged.Add(pingEvery), later(w.heard.Add(probeAfter), w.pinged.Add(probeEvery)))
}

// ping acknowledges the received messages and returns the value that its answer will repeat.
func (w *connection) ping(now time.Time) float64 {
	w.pinged = now
	t := float64(now.Sub(w.began).Microseconds()+1) / 1000
	w.send(&protocol.Ping{T: t, Seq: w.sequence.highest})
	return t
}

// next returns when tick is due next; zero for never.
func (w *connection) next() time.Time {
	switch {
	case w.state == away && w.dialAt.IsZero():
		return w.lost.Add(w.o.Resume.Within)
	case w.state == away:
		return earlier(w.dialAt, w.lost.Add(w.o.Resume.Within))
	case w.state == opening:
		return w.asked.Add(w.o.ConnectTime)
	case w.token == "" || w.closing:
		return time.Time{}
	default:
		return earlier(w.pingAt(), w.heard.Add(readTime))
	}
}

// dialled begins to resume on a new connection. It reports whether the connection is wanted, and whether it replaces an
// open one.
func (w *connection) dialled(now time.Time) (wanted, replaces bool) {
	replaces = w.state == online
	// After session.end was sent on the old connection, the session may be over already.
	if w.state == opening || replaces && (!w.roaming || w.closing) {
		return false, false
	}
	if replaces {
		w.lost, w.tries, w.replaced = now, 0, now
		w.emit(now, Event{Kind: Disconnected, Act: w.act, Err: errCut})
	}
	w.state, w.roaming, w.asked, w.dialAt = opening, false, now, time.Time{}
	w.tries++
	s := w.o.Start
	w.start = &protocol.Start{InputRate: s.InputRate, OutputRate: s.OutputRate, Client: s.Client, Resume: &protocol.Resume{
		SessionID: w.sessionID, Token: w.token, LastSeq: w.sequence.highest,
	}}
	w.sequence.expectReplay()
	return true, replaces
}

// dialFailed handles a failed dial.
func (w *connection) dialFailed(now time.Time, err error) {
	switch {
	case w.state == away:
		w.tries++
		w.retry(now, err)
	case w.state == online && w.roaming:
		w.roaming = false
		w.emit(now, Event{Kind: Retrying, Err: err})
	}
}

// displaced handles the end of a replaced connection.
func (w *connection) displaced(now time.Time, err error) {
	if w.replaced.IsZero() {
		return
	}
	w.replaced = time.Time{}
	w.emit(now, Event{Kind: Displaced, Err: err})
	if code := protocol.CloseStatus(err); code != protocol.CloseResumedElsewhere {
		w.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("a replaced connection ended with %v instead of close code %d", err,
			protocol.CloseResumedElsewhere)})
	}
}

// resumed handles session.started of a resumed session.
func (w *connection) resumed(now time.Time, m *protocol.SessionStarted) {
	if !m.Resumed || m.SessionID != w.sessionID {
		w.emit(now, Event{Kind: Violation,
			Text: fmt.Sprintf("resume of %s got session.started of %s, resumed %v", w.sessionID, m.SessionID, m.Resumed)})
	}
	w.state, w.token, w.heard, w.snapshot = online, m.ResumeToken, now, m.Snapshot
	w.resumes++
	if m.Snapshot {
		w.sequence.skipTo(m.Seq)
	}
	w.emit(now, Event{Kind: Resumed, Resumption: &Resumption{
		Act: w.act, Away: now.Sub(w.lost), Took: now.Sub(w.asked), Tries: w.tries, Snapshot: m.Snapshot,
	}})
	if w.token != "" {
		w.pingT = w.ping(now)
	}
}

// caughtUp reports whether a pong ends the replay after a resume.
func (w *connection) caughtUp(now time.Time, m *protocol.Pong) bool {
	if w.pingT == 0 || m.T != w.pingT {
		return false
	}
	w.pingT = 0
	if missing := w.sequence.settle(m.Seq); missing > 0 {
		w.emit(now, Event{Kind: MissedMessages, N: missing, Text: fmt.Sprintf("missed messages that were not replayed: %d", missing)})
	}
	return true
}

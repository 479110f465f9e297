package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// chaosGrace is how long the gateway keeps a session without a client.
const chaosGrace = 3 * time.Second

// loss is how a caller loses its connection.
type loss string

const (
	lossReset  loss = "reset"
	lossFinish loss = "finish"
	lossHole   loss = "black hole"
	lossFreeze loss = "freeze" // nothing is lost, only delayed
	lossReload loss = "reload" // the page reloads and loses its audio
	lossRoam   loss = "roam"   // the caller connects from elsewhere while the old connection works
	lossTwice  loss = "twice"  // loses the connection again while resuming
	lossTwin   loss = "twin"   // two tabs resume with one token at once

	// lossGateway is not random: a gateway was killed or drains.
	lossGateway loss = "a gateway's end"
)

var losses = weighted[loss]{
	{lossReset, 5}, {lossFinish, 3}, {lossHole, 3}, {lossFreeze, 3}, {lossReload, 4}, {lossRoam, 4}, {lossTwice, 3}, {lossTwin, 3},
}

// outage is a loss and the time without a connection.
type outage struct {
	how  loss
	away time.Duration
	busy bool // many requests just before it, so that the client misses more messages than the gateway stores
}

func drawOutage(rng *rand.Rand) outage {
	o := outage{how: losses.draw(rng), away: between(rng, 0, 800*time.Millisecond)}
	switch rng.IntN(12) {
	case 0:
		o.away = between(rng, chaosGrace-500*time.Millisecond, chaosGrace+1500*time.Millisecond)
	case 1, 2:
		o.busy, o.away = true, between(rng, 1500*time.Millisecond, chaosGrace-500*time.Millisecond)
	}
	return o
}

type attached struct {
	conn *protocol.Conn
	node *chaosNode     // its gateway
	in   chan happening // from its reader, closed with the connection; 256 frames are some seconds
	work sync.WaitGroup // its reader and the closing goroutine
	code websocket.StatusCode
	left bool // the caller has connected elsewhere

	refused string // the last error received after that
}

// dial opens a connection and starts its reader. If a gateway that was just killed refuses it, dial tries the next one.
func (v *visit) dial(back bool) bool {
	for since := time.Now(); ; <-time.After(20 * time.Millisecond) {
		conn, err := protocol.Dial(context.Background(), v.caller.url, protocol.DialOptions{Client: v.caller.crowd.client, Back: back})
		if err != nil && v.caller.routed().troubled() && v.caller.crowd.pulse.between(since, time.Now()) < chaosPatience {
			continue
		}
		if err != nil {
			v.complain("it could not connect: %v", err)
			return false
		}
		at := &attached{conn: conn, node: v.caller.routed(), in: make(chan happening, 256)}
		at.work.Go(at.read)
		v.become(at)
		return true
	}
}

// become makes at the visit's connection.
func (v *visit) become(at *attached) {
	v.at, v.in = at, at.in
	v.all = append(v.all, at)
}

// read forwards input until the connection ends.
func (a *attached) read() {
	defer close(a.in)
	for {
		f, err := a.conn.Read()
		h := happening{at: time.Now(), err: err}
		switch {
		case err != nil:
		case f.Audio:
			h.bytes, h.pcm = len(f.Data), append([]byte(nil), f.Data...)
		default:
			h.msg, h.err = protocol.ParseServer(f.Data)
		}
		a.in <- h
		if h.err != nil {
			return
		}
	}
}

// leave abandons the connection.
func (a *attached) leave() {
	a.left = true
	a.work.Go(func() {
		for h := range a.in {
			if m, ok := h.msg.(*protocol.Error); ok {
				a.refused = m.Code + ": " + m.Message
			}
			if h.err != nil {
				a.code = protocol.CloseStatus(h.err)
			}
		}
	})
}

// hangUp ends all connections and checks the ends of abandoned ones.
func (v *visit) hangUp() {
	for _, a := range v.all {
		a.conn.Abort()
		if !a.left {
			for range a.in { // until the reader ends
			}
		}
		a.work.Wait()
		moved := a.code == protocol.CloseMoving || a.code == protocol.CloseServerLeaving
		if a.left && a.code != protocol.CloseResumedElsewhere && !moved && a.code > 0 && v.reason == "" && v.refusedAt.IsZero() {
			v.complain("the connection that was left ended with %d (%s)", a.code, a.refused)
		}
	}
}

// lose loses the connection.
func (v *visit) lose(o outage) {
	if v.away || v.losing || v.closing || v.session == "" {
		return
	}
	if o.busy {
		o.busy = false
		v.typedAt = append(v.typedAt, time.Now())
		v.say(&protocol.InputText{Text: fmt.Sprintf("lookups ok c%dv%db%d s1", v.caller.n, v.number, v.step)})
		v.after(50*time.Millisecond, func() { v.lose(o) }) // otherwise the loss includes the request
		return
	}
	v.losingAt = time.Now()
	v.lostTimes = append(v.lostTimes, v.losingAt)
	command := testutil.Command{}
	switch o.how {
	case lossReset, lossTwice, lossTwin:
		command.Do = testutil.Reset
	case lossFinish:
		command.Do = testutil.Finish
	case lossHole:
		command.Do = testutil.BlackHole
		v.after(150*time.Millisecond, v.at.conn.Abort)
	case lossFreeze:
		command = testutil.Command{Do: testutil.Freeze, For: 300 * time.Millisecond}
		v.lastFrame = time.Time{} // the following gap is the network's
	case lossReload:
		at := v.at
		at.work.Go(func() { _ = at.conn.Close(protocol.CloseServerLeaving, "reload") }) // the gateway need not answer
	case lossRoam:
		v.at.leave()
		v.holes += v.early
		v.in, v.outage, v.lostAt = nil, o, time.Now()
		v.away = true
		v.back()
		return
	}
	if command.Do != "" {
		if err := v.caller.proxy.Do(command); err != nil {
			v.complain("the proxy: %v", err)
		}
	}
	if o.how != lossFreeze {
		v.losing, v.outage = true, o
	}
}

// lost handles the end of the connection and reports whether the caller resumes.
func (v *visit) lost() bool {
	switch {
	case v.vanished:
		return false
	case v.away:
		return v.turnedAway()
	case v.reason != "" || v.session == "":
		return false
	case v.losing:
		v.awayAs(v.outage)
	case v.closing:
		return false
	case v.byGateway():
		v.losingAt = time.Now()
		v.lostTimes = append(v.lostTimes, v.losingAt)
		v.awayAs(outage{how: lossGateway, away: 20 * time.Millisecond})
		v.outages[string(lossGateway)]++
	case v.code == protocol.CloseResumedElsewhere && time.Since(v.stray) < chaosPatience:
		// The newest tab has the session, which the forwarding gateway did not know yet.
		v.refusedAt = time.Now()
		return false
	default:
		v.complain("its connection ended with %d without an error message%s", v.code, v.lately())
		return false
	}
	v.after(v.outage.away, v.back)
	return true
}

// awayAs records a lost connection.
func (v *visit) awayAs(o outage) {
	v.holes += v.early
	v.losing, v.away, v.in, v.outage, v.lostAt = false, true, nil, o, time.Now()
	v.openBefore = v.openTurn()
}

// byGateway reports whether the connected gateway or the owner ended the connection, by a move or a kill.
func (v *visit) byGateway() bool {
	owner := v.caller.crowd.links.owner(v.session)
	return v.code == protocol.CloseMoving || v.at.node.troubled() || owner != nil && owner.troubled()
}

// turnedAway handles the end of a connection during a resume. It retries unless the session is over.
func (v *visit) turnedAway() bool {
	v.mention("%.3f rejected by %s with %d", time.Since(v.began).Seconds(), v.at.node.name, v.code)
	v.holes += 4 // that connection's first messages, if its session got so far, are not repeated
	waited := v.caller.crowd.pulse.between(v.lostAt, time.Now())
	if v.reason != "" || v.code >= protocol.CloseBadProtocol || waited > hushPatience {
		v.refusedAt = time.Now()
		return false
	}
	v.in = nil
	v.after(100*time.Millisecond, v.back)
	return true
}

// back resumes the session.
func (v *visit) back() {
	if v.vanished {
		return
	}
	v.displacing = ""
	r := &protocol.Resume{SessionID: v.session, Token: v.token, LastSeq: v.seq}
	if v.item != "" && v.outage.how != lossReload {
		r.Audio = &protocol.ResumeAudio{ItemID: v.item, ReceivedMS: int64(v.have[v.item] / 48)}
	}
	if v.outage.how == lossReload {
		v.forgotten = true
	}
	if !v.dial(true) {
		v.over = true
		return
	}
	v.mention("%.3f resuming with #%d and %+v", time.Since(v.began).Seconds(), r.LastSeq, r.Audio)
	v.write(&protocol.Start{InputRate: v.habits.rate, OutputRate: 24000, Resume: r})
	if v.outage.how == lossTwin {
		v.outage.how = lossReset
		v.twin(r)
	}
	if v.outage.how == lossTwice {
		v.outage.how = lossReset
		v.holes += 4
		at := v.at
		v.in = nil
		at.conn.Reset()
		for range at.in { // until it ends
		}
		v.after(50*time.Millisecond, v.back)
	}
}

// isBack handles session.started after a resume.
func (v *visit) isBack(m *protocol.SessionStarted) {
	if m.SessionID != v.session || !v.away {
		v.complain("it was disconnected %v from %s, and %s was resumed%s", v.away, v.session, m.SessionID, v.lately())
	}
	v.away, v.base, v.newest, v.older = false, v.seq, v.seq, 0 // its seq is the highest
	v.open, v.lastFrame = "", time.Time{}
	if v.displacing != "" {
		v.displaced, v.displacing = append(v.displaced, v.displacing), ""
	}
	v.returns++
	v.strayStarts++
	v.backAt = append(v.backAt, time.Now())
	v.early = 3 // missed messages may still be missing
	if m.Snapshot {
		v.forget(v.seq)
	}
	v.takenOver()
	for token, answer := range v.unanswered() {
		v.after(150*time.Millisecond, func() {
			if v.questions[token] == "" {
				answer()
			}
		})
	}
}

// forget handles a snapshot: open items not repeated in it are over.
func (v *visit) forget(seq int64) {
	v.snapshots, v.excused = v.snapshots+1, seq-1
	for n, t := range v.turns {
		if t.status == "" {
			delete(v.turns, n)
		}
	}
	for id, t := range v.tools {
		if t.ended == nil {
			delete(v.tools, id)
		}
	}
	for token, outcome := range v.questions {
		if outcome == "" {
			delete(v.questions, token)
		}
	}
}

// count checks a seq and reports whether it is new (S1).
func (v *visit) count(m protocol.ServerMessage) bool {
	seq := protocol.HeaderOf(m).Seq
	if v.numbers[seq] {
		v.repeats++
		v.mention("again #%d %s%s", seq, typeOf(m), about(m))
		return false
	}
	v.numbers[seq] = true
	started, begins := m.(*protocol.SessionStarted)
	switch {
	case begins && started.Resumed:
		if seq <= v.seq {
			v.complain("the session was resumed with seq %d, and %d had arrived", seq, v.seq)
		}
	case v.base == 0 && seq != v.seq+1 && v.session != "":
		v.complain("seq %d arrived after %d%s", seq, v.seq, v.lately())
	case v.base > 0 && seq > v.base && seq != v.newest+1:
		v.complain("seq %d arrived after %d, since it resumed with %d%s", seq, v.newest, v.base, v.lately())
	case v.base > 0 && seq < v.base && seq < v.older:
		v.complain("the missed seq %d arrived after %d%s", seq, v.older, v.lately())
	}
	if seq > v.base {
		if _, again := m.(*protocol.AudioStart); !again && !begins {
			v.early = 0
		}
		v.newest = seq
	} else {
		v.older = seq
	}
	v.seq = max(v.seq, seq)
	return true
}

// lately lists the latest messages for a finding.
func (v *visit) lately() string { return "\n\t" + strings.Join(v.latest, "\n\t") }

// complete reports messages that never arrived, after the session's end.
func (v *visit) complete() {
	missing := []int64{}
	for seq := v.excused + 1; seq < v.seq; seq++ {
		if !v.numbers[seq] {
			missing = append(missing, seq)
		}
	}
	if len(missing) > v.holes {
		v.complain("%d messages never arrived, and at most %d numbers were not used: %v%s", len(missing), v.holes, missing, v.lately())
	}
}

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

// theft is with what somebody tries to come to a session that is not theirs (S6).
type theft string

const (
	theftOld      theft = "an old token"                           // it was replaced, and so was the next one
	theftTwin     theft = "the token of a tab that was displaced"  // the other tab has a newer one
	theftOther    theft = "the token of another session"           //
	theftStranger theft = "the newest token, under another's name" //
	theftElse     theft = "the newest token, of a session near it" // the session's id is another one
)

var thefts = weighted[theft]{{theftOld, 3}, {theftTwin, 3}, {theftOther, 2}, {theftStranger, 2}, {theftElse, 1}}

// gang is whoever tries to come to a visit's session besides its caller, at the same time.
type gang struct {
	work sync.WaitGroup

	mu         sync.Mutex // guards the following fields
	tried      map[theft]int
	complaints []string
}

// wait waits until nobody tries any more, and returns what is wrong.
func (g *gang) wait() []string {
	g.work.Wait()
	return g.complaints
}

func (g *gang) complain(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.complaints = append(g.complaints, fmt.Sprintf(format, args...))
}

// thief lets somebody try to come to the visit's session, whether its caller is there, away or just
// coming back.
func (v *visit) thief() {
	if v.session == "" {
		return
	}
	way := v.habits.thefts[v.step%len(v.habits.thefts)]
	start := &protocol.Start{InputRate: v.habits.rate, OutputRate: 24000, Resume: &protocol.Resume{SessionID: v.session, LastSeq: 1}}
	switch {
	case way == theftTwin && len(v.displaced) > 0:
		start.Resume.Token = v.displaced[len(v.displaced)-1]
	case way == theftOld && len(v.spent) > 0 && v.spent[len(v.spent)-1] != "":
		start.Resume.Token = v.spent[len(v.spent)-1]
	case way == theftStranger:
		start.Resume.Token, start.Client = v.token, &protocol.ClientInfo{ID: "mallory"}
	case way == theftElse:
		start.Resume.Token, start.Resume.SessionID = v.token, v.session+"a"
	default:
		way, start.Resume.Token = theftOther, v.caller.crowd.stealResume(v.session)
	}
	g := &v.gang
	g.mu.Lock()
	if g.tried == nil {
		g.tried = map[theft]int{}
	}
	g.tried[way]++
	g.mu.Unlock()
	g.work.Go(func() { v.caller.crowd.breakIn(g, way, start) })
}

// breakIn tries to come in, over a network that works.
func (c *crowd) breakIn(g *gang, way theft, start *protocol.Start) {
	conn, err := protocol.Dial(context.Background(), "http://"+c.door.Addr()+"/v1/voice", protocol.DialOptions{Client: c.client, Back: true})
	if err != nil {
		return // a gateway was killed just now; whoever cannot connect steals nothing
	}
	defer conn.Abort()
	stuck := time.AfterFunc(4*chaosPatience, func() {
		g.complain("a thief with %s got no answer", way)
		conn.Abort()
	})
	defer stuck.Stop()
	text, err := protocol.EncodeClient(start)
	if err != nil {
		g.complain("%v", err)
		return
	}
	_ = conn.WriteText(text) // the reader is told
	for {
		f, err := conn.Read()
		if err != nil {
			if code := protocol.CloseStatus(err); code != protocol.CloseTicket && code != protocol.CloseLimit && code != protocol.CloseMoving && code != protocol.CloseServerLeaving && code > 0 {
				g.complain("a thief with %s was turned away with %d", way, code)
			}
			return
		}
		if m, err := protocol.ParseServer(f.Data); err == nil && !f.Audio {
			if _, in := m.(*protocol.SessionStarted); in {
				g.complain("a thief came in with %s", way)
				return
			}
		}
	}
}

// twin lets a second tab come with the same token at the same time. One of the two has the session
// afterwards, and the other one is told that it has.
func (v *visit) twin(r *protocol.Resume) {
	first := v.at
	if !v.dial(true) {
		v.become(first)
		return
	}
	second := v.at
	v.write(&protocol.Start{InputRate: v.habits.rate, OutputRate: 24000, Resume: r})
	came := map[*attached][]happening{}
	var loser *attached
	patience := time.NewTimer(2 * chaosPatience)
	defer patience.Stop()
	for loser == nil {
		var h happening
		from := first
		select {
		case h = <-first.in:
		case h = <-second.in:
			from = second
		case <-patience.C:
			v.complain("two tabs came with one token, and after %v both have the session", 2*chaosPatience)
			loser = first
			continue
		}
		came[from] = append(came[from], h)
		if h.err != nil {
			loser = from
		}
	}
	winner := first
	if loser == first {
		winner = second
	}
	for _, h := range came[loser] {
		if h.err != nil {
			loser.code = protocol.CloseStatus(h.err)
			v.mention("  the other tab: closed with %d", loser.code)
		}
	}
	for _, h := range came[loser] {
		if h.msg != nil {
			v.mention("  the other tab: %s", v.describe(h))
		}
		// If it was not displaced, but its gateway has ended, its token is good until the other tab is in. A gateway
		// that is killed before that has displaced it in vain.
		if m, ok := h.msg.(*protocol.SessionStarted); ok && loser.code == protocol.CloseResumedElsewhere {
			v.displacing = m.ResumeToken
		}
	}
	// Nobody has told it that it has lost. It may have displaced the other one all the same: unseen, before it was
	// in, or by coming in after the other one.
	in, other := startedWith(came[loser]), startedWith(came[winner])
	if loser.code < 0 && (in == 0 || other > 0 && in > other) {
		v.stray = time.Now()
	}
	loser.left, v.twins = true, v.twins+1
	if loser.code == protocol.CloseTicket {
		loser.left = false // the session is over, and the other one will be told so too
	}
	v.holes += 4 // what began the loser's connection is not sent again
	v.at, v.in = winner, winner.in
	for _, h := range came[winner] {
		v.take(h)
	}
}

// startedWith returns the seq of session.started; zero if it has not come.
func startedWith(came []happening) int64 {
	for _, h := range came {
		if m, is := h.msg.(*protocol.SessionStarted); is {
			return m.Seq
		}
	}
	return 0
}

// stealResume returns the token of another session.
func (c *crowd) stealResume(session string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.ways) - 1; i >= 0; i-- {
		if owner, token, _ := cutToken(c.ways[i]); owner != session {
			return token
		}
	}
	return "nobodys"
}

// exposeResume lets thieves know of a token to come back with.
func (c *crowd) exposeResume(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ways = append(c.ways, session+" "+token)
	if len(c.ways) > 64 {
		c.ways = slices.Delete(c.ways, 0, 32)
	}
}

// steal returns a token of another visit, or one that nobody has.
func (c *crowd) steal(session string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.tokens) - 1; i >= 0; i-- {
		if owner, token, _ := cutToken(c.tokens[i]); owner != session {
			return token
		}
	}
	return "cf_nobodys"
}

// expose lets thieves know of a token.
func (c *crowd) expose(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = append(c.tokens, session+" "+token)
	if len(c.tokens) > 64 {
		c.tokens = slices.Delete(c.tokens, 0, 32)
	}
}

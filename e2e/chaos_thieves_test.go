package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

// theft is a token with which a client tries to take another session (S6).
type theft string

const (
	theftOld      theft = "an old token"                           // replaced twice
	theftTwin     theft = "the token of a tab that was displaced"  // the other tab has a newer one
	theftOther    theft = "the token of another session"           //
	theftStranger theft = "the newest token, under another's name" //
	theftElse     theft = "the newest token, of a session near it" // with another session's id
)

var thefts = weighted[theft]{{theftOld, 3}, {theftTwin, 3}, {theftOther, 2}, {theftStranger, 2}, {theftElse, 1}}

// gang contains the clients that try a visit's session at the same time.
type gang struct {
	work sync.WaitGroup

	mu         sync.Mutex // guards the following fields
	tried      map[theft]int
	complaints []string
}

// wait waits for all attempts and returns the problems.
func (g *gang) wait() []string {
	g.work.Wait()
	return g.complaints
}

func (g *gang) complain(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.complaints = append(g.complaints, fmt.Sprintf(format, args...))
}

// thief tries the visit's session, whether its caller is connected, disconnected or resuming.
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

// breakIn tries to connect over a working network.
func (c *crowd) breakIn(g *gang, way theft, start *protocol.Start) {
	conn, err := protocol.Dial(context.Background(), "http://"+c.door.Addr()+"/v1/voice", protocol.DialOptions{Client: c.client, Back: true})
	if err != nil {
		return // a gateway was killed just now: no theft without a connection
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
	_ = conn.WriteText(text) // the reader reports it
	for {
		f, err := conn.Read()
		if err != nil {
			if code := protocol.CloseStatus(err); code != protocol.CloseTicket && code != protocol.CloseLimit && code != protocol.CloseMoving && code != protocol.CloseServerLeaving && code > 0 {
				g.complain("a thief with %s was rejected with %d", way, code)
			}
			return
		}
		if m, err := protocol.ParseServer(f.Data); err == nil && !f.Audio {
			if _, in := m.(*protocol.SessionStarted); in {
				g.complain("a thief connected with %s", way)
				return
			}
		}
	}
}

// twin starts a second tab with the same token at the same time. Afterwards one tab has the session, and the other one
// is informed.
func (v *visit) twin(r *protocol.Resume) {
	first := v.at
	if !v.dial(true) {
		v.become(first)
		return
	}
	second := v.at
	v.write(&protocol.Start{InputRate: v.habits.rate, OutputRate: 24000, Resume: r})
	received := map[*attached][]happening{}
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
			v.complain("two tabs used one token, and after %v both have the session", 2*chaosPatience)
			loser = first
			continue
		}
		received[from] = append(received[from], h)
		if h.err != nil {
			loser = from
		}
	}
	winner := first
	if loser == first {
		winner = second
	}
	for _, h := range received[loser] {
		if h.err != nil {
			loser.code = protocol.CloseStatus(h.err)
			v.mention("  the other tab: closed with %d", loser.code)
		}
	}
	for _, h := range received[loser] {
		if h.msg != nil {
			v.mention("  the other tab: %s", v.describe(h))
		}
		// If its gateway ended before a displacement, its token is valid until the other tab has started. A gateway
		// killed before that displaced it without effect.
		if m, ok := h.msg.(*protocol.SessionStarted); ok && loser.code == protocol.CloseResumedElsewhere {
			v.displacing = m.ResumeToken
		}
	}
	// This tab got no notice of its loss. It may have displaced the other one: invisibly, before its start, or by
	// starting after it.
	in, other := startedWith(received[loser]), startedWith(received[winner])
	if loser.code < 0 && (in == 0 || other > 0 && in > other) {
		v.stray = time.Now()
		defer func() { // after the winner's start
			v.strayStarts = 0
			if other == 0 {
				v.strayStarts = -1
			}
		}()
	}
	loser.left, v.twins = true, v.twins+1
	if loser.code == protocol.CloseTicket {
		loser.left = false // the session is over, as the other tab will learn
	}
	v.holes += 4 // the first messages of the loser's connection are not repeated
	v.at, v.in = winner, winner.in
	for _, h := range received[winner] {
		v.take(h)
	}
}

// startedWith returns the seq of session.started; zero if it is missing.
func startedWith(received []happening) int64 {
	for _, h := range received {
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

// exposeResume gives thieves a resume token.
func (c *crowd) exposeResume(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ways = append(c.ways, session+" "+token)
	if len(c.ways) > 64 {
		c.ways = slices.Delete(c.ways, 0, 32)
	}
}

// steal returns a token of another visit, or an invented one.
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

// expose gives thieves a token.
func (c *crowd) expose(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = append(c.tokens, session+" "+token)
	if len(c.tokens) > 64 {
		c.tokens = slices.Delete(c.tokens, 0, 32)
	}
}

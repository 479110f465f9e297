package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/store"
)

// takersSessions is the number of sessions that two gateways try to take over at once.
const takersSessions = 8

// left is a session of a dead gateway, from the view of its client.
type left struct {
	id, token string
	seq       int64
	turn      int // the newest turn that the client knows to be over
}

// begin starts a session at a gateway over one of the wires, has a turn in it, and waits until it is stored.
func (s *site) begin(gateway int, provider string) left {
	s.t.Helper()
	c, err := protocol.Dial(s.t.Context(), "ws://"+s.gateways[gateway].addr+"/v1/voice", protocol.DialOptions{Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Abort)
	say(s.t, c, &protocol.Start{Provider: provider, InputRate: callerRate, OutputRate: answerRate})
	var began protocol.SessionStarted
	next(s.t, c, "session.started", &began)
	say(s.t, c, &protocol.InputText{Text: "my colour is turquoise"})
	var over protocol.TurnEnded
	seq := next(s.t, c, "turn.ended", &over)
	return left{id: began.SessionID, token: began.ResumeToken, seq: seq, turn: over.Turn}
}

// open opens the store of the gateways from the test's process.
func (s *site) open() *store.Store {
	s.t.Helper()
	kept, err := store.Open(s.t.Context(), store.Options{URL: s.nats.url(), Replicas: clusterSize})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = kept.Close() })
	return kept
}

// noted waits until a session has a checkpoint of its first turn.
func (l left) noted(t *testing.T, kept *store.Store) {
	t.Helper()
	testutil.WaitUntil(t, l.id+" has a checkpoint of its first turn", func() bool {
		c, err := kept.Checkpoints.Load(t.Context(), l.id)
		return err == nil && strings.Contains(fmt.Sprint(c.History), "turquoise") && strings.Contains(fmt.Sprint(c.History), "Noted")
	})
}

// tried is the result of an attempt to resume.
type tried struct {
	in      bool                 // the session continued
	answer  string               // to the question; empty if the connection ended before
	code    websocket.StatusCode // of the connection; 0 if it was not closed
	failure protocol.Error       // the error message before the close
}

// comeBack resumes the session through a gateway and asks a question. It returns at the answer or the end of the
// connection; gone then follows the connection to its end.
func (l left) comeBack(t *testing.T, addr string) (got tried, gone func() tried, leave func()) {
	c, err := protocol.Dial(t.Context(), "ws://"+addr+"/v1/voice", protocol.DialOptions{Back: true, Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Error(err)
		return got, func() tried { return got }, func() {}
	}
	send := func(m protocol.ClientMessage) {
		text, err := protocol.EncodeClient(m)
		if err != nil {
			t.Error(err)
		}
		_ = c.WriteText(text) // the reader reports the error
	}
	send(&protocol.Start{InputRate: callerRate, OutputRate: answerRate, Resume: &protocol.Resume{SessionID: l.id, Token: l.token, LastSeq: l.seq}})
	words := map[string]string{}
	asked := 0 // the turn of the question
	read := func(until func() bool) tried {
		for !until() {
			f, err := c.Read()
			if err != nil {
				got.code = protocol.CloseStatus(err)
				return got
			}
			m, err := protocol.ParseServer(f.Data)
			if f.Audio || err != nil {
				continue
			}
			switch m := m.(type) {
			case *protocol.SessionStarted:
				got.in = m.Resumed && m.SessionID == l.id
				send(&protocol.InputText{Text: "what is my colour"})
			case *protocol.TurnStarted:
				if m.Turn > l.turn { // the new gateway may send the turn before again
					asked = m.Turn
				}
			case *protocol.Transcript:
				if m.Role != "user" && m.Turn == asked {
					words[m.ID] = m.Text
				}
			case *protocol.TurnEnded:
				if m.Turn == asked && m.Status == "completed" {
					for _, w := range words {
						got.answer += w
					}
				}
			case *protocol.Error:
				got.failure = *m
			}
		}
		return got
	}
	got = read(func() bool { return got.answer != "" })
	return got, func() tried { return read(func() bool { return false }) }, func() { send(&protocol.End{}) }
}

// TestNodesTwoTakers: a gateway is killed, and the client of each of its sessions resumes through both other gateways at
// the same moment, with the same token. One of them continues the session and remembers the conversation; the other
// reports one error. No session runs twice.
func TestNodesTwoTakers(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{})
	kept := s.open()
	var all []left
	for i := range takersSessions {
		all = append(all, s.begin(0, talkerWires[i%len(talkerWires)]))
	}
	for _, l := range all {
		l.noted(t, kept)
	}
	s.gateways[0].kill()
	var meeting sync.WaitGroup
	for _, l := range all {
		meeting.Go(func() { l.twoCome(t, s) })
	}
	meeting.Wait()
	for _, l := range all {
		testutil.WaitUntil(t, l.id+" is over", func() bool {
			r, err := kept.Directory.Find(t.Context(), l.id)
			if err == nil && r.Epoch != 2 {
				t.Errorf("%s has epoch %d, so it was taken over %d times", l.id, r.Epoch, r.Epoch-1)
				return true
			}
			return err == nil && r.State == store.SessionOver
		})
	}
	s.close()
}

// twoCome resumes through two gateways at once, and hangs up.
func (l left) twoCome(t *testing.T, s *site) {
	type end struct {
		tried
		gone  func() tried
		leave func()
	}
	ends := make(chan end, 2) // from both; never closed
	begin := make(chan struct{})
	for _, i := range []int{1, 2} {
		go func() {
			<-begin
			got, gone, leave := l.comeBack(t, s.gateways[i].addr)
			ends <- end{got, gone, leave}
		}()
	}
	close(begin)
	a, b := testutil.WaitNext(t, "one", ends), testutil.WaitNext(t, "the other", ends)
	if a.answer == "" {
		a, b = b, a
	}
	if b.answer != "" { // both were connected, one after the other: the earlier one is displaced
		ga, gb := make(chan tried, 1), make(chan tried, 1)
		go func() { ga <- a.gone() }()
		go func() { gb <- b.gone() }()
		select {
		case b.tried = <-gb:
		case a.tried = <-ga:
			a, b = b, a
			ga, gb = gb, ga
		}
		a.leave()
		testutil.WaitNext(t, "the end", ga)
	} else {
		a.leave()
		a.gone()
	}
	if !strings.Contains(a.answer, "turquoise") {
		t.Errorf("%s: one got %+v, the other %+v", l.id, a.tried, b.tried)
	}
	switch b.code {
	case protocol.CloseResumedElsewhere, protocol.CloseMoving, protocol.CloseTicket, protocol.CloseTryLater:
	default:
		t.Errorf("%s: the other one ended with %+v", l.id, b.tried)
	}
}

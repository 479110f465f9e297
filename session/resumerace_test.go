package session

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/protocol"
)

// contender is one of several clients that resume a session at once.
type contender struct {
	conn  *testClient
	first string // the type of its first message
	token string // from its session.started; empty if it was refused
}

// rush lets clients connect at once, each with a session.start, and returns them when all goroutines are idle.
func (r *returning) rush(starts ...string) []contender {
	var all sync.WaitGroup
	contenders := make([]contender, len(starts))
	now := make(chan struct{})
	for i, text := range starts {
		all.Go(func() {
			<-now
			for range i * 7 % 5 {
				runtime.Gosched()
			}
			contenders[i].conn = r.dial(text, r.origin)
		})
	}
	close(now)
	all.Wait()
	synctest.Wait()
	for i := range contenders {
		c := &contenders[i]
		c.conn.mu.Lock()
		if len(c.conn.texts) > 0 {
			c.first = fmt.Sprint(c.conn.texts[0]["type"])
			c.token, _ = c.conn.texts[0]["resume_token"].(string)
		}
		c.conn.mu.Unlock()
	}
	return contenders
}

// with returns the session.start with another token.
func (r *returning) with(token string) string {
	return strings.Replace(r.start(""), r.token, token, 1)
}

// refuses fails unless a client with that token is refused.
func (r *returning) refuses(what, token string) {
	r.t.Helper()
	c := r.dial(r.with(token), r.origin)
	synctest.Wait()
	if code := c.closedWith(); code != protocol.CloseTicket {
		r.t.Errorf("%s was admitted, or refused with %d", what, code)
	}
}

// closedWith returns the code with which the gateway closed the connection; zero while it is open.
func (c *testClient) closedWith() websocket.StatusCode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// TestManyClientsWithOneToken (S6): of all clients with the same token, one gets the session, and the others are
// informed. Only this one is heard, and once it has sent something, only its new token is valid.
func TestManyClientsWithOneToken(t *testing.T) {
	for round := range 30 {
		synctest.Test(t, func(t *testing.T) {
			r, _ := comingBack(t, nil)
			s := r.st.only()
			r.read(-1)
			if round%2 == 0 { // in the other rounds the session has a client
				r.lose()
			}
			used := r.token
			starts := make([]string, 2+round%7)
			for i := range starts {
				starts[i] = r.start("")
			}
			contenders := r.rush(starts...)
			var winner *contender
			for i := range contenders {
				c := &contenders[i]
				switch code := c.conn.closedWith(); {
				case c.first != "session.started" && (c.first != "" || code != protocol.CloseResumedElsewhere):
					t.Errorf("a client got %q first, and was closed with %d", c.first, code)
				case code == 0 && winner != nil:
					t.Fatal("two clients have the session")
				case code == 0:
					winner = c
				case code != protocol.CloseResumedElsewhere:
					t.Errorf("a client was closed with %d", code)
				}
			}
			if winner == nil {
				t.Fatal("no client has the session")
			}
			if int(s.client.count) != 1+len(contenders) {
				t.Errorf("there were %d attachments, of %d clients that resumed", s.client.count, len(contenders))
			}
			for i, c := range contenders {
				c.conn.say(fmt.Sprintf(`{"type":"input.text","text":"client %d"}`, i))
			}
			synctest.Wait()
			if n := winner.conn.count("turn.started"); n != 1 {
				t.Errorf("%d turns began, though one client has the session", n)
			}
			r.refuses("the token that was used", used)
			for _, c := range contenders {
				if c.token != winner.token && c.token != "" { // it may have been displaced before it got one
					pass(triesWindow)
					r.refuses("the token of a client that was displaced", c.token)
				}
			}
			c := r.rush(r.with(winner.token))[0]
			if c.first != "session.started" {
				t.Errorf("the newest token opened nothing: %v", c.conn.log())
			}
		})
	}
}

// TestOldAndNewTokenAtOnce (S6): a replaced token whose successor was used opens nothing, in any order of arrival.
func TestOldAndNewTokenAtOnce(t *testing.T) {
	for round := range 30 {
		synctest.Test(t, func(t *testing.T) {
			r, _ := comingBack(t, nil)
			r.read(-1)
			old := r.token
			r.lose()
			r.comeBack("")
			r.read(-1)
			r.conn.say(`{"type":"ping","t":1}`)
			synctest.Wait()
			r.lose()
			starts := []string{r.with(old), r.start(""), r.with(old), r.with(r.token + "x")}
			rand.New(rand.NewPCG(uint64(round), 6)).Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
			for i, c := range r.rush(starts...) {
				mine := starts[i] == r.start("")
				if in := c.first == "session.started"; in != mine {
					t.Errorf("the client with the newest token: %v; admitted: %v", mine, in)
				}
				if code := c.conn.closedWith(); !mine && code != protocol.CloseTicket {
					t.Errorf("an old token was refused with %d", code)
				}
			}
		})
	}
}

// TestStrangersAtOnce (S6): strangers with the token, but another name or origin, connect at the same time as its
// owner. Only the owner is admitted, and it keeps its connection.
func TestStrangersAtOnce(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			r, _ := comingBack(t, nil)
			r.read(-1)
			mallory := strings.Replace(r.start(""), `"resume"`, `"client":{"id":"mallory"},"resume"`, 1)
			contenders := r.rush(mallory, r.start(""), mallory)
			for i, c := range contenders {
				if owner := i == 1; (c.first == "session.started") != owner || (c.conn.closedWith() == 0) != owner {
					t.Errorf("client %d of 0 to 2 got %v, closed with %d", i, c.conn.log(), c.conn.closedWith())
				}
			}
		})
	}
}

// TestResumeDuringEnd (S6, S8): clients that resume while the session ends are admitted and then get the end, or are
// refused; none waits, and nothing of the session remains.
func TestResumeDuringEnd(t *testing.T) {
	for name, end := range map[string]func(r *returning, s *session){
		"the user":     func(r *returning, _ *session) { r.conn.say(`{"type":"session.end"}`) },
		"an operator":  func(r *returning, s *session) { r.st.m.End(s.id) },
		"the time":     func(r *returning, _ *session) { r.lose(); pass(30 * time.Second) },
		"a lost model": func(_ *returning, s *session) { s.end(causeLost) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 15 {
				synctest.Test(t, func(t *testing.T) {
					r, _ := comingBack(t, nil)
					s := r.st.only()
					r.read(-1)
					var ending sync.WaitGroup
					ending.Go(func() { end(r, s) })
					if name == "the time" {
						pass(30 * time.Second)
					}
					contenders := r.rush(r.start(""), r.start(""), r.start(""))
					ending.Wait()
					pass(10 * time.Second)
					for _, c := range contenders {
						code := c.conn.closedWith()
						switch {
						case s.isOver() && code == 0:
							t.Errorf("a client waits for an ended session: %v", c.conn.log())
						case c.first == "" && code != protocol.CloseResumedElsewhere || c.first == "session.started" && code == protocol.CloseTicket:
							t.Errorf("a client got %v, and was closed with %d", c.conn.log(), code)
						}
					}
					if !s.isOver() && (name == "an operator" || name == "a lost model") {
						t.Error("the session continues") // the first client has overtaken the others
					}
					if s.isOver() && r.st.m.Running() != 0 {
						t.Errorf("%d sessions remain", r.st.m.Running())
					}
				})
			}
		})
	}
}

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/chat"
	"voicegw/protocol"
)

// busy is an agent with turns that last until release is closed.
func busy(release <-chan struct{}) *fakeAgent {
	return &fakeAgent{do: func(ctx context.Context, _ chat.Request, emit chat.Emit) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		emit(&protocol.Done{ConversationID: "c", Status: protocol.DoneCompleted})
		return nil
	}}
}

// TestShareOfTurns: a user and an address may only use a share of the concurrent turns and get an error beyond it, while
// others are answered.
func TestShareOfTurns(t *testing.T) {
	for _, path := range []string{"/v1/chat", "/v1/chat/completions"} {
		for name, tc := range map[string]struct {
			share  int
			greedy func(i int) (addr, user string)
			word   string
		}{
			"a user from many addresses": {3, func(i int) (string, string) { return fmt.Sprintf("192.0.2.%d", i+1), "mallory" }, "this user"},
			"an address with many users": {4, func(i int) (string, string) { return "192.0.2.7", fmt.Sprintf("user-%d", i) }, "your address"},
			"an IPv6 network":            {4, func(i int) (string, string) { return fmt.Sprintf("[2001:db8::%x]", i+1), fmt.Sprintf("user-%d", i) }, "your address"},
			"users without a name":       {4, func(int) (string, string) { return "192.0.2.7", "" }, "your address"},
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					s, _ := chatServer(t, busy(release), func(o *Options) {
						o.Turns = TurnLimits{AtOnce: 6, PerAddress: 4, PerUser: 3}
					})
					var all sync.WaitGroup
					ask := func(addr, user string) *httptest.ResponseRecorder {
						var w *httptest.ResponseRecorder
						body := fmt.Sprintf(`{"message":"hi","user":%q}`, user)
						if strings.HasSuffix(path, "completions") {
							body = fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"user":%q}`, user)
						}
						done := make(chan struct{})
						all.Go(func() {
							defer close(done)
							w = send(s, path, body, from(addr+":40000"))
						})
						synctest.Wait()
						select {
						case <-done:
							return w
						default:
							return nil // it is being answered
						}
					}
					for i := range 12 {
						w := ask(tc.greedy(i))
						if i < tc.share {
							if w != nil {
								t.Fatalf("%d of its share: %d %s", i, w.Code, w.Body)
							}
							continue
						}
						if w == nil || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
							t.Fatalf("%d beyond its share: %+v", i, w)
						}
						text := strings.ToLower(w.Body.String())
						if !strings.Contains(text, tc.word) || !strings.Contains(text, `"limit"`) {
							t.Errorf("it gets %s", text)
						}
						if (path != "/v1/chat") != strings.Contains(text, `"type":"rate_limit_error"`) {
							t.Errorf("the shape of %s is %s", path, text)
						}
					}
					if w := ask("198.51.100.1", "ada"); w != nil {
						t.Errorf("another one is refused: %d %s", w.Code, w.Body)
					}
					close(release)
					all.Wait()
					if w := ask(tc.greedy(0)); w == nil || w.Code != http.StatusOK {
						t.Errorf("afterwards: %+v", w)
					}
				})
			})
		}
	}
}

// TestTurnRate: the messages per second of an address and of a user are limited, with the time until the next; a refused
// message does not count.
func TestTurnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := chatServer(t, &fakeAgent{}, func(o *Options) { o.Turns = TurnLimits{NewPerSecond: 4} })
		ask := func(addr, user string) int {
			return send(s, "/v1/chat", fmt.Sprintf(`{"message":"hi","user":%q}`, user), from(addr+":1")).Code
		}
		for i := range 4 {
			if code := ask("192.0.2.7", "ada"); code != http.StatusOK {
				t.Fatalf("message %d: %d", i, code)
			}
		}
		if code := ask("192.0.2.7", "bob"); code != http.StatusTooManyRequests {
			t.Errorf("the address begins too fast: %d", code)
		}
		if code := ask("192.0.2.8", "ada"); code != http.StatusTooManyRequests {
			t.Errorf("the user begins too fast: %d", code)
		}
		if code := ask("192.0.2.8", "bob"); code != http.StatusOK {
			t.Errorf("another user: %d", code)
		}
		<-time.After(time.Second)
		if code := ask("192.0.2.7", "ada"); code != http.StatusOK {
			t.Errorf("a second later: %d", code)
		}
	})
}

// TestManyBehindOneAddress: a backend with the operators' key sends messages for many users, and so does this machine,
// where the operator allows it; each user still has a share.
func TestManyBehindOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := chatServer(t, &fakeAgent{}, func(o *Options) {
			o.Auth = operators("0123456789abcdef")
			o.Turns = TurnLimits{NewPerSecond: 2, ExemptLoopback: true}
		})
		for name, tc := range map[string]struct {
			change func(*http.Request)
			want   int
		}{
			"a backend": {func(r *http.Request) {
				r.RemoteAddr = "192.0.2.1:1"
				r.Header.Set("Authorization", "Bearer 0123456789abcdef")
			}, 10},
			"a wrong key": {func(r *http.Request) {
				r.RemoteAddr = "192.0.2.2:1"
				r.Header.Set("Authorization", "Bearer 0123456789abcdeg")
			}, 2},
			"this machine":    {from("127.0.0.1:1"), 10},
			"another machine": {from("192.0.2.3:1"), 2},
		} {
			answered := 0
			for i := range 10 {
				if send(s, "/v1/chat", fmt.Sprintf(`{"message":"hi","user":"%s %d"}`, name, i), tc.change).Code == http.StatusOK {
					answered++
				}
			}
			if answered != tc.want {
				t.Errorf("%s: %d of 10 were answered, want %d", name, answered, tc.want)
			}
			if name != "a backend" {
				continue
			}
			for range 10 {
				if send(s, "/v1/chat", `{"message":"hi","user":"mallory"}`, tc.change).Code == http.StatusOK {
					answered++
				}
			}
			if answered != tc.want+2 {
				t.Errorf("%s: its one user was answered %d times", name, answered-tc.want)
			}
		}
	})
}

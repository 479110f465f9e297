package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/chat"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// serving runs a server over a network in memory and returns its dialer. It is used inside a bubble.
func serving(t *testing.T, a *fakeAgent, listen func(net.Listener) net.Listener) (dial func() net.Conn) {
	t.Helper()
	s, _ := chatServer(t, a, nil)
	ln := testutil.ListenPipe()
	srv := &http.Server{Handler: s, ConnContext: ConnContext, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(listen(ln))
	}()
	t.Cleanup(func() {
		srv.Close()
		<-served
		synctest.Wait()
	})
	return func() net.Conn {
		c, err := ln.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// plain returns a listener unchanged: each write waits for its reader, and Close loses no data.
func plain(ln net.Listener) net.Listener { return ln }

// post is the head of a request with a JSON body of n bytes.
func post(path string, n int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, n)
}

// TestSlowBody: a slow body is ended, with an error text at endpoints that read it, and also at those that do not.
func TestSlowBody(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat": "408", "/v1/chat/completions": "408", "/v1/sessions": "404", "/v1/confirmations": "403", "/v1/nothing": "404", "/": "404",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serving(t, &fakeAgent{}, plain)()
				defer c.Close()
				begun := time.Now()
				var answer strings.Builder
				ended := make(chan time.Duration, 1)
				go func() {
					io.Copy(&answer, c)
					ended <- time.Since(begun)
				}()
				for _, part := range []string{post(path, 1000), `{"message":"`} {
					io.WriteString(c, part)
				}
				for range 1000 {
					<-time.After(5 * time.Second)
					if _, err := io.WriteString(c, "x"); err != nil {
						break // the gateway has closed it
					}
				}
				if took := <-ended; took > bodyTime+10*time.Second {
					t.Errorf("it was ended after %s", took)
				}
				if !strings.HasPrefix(answer.String(), "HTTP/1.1 "+want) {
					t.Errorf("the answer is %q", answer.String())
				}
			})
		})
	}
}

// TestBodyTimeLimit: net/http removes the body's time limit at its end: the turn may last longer, and the connection can
// be used again.
func TestBodyTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serving(t, &fakeAgent{do: func(ctx context.Context, _ chat.Request, emit chat.Emit) error {
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
				t.Error("the turn was cut off")
			}
			emit(&protocol.Done{ConversationID: "c", Status: protocol.DoneCompleted})
			return nil
		}}, plain)()
		defer c.Close()
		answers := bufio.NewReader(c)
		for range 2 {
			const body = `{"message":"hi"}`
			io.WriteString(c, post("/v1/chat", len(body))+body)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "event: done") {
				t.Errorf("%d %s, %v", resp.StatusCode, text, err)
			}
		}
	})
}

// TestSlowReader: a client that does not read is disconnected, and its turn ends; one that reads slowly gets
// the complete answer.
func TestSlowReader(t *testing.T) {
	for name, pause := range map[string]time.Duration{"nothing": 0, "slowly": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan error, 1)
				const pieces = 100
				c := serving(t, &fakeAgent{do: func(ctx context.Context, _ chat.Request, emit chat.Emit) error {
					for range pieces {
						emit(&protocol.TextDelta{ItemID: "t", Text: strings.Repeat("x", 16<<10)})
					}
					over <- ctx.Err()
					return nil
				}}, func(ln net.Listener) net.Listener { return Listen(ln, nil) })()
				defer c.Close()
				const body = `{"message":"hi"}`
				io.WriteString(c, post("/v1/chat", len(body))+body)
				if pause == 0 {
					begun := time.Now()
					if err := <-over; !errors.Is(err, context.Canceled) {
						t.Errorf("the turn ended with %v", err)
					}
					if took := time.Since(begun); took > 2*writeTime {
						t.Errorf("it lasted %s", took)
					}
					return
				}
				got, buf := 0, make([]byte, 64<<10)
				for got < pieces*(16<<10) {
					<-time.After(pause)
					n, err := io.ReadAtLeast(c, buf, 1)
					if err != nil {
						t.Fatalf("after %d bytes: %v", got, err)
					}
					got += n
				}
				if err := <-over; err != nil {
					t.Errorf("the turn ended with %v", err)
				}
			})
		})
	}
}

// TestNesting: JSON that is too deep is refused; brackets in strings do not count.
func TestNesting(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for body, want := range map[string]int{
		`{"messages":[{"role":"user","content":"hi"}],"x":` + deep + `}`:                                                                           400,
		`{"messages":[{"role":"user","content":"` + strings.Repeat("[{", 40) + `\"]\\"}]}`:                                                         200,
		`{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"x":[[[1]]]}}}}`: 200,
	} {
		s, _ := chatServer(t, &fakeAgent{}, nil)
		w := send(s, "/v1/chat/completions", body, nil)
		if w.Code != want || want == 400 && !strings.Contains(w.Body.String(), "nested deeper than 32") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

package protocol

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a connection over a real socket.
func pair(t *testing.T) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, AcceptOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}))
	t.Cleanup(srv.Close)
	client, err := Dial(context.Background(), srv.URL, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server = <-accepted
	t.Cleanup(server.Abort)
	t.Cleanup(client.Abort)
	return client, server
}

// TestFramesTravel: text and audio of any size arrive with their kind.
func TestFramesTravel(t *testing.T) {
	client, server := pair(t)
	audio := []byte(strings.Repeat("ab", 12000))
	if err := server.WriteText([]byte(`{"type":"pong"}`)); err != nil {
		t.Fatal(err)
	}
	if err := server.WriteAudio(audio); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Frame{{Data: []byte(`{"type":"pong"}`)}, {Audio: true, Data: audio}} {
		got, err := client.Read()
		if err != nil || got.Audio != want.Audio || string(got.Data) != string(want.Data) {
			t.Fatalf("audio=%t with %d bytes, %v", got.Audio, len(got.Data), err)
		}
	}
}

// TestTooBigCloses1009: a frame over the limit ends the connection with code
// 1009.
func TestTooBigCloses1009(t *testing.T) {
	client, server := pair(t)
	if err := client.WriteAudio(make([]byte, MaxMessageBytes+2)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(); !TooBig(err) {
		t.Errorf("the gateway read %v", err)
	}
	if _, err := client.Read(); CloseStatus(err) != CloseTooBig {
		t.Errorf("the client read %v", err)
	}
}

// TestCloseCode: the code and reason arrive, and end a waiting read.
func TestCloseCode(t *testing.T) {
	client, server := pair(t)
	read := make(chan error, 1)
	go func() {
		_, err := server.Read()
		read <- err
	}()
	closed := make(chan error, 1)
	go func() { closed <- server.Close(CloseIdle, "idle") }()
	_, err := client.Read()
	if CloseStatus(err) != CloseIdle || !strings.Contains(err.Error(), "idle") {
		t.Errorf("the client read %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if <-read == nil {
		t.Error("the waiting read did not end")
	}
}

// TestSubprotocols: only our own is chosen; a client that offers only others gets an error, and one that also offers a
// token gets ours.
func TestSubprotocols(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Accept(w, r, AcceptOptions{}); err == nil {
			c.Abort()
		}
	}))
	defer srv.Close()
	for _, tc := range []struct {
		offered []string
		chosen  string
		status  int
	}{
		{nil, "", 101}, {[]string{Subprotocol}, Subprotocol, 101},
		{[]string{"x", Subprotocol, "bearer.abc"}, Subprotocol, 101}, {[]string{"graphql-ws"}, "", 400},
	} {
		ws, resp, err := websocket.Dial(context.Background(), srv.URL, &websocket.DialOptions{Subprotocols: tc.offered})
		if resp == nil || resp.StatusCode != tc.status {
			t.Fatalf("%v: %v, %v", tc.offered, resp, err)
		}
		if ws != nil {
			if ws.Subprotocol() != tc.chosen {
				t.Errorf("%v: chose %q", tc.offered, ws.Subprotocol())
			}
			ws.CloseNow()
		}
	}
}

// TestTicketAsSubprotocol: a ticket next to our subprotocol is found, never chosen, and never shown in an answer or
// error.
func TestTicketAsSubprotocol(t *testing.T) {
	const secret = "Zx3-secret_of-a-ticket"
	found := make(chan string, 1) // from the handler, for each request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, AcceptOptions{})
		if err != nil {
			found <- "error: " + err.Error()
			return
		}
		found <- c.Ticket()
		c.Abort()
	}))
	defer srv.Close()
	long := TicketSubprotocol(strings.Repeat("x", MaxTicketBytes+1))
	for name, tc := range map[string]struct {
		offered []string
		status  int
		want    string
	}{
		"none":      {[]string{Subprotocol}, 101, ""},
		"one":       {[]string{Subprotocol, TicketSubprotocol(secret)}, 101, secret},
		"first":     {[]string{TicketSubprotocol(secret), Subprotocol}, 101, secret},
		"twice":     {[]string{Subprotocol, TicketSubprotocol(secret), TicketSubprotocol(secret)}, 101, secret},
		"differing": {[]string{Subprotocol, TicketSubprotocol(secret), TicketSubprotocol("other")}, 400, "error: "},
		"too long":  {[]string{Subprotocol, long}, 400, "error: "},
		"alone":     {[]string{TicketSubprotocol(secret)}, 400, "error: "},
	} {
		ws, resp, err := websocket.Dial(context.Background(), srv.URL, &websocket.DialOptions{Subprotocols: tc.offered})
		if resp == nil || resp.StatusCode != tc.status {
			t.Fatalf("%s: %v, %v", name, resp, err)
		}
		var body []byte
		if resp.Body != nil {
			body, _ = io.ReadAll(resp.Body)
		}
		got := <-found
		if tc.status == 101 && got != tc.want || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: found %q", name, got)
		}
		if tc.status != 101 && strings.Contains(got+string(body), secret) || strings.Contains(fmt.Sprint(resp.Header), secret) {
			t.Errorf("%s: the ticket is shown: %s; %s; %v", name, got, body, resp.Header)
		}
		if ws != nil {
			if ws.Subprotocol() != Subprotocol {
				t.Errorf("%s: chose %q", name, ws.Subprotocol())
			}
			ws.CloseNow()
		}
	}
	c, err := Dial(context.Background(), srv.URL, DialOptions{Ticket: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	if got := <-found; got != secret {
		t.Errorf("our client offers %q", got)
	}
}

// TestPagesAreRefused: no page may connect, not even from the server's own origin, unless the caller allows it.
func TestPagesAreRefused(t *testing.T) {
	for anyOrigin, status := range map[bool]int{false: 403, true: 101} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, err := Accept(w, r, AcceptOptions{AnyOrigin: anyOrigin}); err == nil {
				c.Abort()
			}
		}))
		for _, origin := range []string{"https://evil.example", srv.URL} {
			ws, resp, err := websocket.Dial(context.Background(), srv.URL, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
			if resp == nil || resp.StatusCode != status {
				t.Errorf("any origin %t, %s: %v, %v", anyOrigin, origin, resp, err)
			}
			if ws != nil {
				ws.CloseNow()
			}
		}
		srv.Close()
	}
}

// TestDialReportsRefusal: an error says on one line why there is no connection: the text of a refused handshake, but not a
// web page or the words of the libraries.
func TestDialReportsRefusal(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html>")) // the client may be gone
	}
	full := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the gateway is full", http.StatusServiceUnavailable)
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc // nil: nothing listens
		want   string
	}{
		"refused":    {full, "connect: the server answered 503 Service Unavailable: the gateway is full\n"},
		"a web page": {page, "connect: the server answered 200 OK with a web page; is the path right?"},
		"no server":  {nil, "connect: dial tcp "},
	} {
		srv := httptest.NewServer(tc.answer)
		if tc.answer == nil {
			srv.Close()
		}
		_, err := Dial(context.Background(), srv.URL, DialOptions{})
		if srv.Close(); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// dial opens a connection of voicegw.v1. back says in the handshake that the client resumes a session.
func dial(t *testing.T, addr string, back bool) *protocol.Conn {
	t.Helper()
	c, err := protocol.Dial(t.Context(), "ws://"+addr+"/v1/voice", protocol.DialOptions{Back: back, Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	return c
}

// visit opens a connection of voicegw.v1 and sends session.start.
func visit(t *testing.T, addr string, back *protocol.Resume) *protocol.Conn {
	t.Helper()
	c := dial(t, addr, back != nil)
	say(t, c, &protocol.Start{InputRate: 24000, OutputRate: 24000, Resume: back})
	return c
}

func say(t *testing.T, c *protocol.Conn, m protocol.ClientMessage) {
	t.Helper()
	text, err := protocol.EncodeClient(m)
	if err == nil {
		err = c.WriteText(text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// next reads up to a message of that type and decodes it into m.
func next(t *testing.T, c *protocol.Conn, typ string, m any) (seq int64) {
	t.Helper()
	for {
		f, err := c.Read()
		if err != nil {
			t.Fatalf("waiting for %s: %v", typ, err)
		}
		var head struct {
			Type string
			Seq  int64
		}
		if f.Audio || json.Unmarshal(f.Data, &head) != nil || head.Type != typ {
			continue
		}
		if err := json.Unmarshal(f.Data, m); err != nil {
			t.Fatal(err)
		}
		return head.Seq
	}
}

// end ends a session as an operator and returns the HTTP status.
func (r *running) end(t *testing.T, session string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+r.addr+"/v1/sessions/"+session, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestResumeThroughAnotherGateway: two gateways share a store. A client loses its connection to the first and resumes
// through the second the session that the first still runs, without a new session or a request to the model.
func TestResumeThroughAnotherGateway(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	gateways := make([]*running, 2)
	for i := range gateways {
		addr, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		gateways[i] = start(t, "--set", "store.url="+nats.ClientURL(), "--set", "cluster.listen="+addr,
			"--set", "cluster.url=http://"+addr, "--set", "cluster.secret=a-secret-that-all-gateways-have-in-common", "--set", "log.level=debug")
	}
	first, second := gateways[0], gateways[1]

	c := visit(t, first.addr, nil)
	var began protocol.SessionStarted
	seq := next(t, c, "session.started", &began)
	if began.ResumeToken == "" {
		t.Fatal("the client got no token")
	}
	c.Abort()
	first.logged("client lost")

	var back protocol.SessionStarted
	var c2 *protocol.Conn
	testutil.WaitUntil(t, "the directory has the session", func() bool {
		c2 = visit(t, second.addr, &protocol.Resume{SessionID: began.SessionID, Token: began.ResumeToken, LastSeq: seq})
		f, err := c2.Read()
		return err == nil && json.Unmarshal(f.Data, &back) == nil && back.Resumed
	})
	if back.SessionID != began.SessionID || back.ResumeToken == began.ResumeToken {
		t.Errorf("the client resumed %+v", back)
	}
	say(t, c2, &protocol.InputText{Text: "Good morning"})
	var turn protocol.TurnEnded
	next(t, c2, "turn.ended", &turn)
	if turn.Turn != 1 || turn.Status != "completed" {
		t.Errorf("the turn ended with %+v", turn)
	}

	guesser := visit(t, second.addr, &protocol.Resume{SessionID: began.SessionID, Token: "guessed", LastSeq: 1})
	var refused protocol.Error
	next(t, guesser, "error", &refused)
	if _, err := guesser.Read(); refused.Code != "resume_refused" || protocol.CloseStatus(err) != 4501 {
		t.Errorf("another client got %+v, and was closed with %v", refused, err)
	}

	// An operator at the second gateway ends the session of the first.
	if status := second.end(t, "no-such-session"); status != http.StatusNotFound {
		t.Errorf("an unknown session: %d", status)
	}
	if status := second.end(t, began.SessionID); status != http.StatusNoContent {
		t.Errorf("DELETE at the other gateway: %d", status)
	}
	var ended protocol.SessionEnded
	next(t, c2, "session.ended", &ended)
	if _, err := c2.Read(); ended.Reason != "operator_ended" || protocol.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the client got %q and was closed with %v", ended.Reason, err)
	}
	second.logged("client relayed to its session")
	first.logged("session ended")
}

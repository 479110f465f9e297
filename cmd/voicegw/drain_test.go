package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// mover is a client with a session that moves.
type mover struct {
	t     *testing.T
	conn  *protocol.Conn
	id    string
	token string
	seq   int64
}

// moves starts a session.
func moves(t *testing.T, addr string) *mover {
	t.Helper()
	c := &mover{t: t, conn: visit(t, addr, nil)}
	c.begun(false)
	return c
}

// begun reads session.started.
func (c *mover) begun(resumed bool) {
	c.t.Helper()
	var m protocol.SessionStarted
	c.seq = next(c.t, c.conn, "session.started", &m)
	if c.id != "" && m.SessionID != c.id || m.Resumed != resumed {
		c.t.Fatalf("the session %s continues as %+v", c.id, m)
	}
	c.id, c.token = m.SessionID, m.ResumeToken
}

// asks types a text, waits for the end of the answer and returns the turn.
func (c *mover) asks(text string) int {
	c.t.Helper()
	say(c.t, c.conn, &protocol.InputText{Text: text})
	var turn protocol.TurnEnded
	c.seq = next(c.t, c.conn, "turn.ended", &turn)
	if turn.Status != "completed" {
		c.t.Errorf("the turn ended with %+v", turn)
	}
	return turn.Turn
}

// isMoved fails unless the client gets session.moving and close code 4007.
func (c *mover) isMoved() {
	c.t.Helper()
	var m protocol.SessionMoving
	c.seq = next(c.t, c.conn, "session.moving", &m)
	if code, last := closedWith(c.conn); m.Reason != "draining" || code != int(protocol.CloseMoving) {
		c.t.Errorf("got %+v, then was closed with %d after %s", m, code, last)
	}
}

// comesBack resumes its session at another gateway.
func (c *mover) comesBack(addr string) {
	c.t.Helper()
	c.conn = visit(c.t, addr, &protocol.Resume{SessionID: c.id, Token: c.token, LastSeq: c.seq})
	c.begun(true)
}

// TestSessionsOutliveTheirProcess: a single gateway stops and starts again. Its client is asked to resume, and continues
// at the next process with the same session id and the next turn.
func TestSessionsOutliveTheirProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, "--data-dir", dir, "--drain-timeout", "1m")
	c := moves(t, r.addr)
	if turn := c.asks("Good morning"); turn != 1 {
		t.Errorf("the first turn is %d", turn)
	}
	r.signals <- syscall.SIGTERM
	c.isMoved()
	if code := r.ended(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, r.err.String())
	}
	again := start(t, "--data-dir", dir)
	c.comesBack(again.addr)
	if turn := c.asks("Good evening"); turn != 2 {
		t.Errorf("the next turn is %d", turn)
	}
	again.logged("a session was taken over")
}

// pair is two gateways with one store.
func pair(t *testing.T, args ...string) (first, second *running) {
	t.Helper()
	nats := startNATS(t, &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	var both [2]*running
	for i := range both {
		addr, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		both[i] = start(t, append([]string{"--set", "store.url=" + nats.ClientURL(), "--set", "cluster.listen=" + addr,
			"--set", "cluster.url=http://" + addr, "--set", "cluster.secret=a-secret-that-all-gateways-have-in-common"}, args...)...)
	}
	return both[0], both[1]
}

// TestSignalMovesSessions: after a signal a gateway takes no new session, announces the move to each client, also to one
// connected through the other gateway, and exits. Each session continues at the other gateway, except one without a
// client, which ends.
func TestSignalMovesSessions(t *testing.T) {
	t.Parallel()
	first, second := pair(t, "--drain-timeout", "12s")
	callers := []*mover{moves(t, first.addr), moves(t, first.addr)}
	callers[0].asks("Good morning")
	carried := moves(t, first.addr)
	carried.conn.Abort()
	first.logged("client lost")
	testutil.WaitUntil(t, "the client is carried", func() bool {
		// The directory lists the session a moment after its start.
		c := visit(t, second.addr, &protocol.Resume{SessionID: carried.id, Token: carried.token, LastSeq: carried.seq})
		carried.conn = c
		f, err := c.Read()
		if err != nil || !strings.Contains(string(f.Data), `"resumed":true`) {
			return false
		}
		var m protocol.SessionStarted
		if err := json.Unmarshal(f.Data, &m); err != nil {
			t.Fatal(err)
		}
		carried.token, carried.seq = m.ResumeToken, m.Seq
		return true
	})
	hungUp := moves(t, first.addr)

	first.signals <- syscall.SIGTERM
	first.logged("draining")
	say(t, hungUp.conn, &protocol.End{})
	testutil.WaitUntil(t, "the gateway is not ready", func() bool { return first.readiness() == "draining" })
	late := dial(t, first.addr, true) // without back, the handshake may get a 503
	say(t, late, &protocol.Start{InputRate: 24000, OutputRate: 24000})
	if code, last := closedWith(late); code != int(protocol.CloseServerLeaving) {
		t.Errorf("a new session: closed with %d after %s", code, last)
	}
	for _, c := range append(callers, carried) {
		c.isMoved()
		c.comesBack(second.addr)
		c.asks("Are you still there")
	}
	if code := first.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, first.err.String())
	}
}

// TestSecondSignalEndsADrain: a second signal ends the gateway although sessions wait to be moved.
func TestSecondSignalEndsADrain(t *testing.T) {
	t.Parallel()
	r := start(t, "--drain-timeout", "24h")
	first, second := moves(t, r.addr), moves(t, r.addr)
	r.signals <- syscall.SIGTERM
	first.isMoved() // the other one would wait six hours
	r.signals <- syscall.SIGTERM
	if code, last := closedWith(second.conn); code != int(protocol.CloseServerLeaving) {
		t.Errorf("closed with %d after %s", code, last)
	}
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
}

// TestDrainCommand: the command drains a gateway, shows the progress and returns when no session is left. The gateway
// still serves, takes no session, and exits at its signal.
func TestDrainCommand(t *testing.T) {
	t.Parallel()
	r := start(t, "--drain-timeout", "24h")
	c := moves(t, r.addr)
	var out, shown bytes.Buffer
	drain := func(args ...string) int {
		out.Reset()
		shown.Reset()
		return Run(t.Context(), Process{
			Args: append([]string{"drain", "--url", "http://" + r.addr, "--data-dir", r.dataDir}, args...),
			Host: server.Host{Stdout: &out, Stderr: &shown},
		})
	}
	for _, bad := range []string{"10ms", "25h", "-1s", "soon"} {
		if code := drain("--timeout=" + bad); code != exitUsage {
			t.Errorf("--timeout=%s: exit code %d, %s", bad, code, shown.String())
		}
	}
	if code := drain("--api-key", "0123456789abcdef-hurz"); code != exitFailure || !strings.Contains(shown.String(), "401") {
		t.Errorf("with a wrong key: exit code %d, %s", code, shown.String())
	}
	if got := r.readiness(); got == "draining" {
		t.Fatal("it drains already")
	}
	if code := drain("--timeout", "1m"); code != exitOK || out.String() != "drained: 1 session moved, 0 sessions left\n" {
		t.Errorf("exit code %d: %q\n%s", code, out.String(), shown.String())
	}
	c.isMoved()
	if alive, ready := r.status("/healthz"), r.readiness(); alive != http.StatusOK || ready != "draining" {
		t.Errorf("afterwards: /healthz %d, /readyz %s", alive, ready)
	}
	if code := drain(); code != exitOK {
		t.Errorf("a second time: exit code %d: %s", code, shown.String())
	}
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
}

// TestDrainProgressText: the text names the kinds of sessions that are left, and no others.
func TestDrainProgressText(t *testing.T) {
	for want, p := range map[string]protocol.DrainProgress{
		"not draining": {},
		"draining: 12 sessions moved, 3 sessions (1 without a client), 2 clients of other gateways, 1 text message left": {
			Draining: true, Moved: 12, Sessions: 3, Away: 1, Carried: 2, Messages: 1},
		"drained: 1 session moved, 0 sessions left": {Draining: true, Done: true, Moved: 1},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	var b bytes.Buffer
	show, remove := drainShow(&b)
	for _, n := range []int{2, 2, 1} {
		show(protocol.DrainProgress{Draining: true, Sessions: n, Until: time.Now()})
	}
	remove()
	if want := "draining: 0 sessions moved, 2 sessions left\ndraining: 0 sessions moved, 1 session left\n"; b.String() != want {
		t.Errorf("without a terminal: %q, want %q", b.String(), want)
	}
}

package transport_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

func testCloseRecv(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	peer.Begin()
	peer.Say("Hello", tone(1, 480))
	until(t, conn, func(ev transport.Event) bool { _, ok := ev.(*transport.AudioOut); return ok })
	ended := make(chan error, 1) // one value, from the goroutine that receives
	go func() {
		for {
			if _, err := conn.Recv(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	checkClosed(t, "the pending Recv", await(t, ended))
	_, err := conn.Recv(context.Background())
	checkClosed(t, "a Recv after Close", err)
	checkClosed(t, "a Send after Close", conn.Send(context.Background(), transport.UserText{Text: "anybody?"}))
}

// testCloseSend sends until Send blocks, because the peer does not read, and then closes the connection.
func testCloseSend(t *testing.T, h Harness) {
	conn, _ := h.connect(t)
	var sends atomic.Int64
	ended := make(chan error, 1) // one value, from the goroutine that sends
	go func() {
		in := &transport.AudioIn{PCM: tone(1, 1<<15)}
		for {
			if err := conn.Send(context.Background(), in); err != nil {
				ended <- err
				return
			}
			sends.Add(1)
		}
	}()
	awaitStandstill(t, &sends)
	if err := conn.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	checkClosed(t, "the pending Send", await(t, ended))
}

// awaitStandstill waits until n is constant for 100 ms.
func awaitStandstill(t *testing.T, n *atomic.Int64) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	limit := time.NewTimer(suitePatience)
	defer limit.Stop()
	last, same := int64(-1), 0
	for same < 5 {
		select {
		case <-ticker.C:
		case <-limit.C:
			t.Fatal("Send never blocked: does the peer read although it should not?")
		}
		if now := n.Load(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
}

func await(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(suitePatience):
		t.Fatal("Send is still blocked")
		return nil
	}
}

func checkClosed(t *testing.T, what string, err error) {
	t.Helper()
	if transport.KindOf(err) != transport.KindClosed {
		t.Errorf("%s: %v, want the kind closed", what, err)
	}
}

// testConnectDeadline connects to a provider that sends nothing after the handshake, or nothing after its first message.
// Package ws tests silent handshakes.
func testConnectDeadline(t *testing.T, h Harness) {
	connectToSilence(t, h, "")
	if h.First != "" {
		connectToSilence(t, h, h.First)
	}
}

func connectToSilence(t *testing.T, h Harness, first string) {
	p := h.Start(t)
	p.Mute(first)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1) // one value, from the goroutine that calls Connect
	go func() {
		conn, err := p.Transport(h.client).Connect(ctx, suiteSetup())
		if err == nil {
			_ = conn.Close()
		}
		ended <- err
	}()
	err := await(t, ended)
	if !transport.KindOf(err).Retryable() || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect: %v, want a retryable *Error that wraps the deadline", err)
	}
	testutil.WaitUntil(t, "the connection is closed", func() bool { return h.open.Load() == 0 })
}

// testConnectContext ends Connect's context and then continues the conversation.
func testConnectContext(t *testing.T, h Harness) {
	p := h.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := p.Transport(h.client).Connect(ctx, suiteSetup())
	cancel()
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	defer func() { _ = conn.Close() }()
	listener, peer := transport.Listen(conn), p.Accept()
	peer.Begin()
	peer.Say("Hello", tone(1, 480))
	peer.Finish()
	checkResponses(t, untilDone(t, listener, 1), transport.ResponseCompleted)
}

func testCloseKinds(t *testing.T, h Harness) {
	for code, want := range h.CloseKinds {
		conn, peer := h.connect(t)
		peer.Close(code, "a reason with "+h.Secret)
		ctx, cancel := soon()
		_, err := conn.Recv(ctx)
		checkEnd(t, h, "close code", code, err, want)
		_, again := conn.Recv(ctx)
		if transport.KindOf(again) != want {
			t.Errorf("close code %d: the error was %v, then %v, want the same kind", code, err, again)
		}
		cancel()
		_ = conn.Close()
	}
}

func testStatusKinds(t *testing.T, h Harness) {
	p := h.Start(t)
	for status, want := range h.StatusKinds {
		p.Refuse(status)
		ctx, cancel := soon()
		conn, err := p.Transport(h.client).Connect(ctx, suiteSetup())
		if err == nil {
			_ = conn.Close()
		}
		checkEnd(t, h, "status", status, err, want)
		cancel()
	}
}

func checkEnd(t *testing.T, h Harness, what string, code int, err error, want transport.Kind) {
	t.Helper()
	if got := transport.KindOf(err); got != want {
		t.Errorf("%s %d: kind %s, want %s (%v)", what, code, got, want, err)
	}
	if err != nil && h.Secret != "" && strings.Contains(err.Error(), h.Secret) {
		t.Errorf("%s %d: the error shows the credential", what, code)
	}
}

package session

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

func openFake(t *testing.T, f *fakeModel) (transport.Conn, *fakeConn) {
	t.Helper()
	conn, err := f.Connect(context.Background(), transport.Setup{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return conn, f.Accept(t)
}

func TestFakeDeliversInOrderAndTakesAudioBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := openFake(t, newFakeModel(transport.Capabilities{}))
		pcm := []byte{1, 2}
		peer.Emit(transport.ResponseStarted{ID: "r"})
		peer.EmitAudio("i", pcm)
		pcm[0] = 9 // the fake has its own copy
		peer.Emit(transport.AudioDone{Item: "i"})
		var got []transport.Event
		var heard, kept []byte
		conn.Notify(func() {
			for {
				ev, err := conn.Recv()
				if ev == nil || err != nil {
					return
				}
				got = append(got, ev)
				if out, ok := ev.(*transport.AudioOut); ok {
					heard, kept = bytes.Clone(out.PCM), out.PCM
				}
			}
		})
		synctest.Wait()
		if len(got) != 3 || got[0] != (transport.ResponseStarted{ID: "r"}) || got[2] != (transport.AudioDone{Item: "i"}) || !cmp.Equal(heard, []byte{1, 2}) {
			t.Errorf("heard %#v with the audio %v", got, heard)
		}
		if cmp.Equal(kept, []byte{1, 2}) {
			t.Error("audio kept after the next Recv is still intact, so retention would remain undetected")
		}
		_ = conn.Close()
	})
}

func TestFakeRecordsCommandsAsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := openFake(t, newFakeModel(transport.Capabilities{}))
		in := &transport.AudioIn{PCM: []byte{1, 2}}
		for _, cmd := range []transport.Command{in, transport.UserText{Text: "a"}, in, transport.Interrupt{}} {
			if err := conn.Send(context.Background(), cmd); err != nil {
				t.Fatal(err)
			}
		}
		in.PCM[0] = 9
		if got := peer.NextControl(t); got != (transport.UserText{Text: "a"}) {
			t.Errorf("first control command %#v", got)
		}
		if got, ok := peer.Next(t).(*transport.AudioIn); !ok || got.PCM[0] != 1 {
			t.Errorf("third command %#v", got)
		}
		if got := peer.Audio(); !cmp.Equal(got, []byte{1, 2, 1, 2}) {
			t.Errorf("audio %v", got)
		}
		if n := len(peer.Commands()); n != 4 {
			t.Errorf("%d commands", n)
		}
	})
}

func TestFakeStallsUntilReleaseCloseOrContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := openFake(t, newFakeModel(transport.Capabilities{}))
		release := peer.StallSend()
		done := make(chan error, 1)
		go func() { done <- conn.Send(context.Background(), transport.Interrupt{}) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("a stalled Send returned: %v", err)
		default:
		}
		release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		peer.StallSend()
		go func() { done <- conn.Send(context.Background(), transport.Interrupt{}) }()
		synctest.Wait()
		_ = conn.Close()
		if err := <-done; transport.KindOf(err) != transport.KindClosed {
			t.Errorf("Send on a closed connection: %v", err)
		}
		peer.WaitClosed(t)
		if err := conn.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestFakeFailsAfterEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := openFake(t, newFakeModel(transport.Capabilities{}))
		want := scriptedError("recv", transport.KindExpired)
		peer.Emit(transport.Interrupted{})
		peer.FailRecv(want)
		listener := transport.Listen(conn)
		if ev, err := listener.Recv(context.Background()); err != nil || ev != (transport.Interrupted{}) {
			t.Fatalf("%#v, %v", ev, err)
		}
		for range 2 {
			if _, err := listener.Recv(context.Background()); !errors.Is(err, want) {
				t.Errorf("Recv: %v", err)
			}
		}
		if err := conn.Send(context.Background(), transport.Interrupt{}); !errors.Is(err, want) {
			t.Errorf("Send: %v", err)
		}
		_ = conn.Close()
	})
}

func TestFakeContextInUseEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeModel(transport.Capabilities{})
		conn, peer := openFake(t, f)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		defer peer.StallSend()()
		if err := conn.Send(ctx, transport.Interrupt{}); transport.KindOf(err) != transport.KindClosed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send: %v", err)
		}
		peer.WaitClosed(t)
		if f.Open() != 0 {
			t.Errorf("%d connections open", f.Open())
		}
	})
}

func TestFakeRefusesAndStallsConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeModel(transport.Capabilities{Cancel: true})
		f.Refuse(2, scriptedError("dial", transport.KindRetry))
		for range 2 {
			if _, err := f.Connect(context.Background(), transport.Setup{}); transport.KindOf(err) != transport.KindRetry {
				t.Errorf("refused Connect: %v", err)
			}
		}
		release := f.StallConnect()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := f.Connect(ctx, transport.Setup{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stalled Connect: %v", err)
		}
		release()
		conn, _ := openFake(t, f)
		if info := conn.Info(); !info.Capabilities.Cancel || info.InputRate != 16000 || info.OutputRate != 24000 {
			t.Errorf("info %+v", info)
		}
		if f.Attempts() != 4 || len(f.Setups()) != 4 {
			t.Errorf("%d attempts, %d setups", f.Attempts(), len(f.Setups()))
		}
	})
}

// TestFakePanicsOnRecvOutsideOfATurn: the contract allows Recv only in the function of Notify.
func TestFakePanicsOnRecvOutsideOfATurn(t *testing.T) {
	conn, _ := openFake(t, newFakeModel(transport.Capabilities{}))
	defer func() {
		if recover() == nil {
			t.Error("Recv did not panic")
		}
	}()
	_, _ = conn.Recv()
}

func newUplink(maxAudio, maxFrame int, write func()) *uplink {
	u := new(uplink)
	u.begin(maxAudio, maxFrame, write)
	return u
}

package session

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/nonblock"
	"voicegw/protocol"
	"voicegw/transport"
)

// wrapping is a listener whose connections hide that they are sockets.
type wrapping struct{ net.Listener }

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

// TestEveryKindOfConnection: a conversation is the same on a shared event loop and on a goroutine of its own. After any
// end nothing of it remains.
func TestEveryKindOfConnection(t *testing.T) {
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"a loop":      func(ln net.Listener) net.Listener { return nonblock.Listener{Listener: ln, Loops: &nonblock.Loops{}} },
		"a goroutine": func(ln net.Listener) net.Listener { return nonblock.Listener{Listener: ln} },
		"no socket": func(ln net.Listener) net.Listener {
			return nonblock.Listener{Listener: wrapping{ln}, Loops: &nonblock.Loops{}}
		},
		"TLS": func(ln net.Listener) net.Listener {
			return tls.NewListener(nonblock.Listener{Listener: ln, Loops: &nonblock.Loops{}}, secure.TLS)
		},
		"net/http's": func(ln net.Listener) net.Listener { return ln },
	} {
		scheme := "http"
		if name == "TLS" {
			scheme = "https"
		}
		t.Run(name, func(t *testing.T) {
			for end, by := range endings {
				t.Run(end, func(t *testing.T) {
					defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
					talkOver(t, wrap, scheme, secure.Client(), by)
				})
			}
		})
	}
}

// endings are the ends of a conversation, with the close code that its client gets; 0 means unchecked.
var endings = map[string]struct {
	by   func(t *testing.T, st *stage, client *protocol.Conn, model *fakeConn)
	code int
}{
	"the client says so": {func(t *testing.T, _ *stage, client *protocol.Conn, _ *fakeConn) {
		write(t, client, `{"type":"session.end"}`)
	}, int(protocol.CloseDone)},
	"the client disconnects": {func(_ *testing.T, _ *stage, client *protocol.Conn, _ *fakeConn) {
		client.Abort()
	}, 0},
	"the client closes": {func(t *testing.T, _ *stage, client *protocol.Conn, _ *fakeConn) {
		if err := client.Close(protocol.CloseDone, ""); err != nil {
			t.Error(err)
		}
	}, 0},
	"the client floods": {func(_ *testing.T, _ *stage, client *protocol.Conn, _ *fakeConn) {
		for range 2*protocol.FrameBurst + 1 {
			if client.WriteText([]byte(`{"type":"ping","t":1}`)) != nil {
				return // the connection is closed already
			}
		}
	}, int(protocol.CloseLimit)},
	"the model is lost": {func(_ *testing.T, _ *stage, _ *protocol.Conn, model *fakeConn) {
		model.FailRecv(scriptedError("recv", transport.KindRetry))
	}, int(protocol.CloseProviderLost)},
	"the gateway ends it": {func(_ *testing.T, st *stage, _ *protocol.Conn, _ *fakeConn) {
		st.m.Close()
	}, int(protocol.CloseServerLeaving)},
}

func write(t *testing.T, client *protocol.Conn, text string) {
	t.Helper()
	if err := client.WriteText([]byte(text)); err != nil {
		t.Error(err)
	}
}

// talkOver holds a short conversation over connections of a listener; end ends it.
func talkOver(t *testing.T, wrap func(net.Listener) net.Listener, scheme string, reach *http.Client, end struct {
	by   func(t *testing.T, st *stage, client *protocol.Conn, model *fakeConn)
	code int
},
) {
	t.Helper()
	st := newStage(t, hearing, nil)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := protocol.Accept(w, r, protocol.AcceptOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		a, err := st.m.Admit(someone, Coming{})
		if err != nil {
			t.Error(err)
			return
		}
		st.m.Start(a, conn)
	}))
	srv.Listener = wrap(srv.Listener)
	srv.Start()
	defer srv.Close()
	defer st.m.Close()
	client, err := protocol.Dial(t.Context(), scheme+"://"+srv.Listener.Addr().String(), protocol.DialOptions{Client: reach})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Abort()
	// A message directly after session.start is read, even before the session listens.
	write(t, client, `{"type":"session.start","input_rate":16000,"output_rate":24000}`)
	write(t, client, `{"type":"input.text","text":"hello"}`)
	model := st.fake.Accept(t)
	if cmd := model.NextControl(t); cmd != (transport.UserText{Text: "hello"}) {
		t.Errorf("the model got %#v", cmd)
	}
	speech := bytes.Repeat([]byte{1, 2}, 320)
	for range 50 {
		if err := client.WriteAudio(speech); err != nil {
			t.Fatal(err)
		}
	}
	for got := 0; got < 50*len(speech); {
		if in, ok := model.Next(t).(*transport.AudioIn); ok {
			got += len(in.PCM)
		}
	}
	model.Emit(transport.ResponseStarted{ID: "r1"})
	model.EmitAudio("a1", make([]byte, 48_000))
	for got := 0; got < 48_000; {
		f, err := client.Read()
		if err != nil {
			t.Fatal(err)
		}
		if f.Audio {
			got += len(f.Data)
		}
	}
	var ends sync.WaitGroup
	defer ends.Wait()
	ends.Go(func() { end.by(t, st, client, model) })
	for err == nil {
		_, err = client.Read()
	}
	if code := protocol.CloseStatus(err); end.code != 0 && int(code) != end.code {
		t.Errorf("the client was closed with %v, want %d", err, end.code)
	}
	model.WaitClosed(t)
}

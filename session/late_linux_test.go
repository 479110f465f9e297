package session

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/protocol"
	"voicegw/transport"
)

// lateStage is a session whose client is read by a loop that the test can hold, over real sockets, with a clock set by
// the test.
type lateStage struct {
	t        *testing.T
	at       atomic.Int64 // the time, Unix ns
	loops    *nonblock.Loops
	client   *protocol.Conn
	model    *fakeConn
	wakes    net.Conn           // bytes to the loop's other connection, whose turn then takes a gate
	gates    chan chan struct{} // each holds a turn until it is closed
	held     chan struct{}      // a turn is held
	received chan string        // the codes of errors, and pong
}

func newLateStage(t *testing.T) *lateStage {
	t.Helper()
	l := &lateStage{t: t, gates: make(chan chan struct{}, 1), held: make(chan struct{}), received: make(chan string, 4096)}
	l.at.Store(time.Now().UnixNano())
	st := newStage(t, hearing, func(o *Options) { o.now = l.now })
	l.loops = &nonblock.Loops{Clock: l.now, Most: 1} // the loop that is held is the client's
	mux := http.NewServeMux()
	mux.HandleFunc("/voice", func(w http.ResponseWriter, r *http.Request) {
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
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener = nonblock.Listener{Listener: srv.Listener, Loops: l.loops}
	srv.Start()
	t.Cleanup(srv.Close)
	var err error
	if l.client, err = protocol.Dial(t.Context(), srv.URL+"/voice", protocol.DialOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.m.Close(); l.client.Abort() })
	if err := l.client.WriteText([]byte(`{"type":"session.start","input_rate":8000,"output_rate":24000}`)); err != nil {
		t.Fatal(err)
	}
	l.model = st.fake.Accept(t)
	go l.read()
	l.ping()
	l.holder()
	return l
}

func (l *lateStage) now() time.Time { return time.Unix(0, l.at.Load()) }

// read records the codes sent to the client until its connection ends.
func (l *lateStage) read() {
	defer close(l.received)
	for {
		f, err := l.client.Read()
		if err != nil {
			return
		}
		for _, word := range []string{"audio_too_fast", "flooding", `"pong"`} {
			if !f.Audio && strings.Contains(string(f.Data), word) {
				l.received <- word
			}
		}
	}
}

// holder gives the loop its other connection.
func (l *lateStage) holder() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	defer ln.Close()
	if l.wakes, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		l.t.Fatal(err)
	}
	accepted, err := nonblock.Listener{Listener: ln, Loops: l.loops}.Accept()
	if err != nil {
		l.t.Fatal(err)
	}
	near := accepted.(*nonblock.Conn)
	l.t.Cleanup(func() { near.Close(); l.wakes.Close() })
	near.Notify(func() {
		var p [64]byte
		for {
			if _, err := near.Read(p[:]); err != nil {
				return
			}
			select {
			case gate := <-l.gates:
				l.held <- struct{}{}
				<-gate
			default:
			}
		}
	})
}

// hold keeps the loop until release.
func (l *lateStage) hold() (release func()) {
	l.t.Helper()
	gate := make(chan struct{})
	l.gates <- gate
	if _, err := l.wakes.Write([]byte("x")); err != nil {
		l.t.Fatal(err)
	}
	<-l.held
	return func() { close(gate) }
}

// speak sends audio in frames of 20 ms while the clock advances by passes.
func (l *lateStage) speak(audio, passes time.Duration) {
	l.t.Helper()
	frames := int64(audio / (20 * time.Millisecond))
	for range frames {
		l.at.Add(int64(passes) / frames)
		if err := l.client.WriteAudio(make([]byte, 320)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// ping waits until all messages of the client were read, and returns the errors until then.
func (l *lateStage) ping() (errors []string) {
	l.t.Helper()
	if err := l.client.WriteText([]byte(`{"type":"ping","t":1}`)); err != nil {
		l.t.Fatal(err)
	}
	for word := range l.received {
		if word == `"pong"` {
			return errors
		}
		errors = append(errors, word)
	}
	l.t.Fatalf("the session has ended: %v", errors)
	return nil
}

// heard waits for audio in transit and returns how much the model has received since the last call.
func (l *lateStage) heard() (n time.Duration) {
	l.t.Helper()
	// A command arrives after the audio sent before it.
	if err := l.client.WriteText([]byte(`{"type":"input.text","text":"that was it"}`)); err != nil {
		l.t.Fatal(err)
	}
	for {
		switch cmd := l.model.Next(l.t).(type) {
		case *transport.AudioIn:
			n += time.Duration(len(cmd.PCM)) * time.Second / time.Duration(2*l.model.Info().InputRate)
		case transport.UserText:
			return n
		}
	}
}

// TestLateLoop: audio sent in real time while the loop is held for 8 s is then read at once without loss. A client that
// sends too much through the same loop gets an error, and the excess is dropped.
func TestLateLoop(t *testing.T) {
	l := newLateStage(t)
	l.speak(time.Second, time.Second)
	l.ping()
	l.heard()
	for round := range 3 {
		release := l.hold()
		l.speak(8*time.Second, 8*time.Second)
		release()
		if errors := l.ping(); len(errors) > 0 {
			t.Errorf("round %d: a client that sent in real time got %q", round, errors)
		}
		if n := l.heard(); n < upBacklog || n > 8*time.Second+100*time.Millisecond {
			t.Errorf("round %d: of 8 s in the socket the model got %v", round, n)
		}
	}
	release := l.hold()
	l.speak(16*time.Second, 4*time.Second)
	release()
	if errors := l.ping(); len(errors) == 0 || errors[0] != "audio_too_fast" {
		t.Errorf("a client that sent 16 s of audio in 4 s got %q", errors)
	}
	if n := l.heard(); n > 10*time.Second {
		t.Errorf("of 16 s of audio sent in 4 s the model got %v", n)
	}
}

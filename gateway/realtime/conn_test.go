package realtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/audio"
	"voicegw/internal/nonblock"
	"voicegw/internal/openaiwire"
	"voicegw/internal/testutil"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialed returns a Conn over a real socket, and its client.
func dialed(t testing.TB, format string) (*Conn, *websocket.Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	loops := &nonblock.Loops{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled}, WSOptions())
		if err != nil {
			t.Error(err)
			return
		}
		ids := openaiwire.RandomIDs()
		sess := openaiwire.NewSession(ids.New("sess"), "m", rules(), time.Now().Add(time.Hour))
		sess.Audio.Input.Format = openaiwire.Format{Type: format}
		sess.Audio.Output.Format = sess.Audio.Input.Format
		accepted <- NewConn(c, Options{IDs: ids, Session: sess})
	}))
	srv.Listener = nonblock.Listener{Listener: srv.Listener, Loops: loops}
	srv.Start()
	client, _, err := websocket.Dial(context.Background(), srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	client.SetReadLimit(-1)
	conn := <-accepted
	t.Cleanup(func() {
		_ = client.CloseNow()
		conn.Abort()
		srv.Close()
	})
	return conn, client
}

func send(t testing.TB, client *websocket.Conn, event string) {
	t.Helper()
	if err := client.Write(context.Background(), websocket.MessageText, []byte(event)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, client *websocket.Conn) (kind string, data []byte) {
	t.Helper()
	_, data, err := client.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Type string }
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e.Type, data
}

// inputs receives the inputs of a Conn like a session.
func inputs(conn *Conn) chan protocol.Input {
	in := make(chan protocol.Input, 1000)
	over := false
	conn.Notify(func() {
		for !over {
			one, ok, err := conn.TryReceive()
			switch {
			case err != nil:
				over = true
				close(in)
			case !ok:
				return
			default:
				one.PCM = bytes.Clone(one.PCM) // valid until the next call
				in <- one
			}
		}
	})
	return in
}

func append64(pcm []byte) string {
	return `{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm) + `"}`
}

// TestAppendSizes: audio in events of any size reaches the session complete, in order and in frames of valid size, even if
// it arrives before the session is connected to its model.
func TestAppendSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		length time.Duration
		piece  int
		late   bool
	}{
		"at once":          {length: 58 * time.Second},
		"before the model": {length: 58 * time.Second, late: true},
		"in samples":       {length: 100 * time.Millisecond, piece: 2},
		"in small pieces":  {length: 2 * time.Second, piece: 1000, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, client := dialed(t, "audio/pcm")
			pcm := testutil.Noise(24000, -20, tc.length, 1)
			go func() {
				for piece := tc.piece; len(pcm) > 0; {
					n := len(pcm)
					if piece > 0 {
						n = min(n, piece)
					}
					if client.Write(context.Background(), websocket.MessageText, []byte(append64(pcm[:n]))) != nil {
						return
					}
					pcm = pcm[n:]
				}
			}()
			want := testutil.Noise(24000, -20, tc.length, 1)
			first, err := conn.Receive()
			if _, start := first.Message.(*protocol.Start); err != nil || !start {
				t.Fatalf("the first input is %#v, %v", first, err)
			}
			if tc.late {
				testutil.WaitUntil(t, "audio waits", func() bool {
					conn.mu.Lock()
					defer conn.mu.Unlock()
					return len(conn.state.Inputs) > 3
				})
			}
			var got []byte
			for in := range inputs(conn) {
				if !in.Audio || len(in.PCM) > audio.Bytes(24000, protocol.MaxFrameMS*time.Millisecond) {
					t.Fatalf("an input of %d bytes, %#v", len(in.PCM), in.Message)
				}
				if got = append(got, in.PCM...); len(got) >= len(want) {
					break
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want %d, or the audio differs", len(got), len(want))
			}
		})
	}
}

// TestAnswers: the Conn answers events before the session begins, and while the session does not receive.
func TestAnswers(t *testing.T) {
	conn, client := dialed(t, "audio/pcm")
	if kind, _ := read(t, client); kind != "session.created" {
		t.Fatalf("the first event is %s", kind)
	}
	send(t, client, `{"type":"session.update","session":{"instructions":"x"}}`)
	if kind, _ := read(t, client); kind != "session.updated" {
		t.Errorf("the answer is %s", kind)
	}
	send(t, client, append64([]byte{1}))
	if kind, data := read(t, client); kind != "error" || !strings.Contains(string(data), "'audio'") {
		t.Errorf("half a sample: %s", data)
	}
	if _, err := conn.Receive(); err != nil {
		t.Fatal(err)
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	if kind, _ := read(t, client); kind != "input_audio_buffer.cleared" {
		t.Errorf("the answer is %s", kind)
	}
}

// TestClientDisconnects: the session ends at once, because the client cannot resume it. It does not begin if the client
// disconnects before it needs a model.
func TestClientDisconnects(t *testing.T) {
	conn, client := dialed(t, "audio/pcm")
	_ = client.CloseNow()
	if in, err := conn.Receive(); err == nil {
		t.Errorf("a disconnected client begins a session: %#v", in.Message)
	}
	for _, early := range []bool{true, false} {
		conn, client = dialed(t, "audio/pcm")
		send(t, client, append64(make([]byte, 480)))
		if _, err := conn.Receive(); err != nil {
			t.Fatal(err)
		}
		var in chan protocol.Input
		if !early {
			in = inputs(conn)
		}
		_ = client.CloseNow()
		if early { // before the session receives
			testutil.WaitUntil(t, "the loss is noticed", conn.lostNow)
			in = inputs(conn)
		}
		ended := false
		for one := range in {
			_, end := one.Message.(*protocol.End)
			ended = ended || end
		}
		if !ended {
			t.Errorf("early=%v: the session does not end", early)
		}
	}
}

// TestClientDoesNotRead: the gateway disconnects a client that does not read its answers.
func TestClientDoesNotRead(t *testing.T) {
	conn, client := dialed(t, "audio/pcm")
	send(t, client, fmt.Sprintf(`{"type":"conversation.item.create","item":{"id":"i","type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, strings.Repeat("x", 7900)))
	in := inputs(conn)
	for range 7000 {
		if client.Write(context.Background(), websocket.MessageText, []byte(`{"type":"conversation.item.retrieve","item_id":"i"}`)) != nil {
			break
		}
	}
	for range in { // until the gateway disconnects it
	}
}

// TestClose: the client gets the end of its response, the error, and a close code of its protocol.
func TestClose(t *testing.T) {
	conn, client := dialed(t, "audio/pcm")
	send(t, client, `{"type":"response.create"}`)
	if _, err := conn.Receive(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer inputs(conn)
		text, err := protocol.EncodeServer(1, &protocol.Error{Code: "provider_lost", Message: "The model is gone."})
		if err == nil {
			err = conn.WriteText(text)
		}
		if err != nil {
			t.Error(err)
		}
		_ = conn.Close(protocol.CloseProviderLost, "provider_lost") // the client may close first
	}()
	var kinds []string
	for {
		_, data, err := client.Read(context.Background())
		if err != nil {
			if websocket.CloseStatus(err) != 1011 {
				t.Errorf("the connection ended with %v", err)
			}
			break
		}
		var e struct{ Type string }
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(kinds, " "); got != "session.created response.created response.done error" {
		t.Errorf("the events are %s", got)
	}
}

// sink discards all writes; a read blocks.
type sink struct {
	net.Conn
	in io.Reader
}

func (s sink) Read(p []byte) (int, error)     { return s.in.Read(p) }
func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) Close() error                     { return nil }
func (sink) SetDeadline(time.Time) error      { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (sink) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// TestAudioPathAllocatesNothing: in the steady state, a frame allocates nothing in either direction and any format.
func TestAudioPathAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop items")
	}
	for _, format := range []string{"audio/pcm", "audio/pcmu", "audio/pcma"} {
		blocked, wrote := io.Pipe()
		ids := openaiwire.RandomIDs()
		sess := openaiwire.NewSession(ids.New("sess"), "m", rules(), time.Now().Add(time.Hour))
		sess.Audio.Input.Format, sess.Audio.Output.Format = openaiwire.Format{Type: format}, openaiwire.Format{Type: format}
		under := ws.Adopt(sink{in: blocked}, nil, WSOptions())
		c := NewConn(under, Options{IDs: ids, Session: sess})
		now := time.Now()
		c.mu.Lock()
		c.state.start()
		c.state.Take(now, &protocol.TurnStarted{Header: protocol.Header{Turn: 1}})
		c.state.Take(now, &protocol.AudioStart{Header: protocol.Header{Turn: 1}, ItemID: "a1"})
		c.follow()
		c.state.Inputs = nil
		c.mu.Unlock()
		pcm := testutil.Noise(sess.Audio.Output.Format.Hz(), -20, 20*time.Millisecond, 1)
		down := func() {
			if err := c.WriteAudio(pcm); err != nil {
				t.Fatal(err)
			}
		}
		encoded := []byte(base64.StdEncoding.EncodeToString(pcm[:len(pcm)/2]))
		scratch := make([]byte, 0, len(encoded))
		up := func() {
			if err := c.append(append(scratch, encoded...)); err != nil {
				t.Fatal(err)
			}
			for {
				c.mu.Lock()
				_, ok := c.next()
				c.mu.Unlock()
				if !ok {
					return
				}
			}
		}
		for range 100 {
			down()
			up()
		}
		if n := testing.AllocsPerRun(500, down); n != 0 {
			t.Errorf("%s: %v allocations a frame down", format, n)
		}
		if n := testing.AllocsPerRun(500, up); n != 0 {
			t.Errorf("%s: %v allocations a frame up", format, n)
		}
		_ = wrote.Close()
		c.Abort()
	}
}

// TestStaysInADrain: a session whose client cannot resume does not move to another gateway.
func TestStaysInADrain(t *testing.T) {
	conn, _ := dialed(t, "audio/pcm")
	if follows, is := any(conn).(interface{ Follows() bool }); !is || follows.Follows() {
		t.Error("the session could move without its client")
	}
}

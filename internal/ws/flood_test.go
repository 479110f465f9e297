package ws

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
)

// line makes connections with a near end that is read by calls or by a loop.
type line struct {
	*httptest.Server
	kind
	loops    *nonblock.Loops
	opts     Options // of the near ends
	accepted chan *Conn
	one      sync.Mutex // held during a connect
}

// kind describes the near ends of a line.
type kind struct {
	name    string
	tls     bool
	clients bool // otherwise they are servers
}

var kinds = []kind{{name: "servers"}, {name: "servers, TLS", tls: true}, {name: "clients, TLS", tls: true, clients: true}}

func newLine(t *testing.T, k kind, loops *nonblock.Loops, opts Options) *line {
	t.Helper()
	l := &line{loops: loops, kind: k, opts: opts, accepted: make(chan *Conn, 1)}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, nil, l.side(!k.clients))
		if err != nil {
			t.Error(err)
			return
		}
		l.accepted <- c
	}))
	l.Listener = nonblock.Listener{Listener: l.Listener, Loops: l.loops}
	if k.tls {
		l.StartTLS()
	} else {
		l.Start()
	}
	t.Cleanup(l.Close)
	return l
}

func (l *line) side(near bool) Options {
	if near {
		return l.opts
	}
	return Options{}
}

// connect returns both ends of a new connection.
func (l *line) connect(t *testing.T) (far, near *Conn) {
	t.Helper()
	h := nonblock.Client(l.Client(), l.loops)
	t.Cleanup(h.CloseIdleConnections)
	l.one.Lock()
	defer l.one.Unlock()
	client, _, err := Dial(t.Context(), l.URL, &websocket.DialOptions{HTTPClient: h}, l.side(l.clients))
	if err != nil {
		t.Fatal(err)
	}
	server := <-l.accepted
	t.Cleanup(func() { client.CloseNow(); server.CloseNow() })
	if l.clients {
		return server, client
	}
	return client, server
}

// frame is a frame of a far end.
func (l *line) frame(first, opcode byte, payload []byte) []byte {
	m := NewMessage()
	m.B = append(m.B, payload...)
	b := bytes.Clone((&Conn{client: !l.clients}).seal(opcode, m))
	b[0] = first | opcode
	return b
}

// pour floods a connection until it is closed. It returns after the first bytes are sent.
func pour(t *testing.T, to *Conn, f flood, first int) {
	t.Helper()
	if _, err := to.stream.Write(f.first); err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat(f.again, max(1, 4096/len(f.again)))
	if f.alone {
		chunk, first = f.again, max(1, first>>8) // the network holds fewer of them
	}
	onTheWay := make(chan struct{})
	var wg sync.WaitGroup
	t.Cleanup(func() { to.CloseNow(); wg.Wait() })
	wg.Go(func() {
		sent := 0
		for {
			if _, err := to.stream.Write(chunk); err != nil {
				return
			}
			if sent < first && sent+len(chunk) >= first {
				close(onTheWay)
			}
			sent += len(chunk)
		}
	})
	<-onTheWay
}

// flood is an endless stream of frames: the first, and then one that is repeated.
type flood struct {
	first, again []byte
	alone        bool // each is written alone, as a record of its own over TLS
}

// floods are the floods of each kind.
func (l *line) floods() map[string]flood {
	all := map[string]flood{
		"pongs":           {again: l.frame(finBit, opPong, nil)},
		"pings":           {again: l.frame(finBit, opPing, []byte("x"))},
		"empty messages":  {again: l.frame(finBit, opBinary, nil)},
		"tiny messages":   {again: l.frame(finBit, opText, []byte(`{"type":"ping","t":1}`))},
		"empty fragments": {first: l.frame(0, opText, nil), again: l.frame(0, opContinuation, nil)},
		"long messages":   {again: l.frame(finBit, opBinary, make([]byte, 30_000))},
	}
	if l.kind.tls {
		const long = 30_000
		frame := l.frame(finBit, opBinary, make([]byte, long))
		all["tiny records"] = flood{first: frame[:len(frame)-long], again: []byte("x"), alone: true}
	}
	return all
}

// TestAFloodLeavesOthersTheirTurns: two connections that always have data to read use no more than their turns while a
// ping of a third waits, with any kind of frames.
func TestAFloodLeavesOthersTheirTurns(t *testing.T) {
	for _, k := range kinds {
		l := newLine(t, k, &nonblock.Loops{Most: 1}, Options{Budget: Budget{PerSecond: 1, Burst: muchLater}})
		for name, frames := range l.floods() {
			t.Run(name+", "+k.name, func(t *testing.T) { l.answersBeside(t, frames) })
		}
	}
}

const muchLater = 1 << 40 // a budget that counts but never ends

func (l *line) answersBeside(t *testing.T, frames flood) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no loops here")
	}
	client, victim := l.connect(t)
	var pinged bool // used only by the loop, like the next one
	var flooders []*Conn
	taken := func() (all int64) {
		for _, c := range flooders {
			all += muchLater - c.allowance.left
		}
		return all
	}
	var before int64
	answered := make(chan int64, 1)
	victim.Notify(func() {
		_, _, _, _ = victim.TryRead() // only the ping, and the end
		if pinged {
			pinged = false
			answered <- taken() - before
		}
	})
	ready := make(chan struct{}) // closed when all flooders are known
	for range 2 {
		far, near := l.connect(t)
		pour(t, far, frames, 1<<20)
		flooders = append(flooders, near)
	}
	var once sync.Once
	for _, c := range flooders {
		c.Notify(func() {
			<-ready
			once.Do(func() { // the ping is sent during a turn of the flood
				before, pinged = taken(), true
				if err := client.Probe(1); err != nil {
					t.Error(err)
				}
			})
			for {
				if _, _, ok, err := c.TryRead(); !ok || err != nil {
					return
				}
			}
		})
	}
	close(ready)
	// Each may use the rest of a turn, and another one before the loop reads the ping: 64 frames and 64 KiB.
	const most = 2 * 2 * (64 + 32)
	if took := <-answered; took > most {
		t.Errorf("the floods used %d before the ping was answered, more than %d", took, most)
	}
}

// TestUnreadFramesGetATurn: frames that were read from the socket and do not fit into a turn get the next one, even if no
// more data arrives.
func TestUnreadFramesGetATurn(t *testing.T) {
	eachWay(t, Options{Limit: testLimit}, func(t *testing.T, l *line, hear func(*Conn) peer) {
		far, near := l.connect(t)
		w := hear(near)
		var all []byte
		const n, long = 20 * turnFrames, 5 * turnBytes
		for range n {
			all = append(all, l.frame(finBit, opText, []byte("tiny"))...)
		}
		if _, err := far.stream.Write(all); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, p, err := w.read(); err != nil || string(p) != "tiny" {
				t.Fatalf("message %d is %q, %v", i, p, err)
			}
		}
		if _, err := far.stream.Write(l.frame(finBit, opBinary, make([]byte, long))); err != nil {
			t.Fatal(err)
		}
		if _, p, err := w.read(); err != nil || len(p) != long {
			t.Fatalf("the long message has %d bytes, %v", len(p), err)
		}
	})
}

// eachWay runs a test over a line of each kind, with near ends that are read by calls, by a loop, or by a goroutine each.
func eachWay(t *testing.T, opts Options, test func(t *testing.T, l *line, hear func(*Conn) peer)) {
	t.Helper()
	for _, k := range kinds {
		for name, way := range map[string]struct {
			loops *nonblock.Loops
			hear  func(c *Conn) peer
		}{
			"read":                {nil, func(c *Conn) peer { return ours{c} }},
			"read by a loop":      {&nonblock.Loops{}, hear},
			"read by a goroutine": {nil, hear},
		} {
			l := newLine(t, k, way.loops, opts)
			t.Run(k.name+", "+name, func(t *testing.T) {
				t.Parallel()
				test(t, l, way.hear)
			})
		}
	}
}

// untilFlood reads until the budget is exceeded.
func untilFlood(t *testing.T, near peer) {
	t.Helper()
	var err error
	for err == nil {
		_, _, err = near.read()
	}
	if !errors.Is(err, ErrFlood) {
		t.Error("the flood ended with", err)
	}
}

// TestAFloodEnds: exceeding the budget with any kind of frame ends the reading, and the close frame arrives.
func TestAFloodEnds(t *testing.T) {
	eachWay(t, Options{Budget: Budget{PerSecond: 1, Burst: 500}}, func(t *testing.T, l *line, hear func(*Conn) peer) {
		var wg sync.WaitGroup
		for name, frames := range l.floods() {
			far, conn := l.connect(t)
			near := hear(conn)
			pour(t, far, frames, 1)
			wg.Go(func() {
				untilFlood(t, near)
				if err := near.close(4029, "flooding"); err != nil {
					t.Error(name, err)
				}
			})
			wg.Go(func() {
				var err error
				for err == nil {
					_, _, err = far.Read()
				}
				if websocket.CloseStatus(err) != 4029 {
					t.Error("the flooder with", name, "got", err)
				}
				far.CloseNow()
			})
		}
		wg.Wait()
	})
}

// TestAFloodThatReadsNothingEnds: the wait for the answer to the close frame is limited.
func TestAFloodThatReadsNothingEnds(t *testing.T) {
	eachWay(t, Options{Budget: Budget{PerSecond: 1, Burst: 500}}, func(t *testing.T, l *line, hear func(*Conn) peer) {
		far, conn := l.connect(t)
		near := hear(conn)
		pour(t, far, l.floods()["pongs"], 1)
		untilFlood(t, near)
		if err := near.close(4029, "flooding"); err != nil || !conn.closed.Load() {
			t.Errorf("close returned %v; closed: %t", err, conn.closed.Load())
		}
	})
}

// TestABudgetRefills: a side within its budget may continue for ever, and after a pause it may send a burst.
func TestABudgetRefills(t *testing.T) {
	p := newAllowance(Budget{PerSecond: 100, Burst: 200})
	for second := range 1000 {
		for range 100 {
			if !p.pay(0) {
				t.Fatalf("the budget was not exceeded, but ended in second %d", second)
			}
		}
		p.filled = p.filled.Add(-time.Second) // as if it had passed
	}
	p.filled = p.filled.Add(-time.Hour)
	for i := range 200 {
		if !p.pay(0) {
			t.Fatalf("a burst after a pause ended at %d", i)
		}
	}
	n := 0
	for ; p.pay(10 * frameUnit); n++ {
	}
	if n > 2*200/11+1 {
		t.Errorf("%d large frames were accepted after a burst", n)
	}
	if free := newAllowance(Budget{}); !free.pay(1 << 60) {
		t.Error("a missing budget was exceeded")
	}
}

// TestLastTurnReportsTheEnd: a connection closed on this side has no further turn, so the function of Notify gets the
// error of the end even if more frames are buffered than a turn reads.
func TestLastTurnReportsTheEnd(t *testing.T) {
	eachWay(t, Options{Limit: testLimit}, func(t *testing.T, l *line, _ func(*Conn) peer) {
		far, near := l.connect(t)
		var all []byte
		for range 20 * turnFrames {
			all = append(all, l.frame(finBit, opText, []byte("tiny"))...)
		}
		if _, err := far.stream.Write(all); err != nil {
			t.Fatal(err)
		}
		begun, closed, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var once, end sync.Once
		near.Notify(func() {
			once.Do(func() {
				_, _, _, _ = near.TryRead() // fills the buffer
				close(begun)
				<-closed
			})
			for {
				if _, _, ok, err := near.TryRead(); err != nil {
					end.Do(func() { close(over) })
					return
				} else if !ok {
					return
				}
			}
		})
		<-begun
		_ = near.CloseNow()
		close(closed)
		<-over
	})
}

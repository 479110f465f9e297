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

// line makes connections whose near end is read or heard.
type line struct {
	*httptest.Server
	kind
	loops    *nonblock.Loops
	opts     Options // of the near ends
	accepted chan *Conn
	one      sync.Mutex // held while one connects
}

// kind says what the near ends of a line are.
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

// frame is one as a far end sends it.
func (l *line) frame(first, opcode byte, payload []byte) []byte {
	m := NewMessage()
	m.B = append(m.B, payload...)
	b := bytes.Clone((&Conn{client: !l.clients}).seal(opcode, m))
	b[0] = first | opcode
	return b
}

// pour floods to until it is closed. It returns when that many bytes are on their way.
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

// flood is frames without end: the first, and then one that is sent again and again.
type flood struct {
	first, again []byte
	alone        bool // each is written for itself, which over TLS makes a record of it
}

// floods are of each kind.
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

// TestAFloodLeavesOthersTheirTurns: two connections on which there is always something to read
// take no more than their turns while a ping of a third waits, however they fill them.
func TestAFloodLeavesOthersTheirTurns(t *testing.T) {
	for _, k := range kinds {
		l := newLine(t, k, &nonblock.Loops{Most: 1}, Options{Budget: Budget{PerSecond: 1, Burst: muchLater}})
		for name, frames := range l.floods() {
			t.Run(name+", "+k.name, func(t *testing.T) { l.answersBeside(t, frames) })
		}
	}
}

const muchLater = 1 << 40 // a budget to count with, not to end by

func (l *line) answersBeside(t *testing.T, frames flood) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no loops here")
	}
	client, victim := l.connect(t)
	var pinged bool // this and the next is the loop's
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
		_, _, _, _ = victim.TryRead() // there is nothing but the ping, and the end
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
			once.Do(func() { // the ping comes when a turn of the flood has begun
				before, pinged = taken(), true
				if err := client.Ping(); err != nil {
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
	// Each has the rest of a turn, and one more before the loop hears of the ping: 64 frames and
	// 64 KiB.
	const most = 2 * 2 * (64 + 32)
	if took := <-answered; took > most {
		t.Errorf("the floods took %d before the ping was answered, more than %d", took, most)
	}
}

// TestWhatATurnLeavesIsHeard: what has been read from the socket and does not fit into a turn
// is heard although nothing more comes.
func TestWhatATurnLeavesIsHeard(t *testing.T) {
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

// eachWay runs a test over a line of each kind, whose near ends are read, heard by a loop, or
// heard by a goroutine each.
func eachWay(t *testing.T, opts Options, test func(t *testing.T, l *line, hear func(*Conn) peer)) {
	t.Helper()
	for _, k := range kinds {
		for name, way := range map[string]struct {
			loops *nonblock.Loops
			hear  func(c *Conn) peer
		}{
			"read":                 {nil, func(c *Conn) peer { return ours{c} }},
			"heard by a loop":      {&nonblock.Loops{}, hear},
			"heard by a goroutine": {nil, hear},
		} {
			l := newLine(t, k, way.loops, opts)
			t.Run(k.name+", "+name, func(t *testing.T) {
				t.Parallel()
				test(t, l, way.hear)
			})
		}
	}
}

// untilFlood reads until there is too much.
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

// TestAFloodEnds: more than the budget of any kind of frame ends the reading, and the goodbye
// arrives.
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
					t.Error("the flooder with", name, "has read", err)
				}
				far.CloseNow()
			})
		}
		wg.Wait()
	})
}

// TestAFloodThatReadsNothingEnds: its goodbye is not waited for without end.
func TestAFloodThatReadsNothingEnds(t *testing.T) {
	eachWay(t, Options{Budget: Budget{PerSecond: 1, Burst: 500}}, func(t *testing.T, l *line, hear func(*Conn) peer) {
		far, conn := l.connect(t)
		near := hear(conn)
		pour(t, far, l.floods()["pongs"], 1)
		untilFlood(t, near)
		if err := near.close(4029, "flooding"); err != nil || !conn.closed.Load() {
			t.Errorf("closing says %v; closed: %t", err, conn.closed.Load())
		}
	})
}

// TestABudgetIsEarnedAgain: a side that keeps to it may go on for ever, and a pause earns a burst.
func TestABudgetIsEarnedAgain(t *testing.T) {
	p := newAllowance(Budget{PerSecond: 100, Burst: 200})
	for second := range 1000 {
		for range 100 {
			if !p.pay(0) {
				t.Fatalf("the budget was kept, and ended in second %d", second)
			}
		}
		p.filled = p.filled.Add(-time.Second) // as if that had passed
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
		t.Errorf("%d large frames came after a burst", n)
	}
	if free := newAllowance(Budget{}); !free.pay(1 << 60) {
		t.Error("there is no budget, and it was exceeded")
	}
}

// TestTheLastTurnHearsOfTheEnd: a connection that this side closes has no further turn, so the function of Notify learns of
// the end although more frames are buffered than a turn reads.
func TestTheLastTurnHearsOfTheEnd(t *testing.T) {
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

//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"voicegw/internal/nonblock"
	"voicegw/internal/ws"
)

// The protocols between a load and a relay.
const (
	speakVoicegw = "voicegw" // voicegw.v1: raw audio in binary frames
	speakGemini  = "gemini"  // the provider's own, which the relay passes on
)

// loadOptions configure a load.
type loadOptions struct {
	Addr     string
	Cert     string // file with the certificate of the relay, PEM; empty without TLS
	Speak    string
	Provider string // the provider to request from the relay, with speakVoicegw
	Sessions int
	Frame    time.Duration // how much audio a frame holds, and how often one is sent
	Warm     time.Duration // time before the measurement
	Measure  time.Duration // time of the measurement
}

// inputRate is the load's audio in Hz, the same on every wire.
const inputRate = 16000

// outputRate is that of the audio that a gateway sends back, in Hz.
const outputRate = 24000

// frameBytes returns the length of a frame.
func frameBytes(d time.Duration) int {
	return int(d.Milliseconds()) * inputRate / 1000 * 2
}

// loadResult is the result of a load. Times are in microseconds.
type loadResult struct {
	Sent, Got     int64 // frames during the measurement
	P50, P95, P99 float64
	LateP95       float64 // how late frames were sent
	Failure       string  // why the run does not count; empty if it does
}

// load is many clients of one relay. Loops read its connections, which costs far less than a
// goroutine for each: a load takes processor time away from the relay.
type load struct {
	opts   loadOptions
	client *http.Client
	scheme string
	conns  []*loadConn
	audio  []byte // one frame of audio, ready to send
	kind   websocket.MessageType
	failed atomic.Pointer[error]

	from, to atomic.Int64 // the time of the measurement, in ns since the epoch

	mu    sync.Mutex // guards the following fields
	trips []uint32   // round trips in microseconds
	got   int64
	// Owned by send.
	late []uint32
	sent int64
}

// flying is how many frames of a session may be in flight.
const flying = 256

// loadConn is one session.
type loadConn struct {
	*ws.Conn
	sent  int64                // owned by send
	got   int64                // owned by the turns of the connection
	at    [flying]atomic.Int64 // when the last frames were sent
	heard atomic.Int64         // bytes of audio that have come back
	told  int64                // when the gateway was last told so, ns; owned by send
}

// runLoad connects the sessions and reports this on out with a line; then, after the line "go",
// it sends, prints "begin" and "end" around the measurement, and its result. It ends with in.
func runLoad(in io.Reader, out io.Writer, opts loadOptions) error {
	l := &load{opts: opts, scheme: "ws"}
	var base *http.Client
	if opts.Cert != "" {
		var err error
		if base, err = trusting(opts.Cert); err != nil {
			return err
		}
		l.scheme = "wss"
	}
	l.client = nonblock.Client(base, &nonblock.Loops{})
	l.kind, l.audio = audioFrame(opts)
	if err := l.connect(); err != nil {
		return err
	}
	say(out, "connected\n")
	var command string
	if _, err := fmt.Fscanln(in, &command); err != nil {
		return nil // an idle load: only its sessions were wanted
	}
	if err := json.NewEncoder(out).Encode(l.run(out)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// audioFrame returns the message that a session sends repeatedly.
func audioFrame(opts loadOptions) (websocket.MessageType, []byte) {
	pcm := hum(frameBytes(opts.Frame))
	if opts.Speak == speakGemini {
		return websocket.MessageText, []byte(`{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"` + base64.StdEncoding.EncodeToString(pcm) + `"}}}`)
	}
	return websocket.MessageBinary, pcm
}

// connecting is how many sessions are opened concurrently.
const connecting = 32

// connect opens all sessions.
func (l *load) connect() error {
	l.conns = make([]*loadConn, l.opts.Sessions)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range connecting {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(l.conns) && l.failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := l.open(i); err != nil {
					l.fail(fmt.Errorf("session %d: %w", i+1, err))
				}
			}
		})
	}
	wg.Wait()
	return l.failure()
}

func (l *load) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

func (l *load) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// open opens one session, whose connection a loop reads from then on.
func (l *load) open(i int) error {
	path, shake := "/v1/voice", &websocket.DialOptions{HTTPClient: l.client, Subprotocols: []string{"voicegw.v1"}}
	if l.opts.Speak == speakGemini {
		path, shake.Subprotocols = pathGemini, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	conn, _, err := ws.Dial(ctx, l.scheme+"://"+l.opts.Addr+path, shake, ws.Options{}) //nolint:bodyclose // an upgrade has none
	if err != nil {
		return err
	}
	end := context.AfterFunc(ctx, func() { _ = conn.CloseNow() }) // it takes too long
	if err := l.begin(conn); err != nil {
		return errors.Join(err, conn.CloseNow())
	}
	if !end() {
		return ctx.Err()
	}
	c := &loadConn{Conn: conn}
	l.conns[i] = c
	c.Notify(func() {
		if err := l.readable(c); err != nil {
			l.fail(fmt.Errorf("session %d: %w", i+1, err))
			_ = c.CloseNow()
		}
	})
	return nil
}

// begin exchanges the first messages of a session.
func (l *load) begin(conn *ws.Conn) error {
	first, answer := `{"setup":{"model":"models/bench"}}`, "setupComplete"
	if l.opts.Speak == speakVoicegw {
		first = fmt.Sprintf(`{"type":"session.start","provider":%q,"input_rate":%d,"output_rate":%d}`, l.opts.Provider, l.startRate(), outputRate)
		answer = "session.started"
	}
	if err := conn.Write(websocket.MessageText, []byte(first)); err != nil {
		return err
	}
	for {
		_, message, err := conn.Read()
		switch seen := string(message); {
		case err != nil:
			return err
		case strings.Contains(seen, answer):
			return nil
		case strings.Contains(seen, `"error"`):
			return fmt.Errorf("the relay answered %s", seen)
		}
	}
}

// startRate returns the rate with which a session is started: that of the provider's wire, so
// that nothing is resampled, since no other relay resamples.
func (l *load) startRate() int {
	if l.opts.Provider == wireOpenAI {
		return 24000
	}
	return inputRate
}

// run sends and receives for the time of the options.
func (l *load) run(out io.Writer) loadResult {
	start := time.Now().Add(50 * time.Millisecond)
	from := start.Add(l.opts.Warm)
	to := from.Add(l.opts.Measure)
	l.from.Store(from.UnixNano())
	l.to.Store(to.UnixNano())
	var sending sync.WaitGroup
	sending.Go(func() { l.send(start, to) })
	sending.Go(func() {
		<-time.After(time.Until(from))
		say(out, "begin\n")
		<-time.After(time.Until(to))
		say(out, "end\n")
	})
	sending.Wait()
	<-time.After(lastFrames)
	return l.result()
}

// lastFrames is how long the last frames may be in flight.
const lastFrames = 300 * time.Millisecond

// send sends the frames of all sessions, spread evenly over the time of one frame.
func (l *load) send(start, to time.Time) {
	runtime.LockOSThread() // its own thread sleeps more precisely than a timer fires
	defer runtime.UnlockOSThread()
	n := len(l.conns)
	for k := 0; ; k++ {
		due := start.Add(time.Duration(k) * l.opts.Frame / time.Duration(n))
		if !due.Before(to) || l.failure() != nil {
			return
		}
		if wait := time.Until(due); wait > 0 {
			pause := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&pause, nil) // a signal only wakes it early
		}
		c, now := l.conns[k%n], time.Now().UnixNano()
		c.at[c.sent%flying].Store(now)
		c.sent++
		if err := errors.Join(c.Write(l.kind, l.audio), l.report(c, now)); err != nil {
			l.fail(err)
			return
		}
		if l.counts(now) {
			l.sent++
			l.late = append(l.late, micros(now-due.UnixNano()))
		}
	}
}

// reportEvery is how often a client of the gateway says what it has received, as @voicegw/client does. The
// gateway holds what a client may not have received, for one that comes back.
const reportEvery = 200 * time.Millisecond

func (l *load) report(c *loadConn, now int64) error {
	if l.opts.Speak != speakVoicegw || now-c.told < int64(reportEvery) {
		return nil
	}
	c.told = now
	ms := c.heard.Load() / (outputRate / 1000 * 2)
	return c.Write(websocket.MessageText, fmt.Appendf(nil, `{"type":"playback","item_id":"item_1","played_ms":%d,"received_ms":%d}`, ms, ms))
}

func (l *load) counts(at int64) bool { return at >= l.from.Load() && at < l.to.Load() }

func micros(ns int64) uint32 { return uint32(max(ns, 0) / 1000) }

// readable counts the frames that have come back.
func (l *load) readable(c *loadConn) error {
	for {
		typ, message, ok, err := c.TryRead()
		if err != nil || !ok {
			return err
		}
		if typ != l.kind || len(message) < smallestAudio {
			continue
		}
		now, at := time.Now().UnixNano(), c.at[c.got%flying].Load()
		c.got++
		c.heard.Add(int64(len(message)))
		if l.counts(at) {
			l.mu.Lock()
			l.got++
			l.trips = append(l.trips, micros(now-at))
			l.mu.Unlock()
		}
	}
}

func (l *load) result() loadResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.trips)
	slices.Sort(l.late)
	r := loadResult{
		Sent: l.sent, Got: l.got,
		P50: at(l.trips, 0.50), P95: at(l.trips, 0.95), P99: at(l.trips, 0.99),
		LateP95: at(l.late, 0.95),
	}
	if err := l.failure(); err != nil {
		r.Failure = err.Error()
	}
	return r
}

// at returns a quantile of sorted values; 0 without values.
func at(sorted []uint32, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}

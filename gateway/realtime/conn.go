package realtime

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

// Limits of a connection.
const (
	// MaxMessageBytes is the limit of a client's message: OpenAI accepts 15 MiB of audio in an event.
	MaxMessageBytes = 16 << 20

	maxInputs  = 1000    // inputs that wait for a session that connects to its model
	maxHeld    = 8 << 20 // and their bytes of audio
	maxUnsent  = 8 << 20 // bytes of events for a client that does not read
	frameBurst = 12000   // of the budget of [ws.Budget], for one message of the limit
)

// WSOptions are for the connections of a Conn.
func WSOptions() ws.Options {
	return ws.Options{Limit: MaxMessageBytes, Budget: ws.Budget{PerSecond: protocol.FramesPerSecond, Burst: frameBurst}}
}

// Accept upgrades a request whose page, if it has one, was checked. On failure it has answered the request.
func Accept(w http.ResponseWriter, r *http.Request) (*ws.Conn, error) {
	c, err := ws.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{"realtime"}, InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
	}, WSOptions())
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return c, nil
}

// Refuse sends an error and closes the connection with 4000, as OpenAI does. It does not wait for the client.
func Refuse(c *ws.Conn, why *openaiwire.Error) {
	go func() {
		if event, err := why.Failure("").Encode(openaiwire.RandomIDs()); err == nil {
			_ = c.Write(websocket.MessageText, event) // the close code says it too
		}
		_ = c.Close(4000, why.Type+"."+why.Code) // the client may be gone
	}()
}

// Conn is the client of a session, over a WebSocket. Its methods are those of session.Client.
type Conn struct {
	*ws.Conn

	hear    atomic.Pointer[func()] // of Notify
	started chan struct{}          // closed by open when the first input waits, or the client is gone
	open    sync.Once

	writing sync.Mutex // held while events are written, so that they keep their order; taken before mu

	mu       sync.Mutex // guards the fields below
	state    *State     // with the inputs and events that wait
	rest     []byte     // live PCM after the inputs, in the buffer of the last message; owned by the reader
	flushing bool
	failed   error
	timer    *time.Timer
	wakeAt   time.Time
	code     []byte // scratch of the reader
}

// NewConn begins a conversation over c. The client gets session.created at once.
func NewConn(c *ws.Conn, opts Options) *Conn {
	conn := &Conn{Conn: c, started: make(chan struct{}), state: New(opts, time.Now())}
	conn.mu.Lock()
	conn.timer = time.AfterFunc(time.Hour, conn.tick)
	conn.follow()
	conn.mu.Unlock()
	conn.flush(true)
	c.Notify(conn.turn)
	return conn
}

// follow must be called after each change of the state. The caller must hold mu.
func (c *Conn) follow() {
	if len(c.state.Inputs) > 0 || c.failed != nil {
		c.open.Do(func() { close(c.started) })
	}
	at := c.state.WakeAt()
	if c.failed != nil {
		at = time.Time{}
	}
	switch {
	case at.Equal(c.wakeAt):
	case at.IsZero():
		c.timer.Stop()
	default:
		c.timer.Reset(time.Until(at))
	}
	c.wakeAt = at
}

func (c *Conn) tick() {
	c.mu.Lock()
	c.wakeAt = time.Time{}
	c.state.Tick(time.Now())
	c.follow()
	waiting := len(c.state.Inputs) > 0
	c.mu.Unlock()
	c.flush(true)
	if waiting {
		c.Nudge()
	}
}

// turn is called by the connection when there may be something to read. Before the session hears, it reads ahead.
func (c *Conn) turn() {
	for {
		if hear := c.hear.Load(); hear != nil {
			(*hear)()
			return
		}
		if c.full() || !c.read() {
			return
		}
		c.mu.Lock()
		if len(c.rest) > 0 {
			c.state.speak(slices.Clone(c.rest)) // the connection reuses the buffer
			c.rest = nil
		}
		c.mu.Unlock()
	}
}

func (c *Conn) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := 0
	for _, in := range c.state.Inputs {
		held += len(in.PCM)
	}
	return len(c.state.Inputs) > maxInputs || held > maxHeld
}

// read reads one message of the client and reports whether there was one.
func (c *Conn) read() bool {
	_, data, ok, err := c.TryRead()
	switch {
	case err != nil:
		c.lost(err)
		return false
	case !ok:
		return false
	}
	e, failure := openaiwire.ParseEvent(data)
	if e.Type == openaiwire.AudioAppend && failure == nil {
		if failure = c.append(e.Audio); failure == nil {
			return true
		}
	}
	c.mu.Lock()
	c.state.Event(time.Now(), e, failure)
	c.follow()
	c.mu.Unlock()
	c.flush(false)
	return true
}

// append takes audio in base64, which it overwrites.
func (c *Conn) append(encoded []byte) *openaiwire.Error {
	data, err := audio.AppendFromBase64(encoded[:0], encoded)
	if err != nil {
		return openaiwire.InvalidAudio("audio")
	}
	c.mu.Lock()
	pcm, failure := c.state.sess.Audio.Input.Format.Decode(&c.code, data, "audio")
	if failure != nil {
		c.mu.Unlock()
		return failure
	}
	if c.state.Hear(time.Now(), pcm) {
		c.rest = pcm
	}
	c.follow()
	unsent := len(c.state.Events) > 0
	c.mu.Unlock()
	if unsent {
		c.flush(false)
	}
	return nil
}

// Follows is false: the protocol has no resume, so a session that moved in a drain would wait for its client in vain and
// keep the conversation from the next session of the same secret.
func (c *Conn) Follows() bool { return false }

func (c *Conn) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = fmt.Errorf("read event: %w", err)
		c.state.Gone()
	}
	c.follow()
}

// next returns the next input that waits. The caller must hold mu.
func (c *Conn) next() (in protocol.Input, ok bool) {
	if in, ok = first(&c.state.Inputs); !ok && len(c.rest) > 0 {
		n := min(len(c.rest), c.state.in.frame())
		in, ok = protocol.Input{Audio: true, PCM: c.rest[:n]}, true
		c.rest = c.rest[n:]
	}
	return in, ok
}

func first[T any](list *[]T) (v T, ok bool) {
	if len(*list) == 0 {
		return v, false
	}
	v = (*list)[0]
	if *list = slices.Delete(*list, 0, 1); len(*list) == 0 {
		*list = nil // an idle connection holds no array
	}
	return v, true
}

// Receive returns the Start when the client has prepared its session.
func (c *Conn) Receive() (protocol.Input, error) {
	<-c.started
	c.mu.Lock()
	defer c.mu.Unlock()
	if in, ok := c.next(); ok {
		return in, nil
	}
	return protocol.Input{}, c.failed
}

// Notify sets the function to call when there may be an input; see [ws.Conn.Notify].
func (c *Conn) Notify(f func()) {
	c.hear.Store(&f)
	c.Nudge()
	if c.lostNow() { // there is no other turn
		go f()
	}
}

func (c *Conn) lostNow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed != nil
}

// CaughtUp is [ws.Conn.CaughtUp].
func (c *Conn) CaughtUp() time.Time {
	if c.lostNow() {
		return time.Time{}
	}
	return c.Conn.CaughtUp()
}

// TryReceive returns the next input. Audio is valid until the next call.
func (c *Conn) TryReceive() (protocol.Input, bool, error) {
	for {
		c.mu.Lock()
		in, ok := c.next()
		failed := c.failed
		c.mu.Unlock()
		switch {
		case ok:
			return in, true, nil
		case failed != nil:
			return protocol.Input{}, false, failed
		case !c.read() && !c.lostNow():
			return protocol.Input{}, false, nil
		}
	}
}

// flush writes the events that wait. Without wait it never waits for the network: another goroutine then writes.
func (c *Conn) flush(wait bool) {
	if wait {
		c.writing.Lock()
	} else if !c.Conn.Ready() || !c.writing.TryLock() {
		c.flushLater()
		return
	}
	err := c.drain(wait)
	c.writing.Unlock()
	if err != nil {
		c.Abort()
	}
}

func (c *Conn) flushLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	unsent := 0
	for _, e := range c.state.Events {
		unsent += len(e)
	}
	switch {
	case unsent > maxUnsent:
		c.state.Events = nil
		go c.Abort()
	case !c.flushing && unsent > 0:
		c.flushing = true
		go func() {
			c.flush(true)
			c.mu.Lock()
			c.flushing = false
			c.mu.Unlock()
		}()
	}
}

// drain writes the events that wait. The caller must hold writing.
func (c *Conn) drain(wait bool) error {
	for wait || c.Conn.Ready() {
		c.mu.Lock()
		e, ok := first(&c.state.Events)
		c.mu.Unlock()
		if !ok {
			return nil
		}
		if err := c.Write(websocket.MessageText, e); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	c.flushLater()
	return nil
}

// Ready is [ws.Conn.Ready]; it is false while events wait.
func (c *Conn) Ready() bool {
	c.mu.Lock()
	waiting := len(c.state.Events) > 0 || c.flushing
	c.mu.Unlock()
	return !waiting && c.Conn.Ready()
}

// WriteText sends the events for a message of the session.
func (c *Conn) WriteText(message []byte) error {
	m, err := protocol.ParseServer(message)
	if err != nil {
		return fmt.Errorf("read the session's message: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	c.state.Take(time.Now(), m)
	c.follow()
	waiting := len(c.state.Inputs) > 0
	c.mu.Unlock()
	err = c.drain(true)
	if waiting {
		c.Nudge()
	}
	return err
}

// WriteAudio sends PCM of the current item. It allocates nothing.
func (c *Conn) WriteAudio(pcm []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	m := ws.NewMessage()
	c.mu.Lock()
	for len(c.state.Events) > 0 { // others may add some
		c.mu.Unlock()
		if err := c.drain(true); err != nil {
			return err
		}
		c.mu.Lock()
	}
	m.B = c.state.AppendAudio(m.B, time.Now(), pcm)
	c.mu.Unlock()
	if len(m.Payload()) == 0 {
		return nil
	}
	if err := c.Send(websocket.MessageText, m); err != nil {
		return fmt.Errorf("write audio: %w", err)
	}
	return nil
}

const maxReason = 123

// Close ends the conversation for a close code and a reason of voicegw.v1, and waits a few seconds for the client.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	c.mu.Lock()
	code, reason = c.state.Close(code, reason)
	c.follow()
	c.mu.Unlock()
	c.flush(true)
	c.timer.Stop()
	if err := c.Conn.Close(code, reason[:min(len(reason), maxReason)]); err != nil {
		return fmt.Errorf("close websocket: %w", err)
	}
	return nil
}

// Abort drops the connection without a close frame.
func (c *Conn) Abort() {
	c.timer.Stop()
	_ = c.CloseNow() // it may be closed already
}

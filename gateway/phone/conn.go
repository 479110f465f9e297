package phone

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/prompts"
	"voicegw/protocol"
)

// Conn is a call: a carrier's media stream that a session talks to as to any client (session.Client). It sends audio
// at the pace of the call, reports how much the caller has heard, and turns keys into text or approvals. A call cannot be
// resumed: once the line is gone, the user has hung up. But a gateway that drains can move it to another one.
//
// One goroutine receives; the other methods may be called concurrently.
type Conn struct {
	*ws.Conn
	server *Server
	stream stream

	// Fixed after Receive.
	call   call
	format format

	// Owned by the receiving goroutine.
	event event
	pcm   []byte
	err   error // of the line; reported after the end of the session's input

	spoke atomic.Bool // audio came since the last KeepAlive

	mu       sync.Mutex // guards the following fields
	player   player
	encoded  []byte
	frame    []byte
	pace     *time.Timer // calls send
	armed    bool
	clearing bool      // a clear waits for the network
	stuck    time.Time // since when the network takes nothing; zero if it does
	inputs   []protocol.ClientMessage
	keys     keypad
	seq      int64 // of the last message from the session
	begun    bool  // the session has started
	session  string
	token    string               // resumes the session
	heard    protocol.ResumeAudio // the newest item that the caller has heard at least in part
	stopped  bool                 // the carrier has ended the stream
	transfer string
	over     bool
	broken   error // why the gateway has closed the line; nil if it has not
	silent   int   // calls of KeepAlive in a row without audio from the carrier
	stalled  int   // the same without the marks that are due

	hungUp chan struct{} // closed at the end of the call, after the hang-up or transfer
	finish sync.Once
}

// Bounds of a call's stream.
const (
	maxSilent = 3               // calls of KeepAlive, every 5 s, without audio, which a carrier also sends in silence
	maxStall  = 3               // the same without the marks that are due
	stuckTime = 5 * time.Second // in which the network takes nothing
	maxInputs = 256             // that wait for the session
	maxFirst  = 20              // messages before the start of the call
)

var (
	errStart  = errors.New("the stream did not begin with the start of a call")
	errTicket = errors.New("the ticket belongs to another call")
)

// Receive waits for the start of the call, which becomes session.start with the ticket.
func (c *Conn) Receive() (protocol.Input, error) {
	for range maxFirst {
		typ, data, err := c.Read()
		if err != nil {
			return protocol.Input{}, fmt.Errorf("read stream: %w", err)
		}
		if err := c.stream.read(typ, data, &c.event); err != nil {
			return protocol.Input{Mistake: mistake(err)}, nil
		}
		if c.event.kind == started {
			resume := resumeOf(c.event.parameters)
			c.start(resume)
			set := c.server.settings()
			return protocol.Input{Message: &protocol.Start{Ticket: c.event.parameters[ticketParameter], Resume: resume,
				InputRate: Rate, OutputRate: Rate,
				Client: &protocol.ClientInfo{Name: c.call.carrier},
				Extra: &protocol.StartExtra{Notice: set.Announcement, Keypad: set.KeyApproval,
					Transfers: slices.Sorted(maps.Keys(set.Transfers))}}}, nil
		}
	}
	return protocol.Input{Mistake: mistake(errStart)}, nil
}

// resumeOf returns the session that a moved call resumes; nil for a new call.
func resumeOf(parameters map[string]string) *protocol.Resume {
	if parameters[sessionParameter] == "" {
		return nil
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(parameters[name], 10, 64)
		return min(max(n, 0), 1<<50) // a wrong one at most repeats words
	}
	r := &protocol.Resume{SessionID: parameters[sessionParameter], Token: parameters[tokenParameter], LastSeq: number(seqParameter)}
	if item := parameters[itemParameter]; item != "" {
		r.Audio = &protocol.ResumeAudio{ItemID: item, ReceivedMS: number(heardParameter)}
	}
	return r
}

func (c *Conn) start(resume *protocol.Resume) {
	c.call, c.format = c.event.call, c.event.format
	c.mu.Lock()
	defer c.mu.Unlock()
	if resume != nil && resume.Audio != nil {
		c.heard = *resume.Audio // until it hears more
	}
	c.player.width, c.player.silence = c.format.width, c.format.silence
	c.keys.approve = c.server.settings().KeyApproval
}

func mistake(err error) *protocol.MessageError {
	return &protocol.MessageError{Code: protocol.CodeInvalidMessage, Message: err.Error()}
}

// TryReceive returns the next input without waiting, as [protocol.Conn.TryReceive] does.
func (c *Conn) TryReceive() (protocol.Input, bool, error) {
	for {
		m, err := c.nextInput()
		if m != nil {
			return protocol.Input{Message: m}, true, nil
		}
		if c.err != nil {
			return protocol.Input{}, false, c.err
		}
		var typ websocket.MessageType
		var data []byte
		var ok bool
		if err == nil {
			typ, data, ok, err = c.TryRead()
		}
		if err != nil {
			c.lose(err)
			continue
		}
		if !ok {
			return protocol.Input{}, false, nil
		}
		if err := c.stream.read(typ, data, &c.event); err != nil {
			return protocol.Input{Mistake: mistake(err)}, true, nil
		}
		if c.event.kind == spoke {
			c.spoke.Store(true)
			c.pcm = c.format.decode(c.pcm[:0], c.event.audio)
			return protocol.Input{Audio: true, PCM: c.pcm}, true, nil
		}
		c.take()
	}
}

// take handles an event of the carrier other than audio.
func (c *Conn) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.event.kind {
	case pressed:
		c.press(c.event.key)
	case marked:
		reports, err := c.player.returned(c.event.gen, c.event.mark, time.Now())
		for _, r := range reports {
			c.keys.played(r)
			c.playback(r)
		}
		if err != nil {
			c.fail(err)
		}
	case stopped:
		c.stopped = true
		c.input(&protocol.End{})
	}
}

// nextInput returns the next message for the session, or, without one, the error that broke the line.
func (c *Conn) nextInput() (protocol.ClientMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inputs) == 0 {
		return nil, c.broken
	}
	m := c.inputs[0]
	c.inputs = c.inputs[1:]
	return m, nil
}

// lose takes the error that ends reading.
func (c *Conn) lose(err error) {
	c.err = fmt.Errorf("read stream: %w", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case protocol.Flooded(err):
		c.fail(err)
	case !protocol.TooBig(err): // the session knows these two
		c.input(&protocol.End{})
	}
}

// input queues a message for the session. The caller must hold mu.
func (c *Conn) input(m protocol.ClientMessage) {
	if len(c.inputs) < maxInputs {
		c.inputs = append(c.inputs, m)
		c.Nudge()
	}
}

// playback sends the session a playback report. The caller must hold mu.
func (c *Conn) playback(r protocol.Playback) {
	r.Seq = c.seq
	c.heard = protocol.ResumeAudio{ItemID: r.ItemID, ReceivedMS: r.PlayedMS}
	c.input(&r)
}

// press takes a key. The caller must hold mu.
func (c *Conn) press(key byte) {
	answer, digits := c.keys.press(key)
	switch {
	case answer != nil:
		c.server.log.Info("a caller answered by key", "call", c.call.id, "approved", answer.Approved)
		c.input(answer)
	case digits != "":
		c.input(&protocol.InputText{Text: prompts.KeysPressed(digits)})
	case c.keys.timer == nil:
		c.keys.timer = time.AfterFunc(keyPause, c.keyed)
	default:
		c.keys.timer.Reset(keyPause)
	}
}

// keyed sends the session the pressed keys after a pause.
func (c *Conn) keyed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if digits := c.keys.entered(); digits != "" && !c.over {
		c.input(&protocol.InputText{Text: prompts.KeysPressed(digits)})
	}
}

// WriteAudio queues audio of the current item. It never fails, because a broken line ends the input.
func (c *Conn) WriteAudio(pcm []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encoded = c.format.encode(c.encoded[:0], pcm)
	if err := c.player.push(c.encoded); err != nil {
		c.fail(err)
		return nil
	}
	c.send()
	return nil
}

// Ready reports true: WriteAudio never waits.
func (c *Conn) Ready() bool { return true }

// WriteText takes a message of the session.
func (c *Conn) WriteText(message []byte) error {
	m, err := protocol.ParseServer(message)
	if err != nil {
		return fmt.Errorf("read the session's message: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq = max(c.seq, protocol.HeaderOf(m).Seq)
	switch m := m.(type) {
	case *protocol.SessionStarted:
		if m.ConversationID != conversationOf(c.call.carrier, c.call.id) {
			c.fail(errTicket)
			return nil
		}
		c.begun, c.session, c.token = true, m.SessionID, m.ResumeToken
	case *protocol.AudioStart:
		c.player.begin(m.ItemID)
	case *protocol.AudioEnd:
		if at := c.player.end(m.ItemID); at != nil {
			c.write(c.stream.appendMark, at.number)
		}
		c.send()
	case *protocol.AudioFlush:
		c.flush(m.ItemID)
	case *protocol.ConfirmationRequest:
		item, from := c.player.newest()
		c.keys.ask(m.Token, item, from)
	case *protocol.ConfirmationEnded:
		c.keys.forget(m.Token)
	case *protocol.CallTransfer:
		c.transfer = m.To
	}
	return nil
}

// flush silences an item. The caller must hold mu.
func (c *Conn) flush(item string) {
	reports, clear := c.player.flush(item, time.Now())
	for _, r := range reports {
		c.playback(r)
	}
	c.clearing = c.clearing || clear
	c.send()
}

// send sends the audio that is due and arms the timer for the rest. The caller must hold mu.
func (c *Conn) send() {
	now := time.Now()
	switch {
	case c.over || c.broken != nil:
		return
	case !c.Conn.Ready():
		if c.stuck.IsZero() {
			c.stuck = now
		}
		if now.Sub(c.stuck) > stuckTime {
			c.fail(errors.New("the carrier reads nothing"))
			return
		}
		c.arm(batch)
		return
	}
	c.stuck = time.Time{}
	if c.clearing {
		c.clearing = false
		c.write(c.stream.appendClear, 0)
	}
	for {
		out, at, more, wait := c.player.take(c.frame[:0], now)
		c.frame = out
		if !more {
			if wait >= 0 {
				c.arm(wait)
			}
			return
		}
		m := ws.NewMessage()
		m.B = c.stream.appendMedia(m.B, out)
		c.sendMessage(c.format.frames, m)
		if at != nil {
			c.write(c.stream.appendMark, at.number)
		}
	}
}

// arm calls send after a while. The caller must hold mu.
func (c *Conn) arm(wait time.Duration) {
	switch {
	case c.armed:
		return
	case c.pace == nil:
		c.pace = time.AfterFunc(wait, c.paced)
	default:
		c.pace.Reset(wait)
	}
	c.armed = true
}

func (c *Conn) paced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	c.send()
}

// write sends a text message. The caller must hold mu.
func (c *Conn) write(appendTo func(dst []byte, gen, number uint32) []byte, number uint32) {
	m := ws.NewMessage()
	m.B = appendTo(m.B, c.player.gen, number)
	c.sendMessage(websocket.MessageText, m)
}

func (c *Conn) sendMessage(typ websocket.MessageType, m *ws.Message) {
	if err := c.Conn.Send(typ, m); err != nil {
		c.fail(err)
	}
}

// fail ends the call: the reading goroutine finds the line closed, which ends the session. The caller must hold mu.
func (c *Conn) fail(err error) {
	if !c.over && c.broken == nil {
		level := slog.LevelInfo
		if slices.Contains([]error{errQueue, errMarks, errTicket}, err) {
			level = slog.LevelWarn
		}
		c.server.log.Log(c.server.ctx(), level, "a call broke off", "call", c.call.id, "carrier", c.call.carrier, "error", err)
	}
	c.broken = cmp.Or(c.broken, err)
	_ = c.CloseNow() // it may already be closed
}

// KeepAlive pings the carrier and closes a line that is silent or stalled, see [ws.Conn.KeepAlive]. The session then
// ends as if the caller had hung up, because a call cannot be resumed.
func (c *Conn) KeepAlive(pingAfter, lostAfter int) bool {
	alive := c.Conn.KeepAlive(pingAfter, lostAfter)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent, c.stalled = c.silent+1, c.stalled+1
	if c.spoke.Swap(false) || !c.begun {
		c.silent = 0
	}
	if !c.player.stalled {
		c.stalled = 0
	}
	switch {
	case !alive:
		c.fail(errors.New("the carrier does not answer"))
	case c.silent >= maxSilent:
		c.fail(errors.New("the carrier sends no audio"))
	case c.stalled > maxStall:
		c.fail(errors.New("the carrier plays nothing"))
	}
	return true
}

// hangUpTime is how long Close waits for the hang-up or transfer: if the stream closes first, the carrier follows the
// rest of its instructions.
const hangUpTime = 1500 * time.Millisecond

// Follows reports whether the call could move to another gateway with its session. Otherwise it stays until it ends.
func (c *Conn) Follows() bool { return c.server.opts.Others != nil && c.server.opts.Others() }

// Close ends, transfers or moves the call, and closes the stream.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	c.end(code == protocol.CloseMoving)
	select {
	case <-c.hungUp:
	case <-time.After(hangUpTime):
	}
	if err := c.Conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		return fmt.Errorf("close stream (%d %s): %w", code, reason, err)
	}
	return nil
}

// Abort is Close without waiting.
func (c *Conn) Abort() {
	c.end(false)
	_ = c.CloseNow() // it may already be closed
}

// end stops the audio and has the carrier end, transfer or move the call, once.
func (c *Conn) end(moves bool) {
	c.finish.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		how := ending{begun: c.begun, stopped: c.stopped, transfer: c.transfer}
		if moves && c.token != "" {
			how.resume = c.leave()
		}
		c.over = true
		if c.pace != nil {
			c.pace.Stop()
		}
		c.keys.stop()
		c.server.release(c.call, how, c.hungUp)
	})
}

// leave silences the line and returns the parameters with which another gateway resumes the session. The caller must
// hold mu.
func (c *Conn) leave() map[string]string {
	if len(c.player.items) > 0 {
		c.flush(c.player.items[0].id)
	}
	return map[string]string{sessionParameter: c.session, tokenParameter: c.token, seqParameter: strconv.FormatInt(c.seq, 10),
		itemParameter: c.heard.ItemID, heardParameter: strconv.FormatInt(c.heard.ReceivedMS, 10)}
}

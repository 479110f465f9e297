package talk

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"voicegw/protocol"
)

// Run holds one conversation and returns when it is over. When ctx ends, it hangs
// up politely and returns the context's cause; that may take 3 s.
//
// The error wraps ErrOptions, ErrConnect, ErrLost, ErrUnanswered or ErrProtocol,
// or is the context's. The report says what was reached in every case. Any number
// of goroutines may call Run at once.
func Run(ctx context.Context, options Options) (Report, error) {
	o, err := options.withDefaults()
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	dialCtx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	conn, err := protocol.Dial(dialCtx, o.URL, protocol.DialOptions{})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return Report{}, cause
		}
		return Report{}, fmt.Errorf("%w at %s: %w", ErrConnect, o.URL, err)
	}
	r := &runner{conn: conn}
	r.watchdog = time.AfterFunc(writeTime, conn.Abort)
	r.conversation, err = newConversation(o, began, r.sendMessage, r.sendAudio)
	if err != nil {
		r.watchdog.Stop()
		conn.Abort()
		return Report{}, err
	}
	return r.run(ctx)
}

// writeTime is how long the gateway may take nothing of what it is sent.
const writeTime = 10 * time.Second

// runner lets a conversation happen on a connection. All is owned by the goroutine
// that called Run, but for the connection, which listen reads.
type runner struct {
	conn         *protocol.Conn
	conversation *conversation
	// watchdog aborts the connection when the loop stands still: only a write that
	// the gateway does not take can do that.
	watchdog *time.Timer
	// writeErr ends the conversation, but not before brokenAt plus closeTime: the
	// reason why the gateway closed may still be on its way.
	writeErr error
	brokenAt time.Time
}

const closeTime = time.Second

// arrival is a frame, or the error after the last one, and when it came.
type arrival struct {
	at    time.Time
	frame protocol.Frame
	err   error
}

func (r *runner) run(ctx context.Context) (Report, error) {
	c := r.conversation
	// From listen to this loop; nobody closes it. Unbuffered: the socket holds what
	// the loop has not taken.
	arrivals := make(chan arrival)
	done := make(chan struct{})
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		r.listen(arrivals, done)
	}()

	c.open()
	ticker := time.NewTicker(frameLength)
	defer ticker.Stop()
	hangUp := ctx.Done()
	answers := c.options.Answers
	for !c.over() {
		select {
		case a := <-arrivals:
			r.take(a)
		case now := <-ticker.C:
			c.tick(now)
			if r.writeErr != nil && now.Sub(r.brokenAt) >= closeTime {
				c.lost(now, r.writeErr)
			}
		case line, ok := <-answers:
			if !ok {
				answers = nil
				c.nobodyTypes(time.Now())
				break
			}
			c.typed(time.Now(), line)
		case <-hangUp:
			hangUp = nil
			c.err = context.Cause(ctx)
			c.leave(time.Now())
		}
		r.watchdog.Reset(writeTime)
	}
	r.watchdog.Stop()

	// What Close reports is that the gateway was faster.
	close(done)
	_ = r.conn.Close(protocol.CloseDone, "")
	r.conn.Abort()
	<-listening
	return c.result()
}

// listen hands on what comes until the connection ends or done is closed.
func (r *runner) listen(arrivals chan<- arrival, done <-chan struct{}) {
	for {
		frame, err := r.conn.Read()
		a := arrival{at: time.Now(), frame: frame, err: err}
		a.frame.Data = bytes.Clone(frame.Data)
		select {
		case arrivals <- a:
		case <-done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (r *runner) take(a arrival) {
	c := r.conversation
	switch {
	case a.err != nil:
		c.lost(a.at, a.err)
	case a.frame.Audio:
		c.hearAudio(a.at, a.frame.Data)
	default:
		m, err := protocol.ParseServer(a.frame.Data)
		if err != nil {
			c.fail(a.at, fmt.Errorf("%w: %w", ErrProtocol, err))
			return
		}
		c.hear(a.at, m)
	}
}

func (r *runner) sendMessage(m protocol.ClientMessage) {
	data, err := protocol.EncodeClient(m)
	if err == nil && r.writeErr == nil {
		err = r.conn.WriteText(data)
	}
	r.broke(err)
}

func (r *runner) sendAudio(frame []byte) {
	if r.writeErr == nil {
		r.broke(r.conn.WriteAudio(frame))
	}
}

func (r *runner) broke(err error) {
	if err != nil && r.writeErr == nil {
		r.writeErr, r.brokenAt = err, time.Now()
	}
}

package voice

import (
	"context"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

const (
	// writeTime limits how long the gateway may stop reading.
	writeTime  = 15 * time.Second
	watchEvery = time.Second
	idle       = time.Second
)

// Conn is a connection of the client protocol; see protocol.Conn.
type Conn interface {
	Read() (protocol.Frame, error)
	WriteAudio(pcm []byte) error
	WriteText(message []byte) error
	Abort()
}

// Link connects a conversation to the gateway.
type Link struct {
	Conn Conn
	// Dial opens another connection. Only conversations with Options.Resume need it. It must return soon after ctx
	// ends. It should set protocol.DialOptions.Back: without it, a gateway that accepts no new sessions refuses with
	// 503.
	Dial func(ctx context.Context) (Conn, error)
	// Answers delivers typed answers to tools' questions; may be nil. Closing it means that no more lines follow; Run
	// does not wait for that.
	Answers <-chan string
	// Sent, if set, is called for each frame written. lag is this program's delay, block the network's.
	Sent func(lag, block time.Duration)
}

// Run runs a conversation on a connection and its replacements. It returns when the conversation is over and all its
// goroutines have ended. When ctx ends, it sends session.end, which takes at most GoodbyeTime. Calls of the observer do
// not overlap.
func (c *Conversation) Run(ctx context.Context, link Link) {
	r := &runner{Link: link, wake: make(chan struct{}, 1), dialled: make(chan dialled), stopped: make(chan struct{}), c: c}
	r.run(ctx)
}

type runner struct {
	// Fixed after Run has made it.
	Link
	wake    chan struct{} // from a reader to run; capacity 1, never closed
	dialled chan dialled  // from a dialler to run; never closed
	stopped chan struct{} // closed by run when it stops reading channels
	helpers sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	c     *Conversation
	armed time.Time // when run checks again without a wake; zero for never
	gen   int       // generation of the current connection
	// replaced is the generation of the connection replaced by the newest one, or 0.
	replaced int

	// Owned by run.
	old  []Conn // replaced connections that may still be open
	out  []protocol.ClientMessage
	free time.Time // when the last write ended
	// watch aborts the connection when a write stalls. run resets it regularly.
	watch   *time.Timer
	watched time.Time
}

func (r *runner) run(ctx context.Context) {
	dialCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.read(r.Conn)
	r.watch = time.AfterFunc(writeTime, r.Conn.Abort)
	timer := time.NewTimer(0)
	defer timer.Stop()
	hangUp, answers := ctx.Done(), r.Answers
	for {
		next, over := r.turn()
		r.applyRequests(dialCtx)
		if over {
			break
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-r.wake:
		case d := <-r.dialled:
			r.change(d)
		case line, ok := <-answers:
			if ok {
				r.locked(func(now time.Time) { r.c.answer(now, line) })
				break
			}
			answers = nil
			r.locked(r.c.questions.letExpire)
		case <-hangUp:
			hangUp = nil
			r.locked(r.c.Leave)
		}
	}
	r.watch.Stop()
	cancel()
	close(r.stopped)
	for _, conn := range append(r.old, r.Conn) {
		conn.Abort()
	}
	r.helpers.Wait()
	r.c.player.close(time.Now())
}

func (r *runner) locked(do func(now time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(time.Now())
}

func (r *runner) turn() (next time.Time, over bool) {
	for {
		r.mu.Lock()
		now := time.Now()
		r.c.tick(now)
		r.out = r.c.conn.take(r.out[:0])
		pcm, due, ok := r.c.frame(now)
		more := r.c.conn.sendable()
		next = r.c.wake(now)
		if longest := now.Add(idle); next.IsZero() || next.After(longest) {
			next = longest
		}
		r.armed = next
		over = r.c.phase == phaseOver
		r.mu.Unlock()
		if now.Sub(r.watched) >= watchEvery {
			r.watched = now
			r.watch.Reset(writeTime)
		}
		if err := r.write(pcm, due, ok); err != nil {
			// The reader gets the reason: the gateway's last messages may not have arrived yet.
			r.free = time.Now()
		}
		if over || !ok && !more {
			return next, over
		}
	}
}

func (r *runner) write(pcm []byte, due time.Time, frame bool) error {
	for i, m := range r.out {
		r.out[i] = nil
		data, err := protocol.EncodeClient(m)
		if err != nil {
			return err
		}
		if err := r.Conn.WriteText(data); err != nil {
			return err
		}
		r.free = time.Now()
	}
	if !frame {
		return nil
	}
	began := time.Now()
	// The network caused this frame's delay, not this program.
	lag := began.Sub(later(due, r.free))
	err := r.Conn.WriteAudio(pcm)
	r.free = time.Now()
	if r.Sent != nil {
		r.Sent(lag, r.free.Sub(began))
	}
	return err
}

// read handles a connection's data until it ends, on its own goroutine. Data of a replaced connection is dropped.
func (r *runner) read(conn Conn) {
	r.mu.Lock()
	r.gen++
	gen := r.gen
	r.mu.Unlock()
	r.helpers.Go(func() { r.reader(conn, gen) })
}

func (r *runner) reader(conn Conn, gen int) {
	for {
		f, err := conn.Read()
		now := time.Now()
		r.mu.Lock()
		switch {
		case gen != r.gen:
			if err != nil && gen == r.replaced {
				r.c.conn.displaced(now, err)
			}
		case err != nil:
			r.c.lost(now, err)
		case f.Audio:
			r.c.hearAudio(now, f.Data)
		default:
			r.c.hearText(now, f.Data)
		}
		// Wake the writer if something may be due earlier than it expects.
		at := r.c.wake(now)
		due := r.c.news || r.c.conn.sendable() || r.c.phase == phaseOver || !at.IsZero() && at.Before(r.armed)
		r.c.news = false
		r.mu.Unlock()
		if due {
			select {
			case r.wake <- struct{}{}:
			default: // a wake is pending
			}
		}
		if err != nil {
			return
		}
	}
}

type dialled struct {
	conn Conn // nil after an error
	err  error
}

type closer interface {
	// Reset sends RST without a close frame, as a failing network does.
	Reset()
	// GoAway closes like a browser leaving the page.
	GoAway()
}

func (r *runner) applyRequests(ctx context.Context) {
	r.mu.Lock()
	requests := r.c.conn.requests
	r.c.conn.requests = nil
	for _, request := range requests {
		if request != requestDial {
			r.gen++ // ignore what its reader still delivers
		}
	}
	r.mu.Unlock()
	for _, request := range requests {
		switch request {
		case requestDial:
			r.helpers.Go(func() { r.dial(ctx) })
		case requestReset:
			if conn, ok := r.Conn.(closer); ok {
				conn.Reset()
			}
			r.Conn.Abort()
		case requestGoAway:
			conn := r.Conn
			r.helpers.Go(func() { // without waiting for the gateway
				if conn, ok := conn.(closer); ok {
					conn.GoAway()
				}
				conn.Abort()
			})
		}
	}
}

func (r *runner) dial(ctx context.Context) {
	conn, err := r.Dial(ctx)
	select {
	case r.dialled <- dialled{conn, err}:
	case <-r.stopped:
		if err == nil {
			conn.Abort()
		}
	}
}

func (r *runner) change(d dialled) {
	if d.err != nil {
		r.locked(func(now time.Time) { r.c.conn.dialFailed(now, d.err) })
		return
	}
	wanted, replaces := false, false
	r.locked(func(now time.Time) {
		if wanted, replaces = r.c.dialled(now); replaces {
			r.replaced = r.gen
		}
		if wanted {
			r.gen++ // data of the previous one is ignored
		}
	})
	if !wanted {
		d.conn.Abort()
		return
	}
	if replaces {
		r.old = append(r.old, r.Conn) // the gateway closes it
	} else {
		r.Conn.Abort()
	}
	if len(r.old) > maxOld {
		r.old[0].Abort()
		r.old = slices.Delete(r.old, 0, 1)
	}
	r.Conn = d.conn
	r.free = time.Now()
	r.watch.Stop()
	r.watch, r.watched = time.AfterFunc(writeTime, d.conn.Abort), r.free
	r.read(d.conn)
}

// maxOld limits replaced connections that the gateway has not closed yet.
const maxOld = 4

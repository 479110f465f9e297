package voice

import (
	"context"
	"sync"
	"time"

	"voicegw/protocol"
)

const (
	// writeTime limits how long the gateway may stop reading.
	writeTime = 15 * time.Second
	// watchEvery is the interval at which the write watchdog is reset.
	watchEvery = time.Second
	// idle limits run's sleep.
	idle = time.Second
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
	// Dial opens another connection. Only conversations with Options.Return need it. It must return soon after ctx
	// ends. It should set protocol.DialOptions.Back: without it, a gateway that accepts no new sessions refuses with
	// 503.
	Dial func(ctx context.Context) (Conn, error)
	// Answers delivers typed answers to tools' questions; may be nil. Closing it means that no more lines follow; Run
	// does not wait for that.
	Answers <-chan string
	// Sent, if set, is called for each frame written. late is this program's delay, the other duration the network's.
	Sent func(lag, block time.Duration)
}

// Run runs a conversation on a connection and its replacements. It returns when the conversation is over and all its
// goroutines have ended. When ctx ends, it sends session.end, which takes at most GoodbyeTime. Calls of the observer do
// not overlap.
func (c *Conversation) Run(ctx context.Context, link Link) {
	l := &line{Link: link, wake: make(chan struct{}, 1), dialled: make(chan dialled), stopped: make(chan struct{}), talk: c}
	l.run(ctx)
}

// line is a running conversation.
type line struct {
	// Fixed after Run has made it.
	Link
	wake    chan struct{} // from a reader to run; capacity 1, never closed
	dialled chan dialled  // from a dialler to run; never closed
	stopped chan struct{} // closed by run when it stops reading channels
	helpers sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	talk  *Conversation
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

func (l *line) run(ctx context.Context) {
	dialCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	l.read(l.Conn)
	l.watch = time.AfterFunc(writeTime, l.Conn.Abort)
	timer := time.NewTimer(0)
	defer timer.Stop()
	hangUp, answers := ctx.Done(), l.Answers
	for {
		next, over := l.turn()
		l.applyRequests(dialCtx)
		if over {
			break
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-l.wake:
		case d := <-l.dialled:
			l.change(d)
		case line, ok := <-answers:
			if ok {
				l.locked(func(now time.Time) { l.talk.Answer(now, line) })
				break
			}
			answers = nil
			l.locked(l.talk.LetExpire)
		case <-hangUp:
			hangUp = nil
			l.locked(l.talk.Leave)
		}
	}
	l.watch.Stop()
	cancel()
	close(l.stopped)
	for _, conn := range append(l.old, l.Conn) {
		conn.Abort()
	}
	l.helpers.Wait()
	l.talk.Finish(time.Now())
}

func (l *line) locked(do func(now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(time.Now())
}

// turn performs due actions and returns when to check again.
func (l *line) turn() (next time.Time, over bool) {
	for {
		l.mu.Lock()
		now := time.Now()
		l.talk.tick(now)
		l.out = l.talk.take(l.out[:0])
		pcm, due, ok := l.talk.frame(now)
		more := l.talk.sendable()
		next = l.talk.wake(now)
		if longest := now.Add(idle); next.IsZero() || next.After(longest) {
			next = longest
		}
		l.armed = next
		over = l.talk.Over()
		l.mu.Unlock()
		l.resetWatch(now)
		err := l.write(pcm, due, ok)
		if err != nil {
			// The reader gets the reason: the gateway's last messages may not have arrived yet.
			l.free = time.Now()
		}
		if over || !ok && !more {
			return next, over
		}
	}
}

// write sends the due messages and then the frame, if any.
func (l *line) write(pcm []byte, due time.Time, frame bool) error {
	for i, m := range l.out {
		l.out[i] = nil
		data, err := protocol.EncodeClient(m)
		if err != nil {
			return err
		}
		if err := l.Conn.WriteText(data); err != nil {
			return err
		}
		l.free = time.Now()
	}
	if !frame {
		return nil
	}
	began := time.Now()
	// The network caused this frame's delay, not this program.
	lag := began.Sub(later(due, l.free))
	err := l.Conn.WriteAudio(pcm)
	l.free = time.Now()
	if l.Sent != nil {
		l.Sent(lag, l.free.Sub(began))
	}
	return err
}

// resetWatch resets the write watchdog.
func (l *line) resetWatch(now time.Time) {
	if now.Sub(l.watched) >= watchEvery {
		l.watched = now
		l.watch.Reset(writeTime)
	}
}

// read handles a connection's data until it ends, on its own goroutine. Data of a replaced connection is dropped.
func (l *line) read(conn Conn) {
	l.mu.Lock()
	l.gen++
	gen := l.gen
	l.mu.Unlock()
	l.helpers.Go(func() { l.reader(conn, gen) })
}

func (l *line) reader(conn Conn, gen int) {
	for {
		f, err := conn.Read()
		now := time.Now()
		l.mu.Lock()
		switch {
		case gen != l.gen:
			if err != nil && gen == l.replaced {
				l.talk.displaced(now, err)
			}
		case err != nil:
			l.talk.lost(now, err)
		case f.Audio:
			l.talk.hearAudio(now, f.Data)
		default:
			l.talk.hearText(now, f.Data)
		}
		// Wake the writer if something may be due earlier than it
		// expects.
		at := l.talk.wake(now)
		look := l.talk.news || l.talk.sendable() || l.talk.Over() || !at.IsZero() && at.Before(l.armed)
		l.talk.news = false
		l.mu.Unlock()
		if look {
			select {
			case l.wake <- struct{}{}:
			default: // it has not looked since the last time
			}
		}
		if err != nil {
			return
		}
	}
}

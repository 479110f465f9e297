package voice

import (
	"context"
	"sync"
	"time"

	"voicegw/protocol"
)

const (
	// writeTime is how long the gateway may read nothing.
	writeTime = 15 * time.Second
	// watchEvery is how often the watch over the writes is wound up.
	watchEvery = time.Second
	// idle is how long run sleeps at most.
	idle = time.Second
)

// Conn is a connection of the client protocol; see protocol.Conn.
type Conn interface {
	Read() (protocol.Frame, error)
	WriteAudio(pcm []byte) error
	WriteText(message []byte) error
	Abort()
}

// Link is how a conversation is carried.
type Link struct {
	Conn Conn
	// Dial opens another connection, for a conversation that comes back after a loss (Options.Return);
	// not needed for others. It must return soon after ctx has ended. It should set protocol.DialOptions.Back, or a
	// gateway that takes no new session may refuse it with 503.
	Dial func(ctx context.Context) (Conn, error)
	// Answers delivers the lines that a person types to answer tools' questions; may be nil. Closing
	// it means that nobody types any more; Run does not wait for that.
	Answers <-chan string
	// Sent, if set, is called for each frame that was written: how late it was handed to the
	// network by this program's fault, and how long the network took for it.
	Sent func(lag, block time.Duration)
}

// Run carries a conversation out on a connection, and on those that replace it, and returns when it is
// over and nothing of it is left. When ctx ends, it hangs up politely, which takes at most GoodbyeTime.
// The observer is called on this goroutine and on others that Run starts and waits for, one call at a
// time.
func (c *Conversation) Run(ctx context.Context, link Link) {
	l := &line{Link: link, wake: make(chan struct{}, 1), dialled: make(chan dialled), stopped: make(chan struct{}), talk: c}
	l.run(ctx)
}

// line is a conversation under way.
type line struct {
	// Fixed after Run has made it.
	Link
	wake    chan struct{} // from a reader to run: look again; capacity 1, nobody closes it
	dialled chan dialled  // from a dialler to run; nobody closes it
	stopped chan struct{} // closed by run when it looks at no channel any more
	helpers sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	talk  *Conversation
	armed time.Time // when run checks again without being woken; zero for never
	gen   int       // of the connection that counts
	// replaced is the connection that the newest one has replaced while it was open; 0 if there is no such connection.
	replaced int

	// Owned by run.
	old  []Conn // connections that were replaced while they were open
	out  []protocol.ClientMessage
	free time.Time // when the last write was over
	// watch aborts the connection when a write stands still, which run winds up now and
	// then.
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
		l.fulfil(dialCtx)
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
			l.locked(l.talk.NobodyAnswers)
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

// turn does what is due and returns when to look again.
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
		l.windUp(now)
		err := l.write(pcm, due, ok)
		if err != nil {
			// The reader learns why: what the gateway has said may still be on its way.
			l.free = time.Now()
		}
		if over || !ok && !more {
			return next, over
		}
	}
}

// write sends the messages that are due, and then the frame if there is one.
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
	// What the network made this frame wait is not this program's fault.
	lag := began.Sub(later(due, l.free))
	err := l.Conn.WriteAudio(pcm)
	l.free = time.Now()
	if l.Sent != nil {
		l.Sent(lag, l.free.Sub(began))
	}
	return err
}

// windUp keeps the watch from going off.
func (l *line) windUp(now time.Time) {
	if now.Sub(l.watched) >= watchEvery {
		l.watched = now
		l.watch.Reset(writeTime)
	}
}

// read takes what comes of a connection until it is over, on a goroutine of its own. What comes after
// another connection has replaced it is dropped.
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
		// The writer is woken where something may have become due, or is due sooner than it
		// believes.
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

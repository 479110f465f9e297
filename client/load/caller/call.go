package caller

import (
	"context"
	"sync"
	"time"

	"voicegw/client/load/measure"
	"voicegw/protocol"
)

const (
	// writeTime is how long the gateway may take nothing of what it is sent.
	writeTime = 15 * time.Second
	// watchEvery is how often the watch over the writes is wound up.
	watchEvery = time.Second
)

// Outcome is how a call has ended.
type Outcome int

// The outcomes.
const (
	// Done: the script was gone through, or the time is up, or the model has hung up.
	Done Outcome = iota
	// Broken: there was no session, or it ended when nobody wanted it.
	Broken
	// Stopped: the context has ended.
	Stopped
)

// Limit is when a call is over.
type Limit struct {
	// Until is when no further turn begins. Zero is after one pass through the script.
	Until time.Time
	// HangUp ends the call at Until, whatever is being said.
	HangUp bool
}

// end is when the call is over at the latest; zero for never.
func (l Limit) end() time.Time {
	switch {
	case l.Until.IsZero():
		return time.Time{}
	case l.HangUp:
		return l.Until
	default:
		return l.Until.Add(overtime)
	}
}

// Call holds one conversation. When ctx ends it hangs up politely, which takes some
// seconds at most.
func (k *Caller) Call(ctx context.Context, limit Limit) Outcome {
	k.calls++
	k.set.Collector.Add(measure.Calls, 1)
	t, err := k.begin(ctx)
	if err != nil {
		return k.refused(ctx, err)
	}
	conn, err := k.dial(ctx)
	if err != nil {
		return k.refused(ctx, err)
	}
	now := time.Now()
	l := &line{
		set: k.set, conn: conn, wake: make(chan struct{}, 1),
		talk: newConversation(k.set, k.session, k.calls, limit, t, k.silence, now),
	}
	k.set.Collector.Live(1)
	defer k.set.Collector.Live(-1)
	l.run(ctx)
	switch {
	case l.talk.done || l.talk.leftBy:
		return Done
	case ctx.Err() != nil:
		return Stopped
	default:
		return Broken
	}
}

// dial connects.
func (k *Caller) dial(ctx context.Context) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, k.set.ConnectTime)
	defer cancel()
	began := time.Now()
	var conn Conn
	var err error
	if k.set.Dial != nil {
		conn, err = k.set.Dial(ctx, k.set.URL)
	} else {
		conn, err = protocol.Dial(ctx, k.set.URL, protocol.DialOptions{Client: k.set.HTTP})
	}
	if err == nil {
		k.set.Collector.Record(measure.Connect, time.Since(began))
	}
	return conn, err
}

// refused notes a call that got no connection.
func (k *Caller) refused(ctx context.Context, err error) Outcome {
	if ctx.Err() != nil {
		return Stopped
	}
	c := k.set.Collector
	c.Add(measure.Refused, 1)
	c.Error("refused")
	c.Problem(measure.Problem{
		Session: k.session, Call: k.calls, AtMS: time.Since(k.set.Began).Milliseconds(), Kind: measure.KindRefused, What: err.Error(),
	})
	return Broken
}

// line lets a conversation happen on a connection.
type line struct {
	// Fixed after Call has made it.
	set  *Settings
	conn Conn
	wake chan struct{} // from the reader to run: look again; capacity 1, nobody closes it

	mu    sync.Mutex // guards the following fields
	talk  *conversation
	armed time.Time // when run looks again by itself; zero for never

	// Owned by run.
	out  []protocol.ClientMessage
	free time.Time // when the last write was over
	// watch aborts the connection when a write stands still, which run winds up now and
	// then.
	watch   *time.Timer
	watched time.Time
}

// run returns when the call is over and nothing of it is left.
func (l *line) run(ctx context.Context) {
	reading := make(chan struct{}) // closed by the reader
	go func() {
		defer close(reading)
		l.read()
	}()
	l.watch = time.AfterFunc(writeTime, l.conn.Abort)
	timer := time.NewTimer(0)
	defer timer.Stop()
	hangUp := ctx.Done()
	for {
		next, over := l.turn()
		if over {
			break
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-hangUp:
			hangUp = nil
			l.mu.Lock()
			l.talk.leave(time.Now())
			l.mu.Unlock()
		}
	}
	l.watch.Stop()
	l.conn.Abort()
	<-reading
	l.talk.finish(time.Now())
}

// idle is how long run sleeps at most.
const idle = time.Second

// turn does what is due and returns when to look again.
func (l *line) turn() (next time.Time, over bool) {
	for {
		l.mu.Lock()
		now := time.Now()
		l.talk.tick(now)
		l.out = append(l.out[:0], l.talk.out...)
		clear(l.talk.out)
		l.talk.out = l.talk.out[:0]
		pcm, due, ok := l.talk.frame(now)
		more := len(l.talk.out) > 0
		next = l.talk.wake(now)
		if longest := now.Add(idle); next.IsZero() || next.After(longest) {
			next = longest
		}
		l.armed = next
		over = l.talk.over()
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
		if err := l.conn.WriteText(data); err != nil {
			return err
		}
		l.free = time.Now()
	}
	if !frame {
		return nil
	}
	c := l.set.Collector
	began := time.Now()
	// What the network made this frame wait is not this program's fault.
	c.Record(measure.SendLag, began.Sub(later(due, l.free)))
	err := l.conn.WriteAudio(pcm)
	l.free = time.Now()
	c.Record(measure.SendBlock, l.free.Sub(began))
	c.Add(measure.FramesUp, 1)
	c.Add(measure.BytesUp, int64(len(pcm)))
	return err
}

// windUp keeps the watch from going off.
func (l *line) windUp(now time.Time) {
	if now.Sub(l.watched) >= watchEvery {
		l.watched = now
		l.watch.Reset(writeTime)
	}
}

// read takes what comes until the connection is over.
func (l *line) read() {
	for {
		f, err := l.conn.Read()
		now := time.Now()
		l.mu.Lock()
		switch {
		case err != nil:
			l.talk.lost(now, err)
		case f.Audio:
			l.talk.hearAudio(now, len(f.Data))
		default:
			l.hear(now, f.Data)
		}
		// The writer is woken where something may have become due, or is due sooner than it
		// believes.
		at := l.talk.wake(now)
		look := l.talk.news || len(l.talk.out) > 0 || l.talk.over() || !at.IsZero() && at.Before(l.armed)
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

// hear takes a text frame; the mutex is held.
func (l *line) hear(now time.Time, data []byte) {
	m, err := protocol.ParseServer(data)
	if err != nil {
		l.talk.problem(now, measure.KindProtocol, l.talk.cur, "a message that is none: %v", err)
		return
	}
	l.talk.hear(now, m)
}

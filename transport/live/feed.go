package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/internal/ws"
	"voicegw/prompts"
	"voicegw/transport"
)

const (
	feedEvery = 100 * time.Millisecond // the length of a piece of silence: that of the provider's own pieces
	// feedPatience is how late a client's audio may be: silence before it would delay the model's hearing until the end.
	feedPatience = 300 * time.Millisecond
	feedPause    = 2 * time.Second // so long a client that sends no audio counts as one that is late
	feedMost     = time.Second     // of silence at once after a delay of this process; the rest is lost to the model
)

// silence is the event with feedEvery of silence.
var silence = livewire.AppendAudio(nil, make([]byte, audio.Bytes(sampleRate, feedEvery)))

// feed sends the client's audio, and silence in its absence: also before its first and while it is muted. Without
// audio the model's time stands still: it answers nothing, and ends after about 30 s (see live.md).
type feed struct {
	// Fixed after start.
	c     *conn
	timer *time.Timer

	stopped atomic.Bool
	sent    atomic.Int64 // bytes

	mu    sync.Mutex // guards the following fields; held while audio is sent
	until time.Time  // when the audio sent so far will have been heard
	last  time.Time  // when the client last sent audio
}

func (f *feed) start(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c, f.until = c, time.Now()
	f.timer = time.AfterFunc(feedEvery, f.turn)
}

// stop does not wait for a running turn, which ends with the socket.
func (f *feed) stop() {
	f.stopped.Store(true)
	f.timer.Stop()
}

// seconds returns the length of the audio sent, rounded up: as the provider charges it.
func (f *feed) seconds() int64 {
	const second = sampleRate * audio.BytesPerSample
	return (f.sent.Load() + second - 1) / second
}

// audio sends the client's audio. It allocates nothing.
func (f *feed) audio(pcm []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for now := time.Now(); len(pcm) > 0; {
		n := min(len(pcm), maxAppend)
		m := ws.NewMessage()
		m.B = livewire.AppendAudio(m.B, pcm[:n])
		if err := f.c.ws.Send(websocket.MessageText, m); err != nil {
			return err //nolint:wrapcheck // Send classifies it
		}
		f.last = now
		f.add(n, now)
		pcm = pcm[n:]
	}
	return nil
}

// maxAppend bounds the PCM of one event, in bytes; the provider's limit is not documented.
const maxAppend = 1 << 20

func (f *feed) add(n int, now time.Time) {
	f.sent.Add(int64(n))
	if least := now.Add(-feedMost); f.until.Before(least) {
		f.until = least
	}
	f.until = f.until.Add(audio.Duration(sampleRate, n))
}

// pause takes the client's announcement that no audio follows.
func (f *feed) pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = time.Time{}
}

// turn sends the silence that is due.
func (f *feed) turn() {
	if !f.mu.TryLock() { // the client's audio is being sent, or Close stops the feed
		time.AfterFunc(feedEvery, f.turn)
		return
	}
	defer f.mu.Unlock()
	if f.stopped.Load() {
		return
	}
	now := time.Now()
	if at := f.c.heard.Load(); at > 0 && now.Sub(time.Unix(0, at)) > silentTime {
		f.c.end(f.c.t.Fault("recv", transport.KindRetry, "silent", errors.New("the provider has sent nothing for too long")))
		return
	}
	patience := time.Duration(0)
	if now.Sub(f.last) < feedPause {
		patience = feedPatience
	}
	if now.Sub(f.until) >= patience {
		f.fill(now)
	}
	f.timer.Reset(max(feedEvery, f.until.Add(patience+feedEvery).Sub(now)))
}

func (f *feed) fill(now time.Time) {
	f.add(0, now)
	for now.Sub(f.until) >= feedEvery && f.c.ws.Ready() {
		m := ws.NewMessage()
		m.B = append(m.B, silence...)
		if f.c.ws.Send(websocket.MessageText, m) != nil {
			return // the next read knows why
		}
		f.add(audio.Bytes(sampleRate, feedEvery), now)
	}
}

// Send implements transport.Conn.
func (c *conn) Send(ctx context.Context, cmd transport.Command) error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { c.end(c.t.Fault("send", transport.KindClosed, "", context.Cause(ctx))) })
		defer stop()
	}
	if in, ok := cmd.(*transport.AudioIn); ok && in != nil {
		return c.written(c.feed.audio(in.PCM))
	}
	return c.control(cmd)
}

func (c *conn) control(cmd transport.Command) error {
	switch cmd := cmd.(type) {
	case transport.AudioPause:
		c.feed.pause()
	case transport.UserText:
		if c.delegations.works(cmd.Text) {
			return nil // the caller asks again, and the answer will come
		}
		c.delegations.add("user", cmd.Text)
		c.post(userTyped(cmd.Text))
		return c.written(c.delegations.enter(cmd))
	case transport.AddItem:
		role, text := entry(cmd.Item)
		c.delegations.add(role, text)
		if role == "user" {
			c.post(userTyped(text))
		}
		who := map[string]string{"user": prompts.KnownUser, "assistant": prompts.KnownAssistant, "developer": prompts.KnownNote}[role]
		return c.written(c.delegations.say(livewire.ThinkingAppend, nil, false, prompts.Known(who, text)))
	case transport.Respond:
		if cmd.Instructions != "" {
			return c.written(c.delegations.say(livewire.InstructionsAppend, nil, false, cmd.Instructions))
		}
	case transport.PlayExact:
		return c.written(c.delegations.play(cmd.PCM))
	case transport.ToolResult:
		c.delegations.result(cmd)
	case transport.ActivityStart, transport.ActivityEnd, transport.Interrupt, transport.Truncate, transport.Reconfigure, transport.Image:
		// The model decides alone when the user has finished, and takes nothing else.
	default:
		return c.t.Fault("send", transport.KindInvalid, "", errors.New("not a command of package transport"))
	}
	return nil
}

func (c *conn) written(err error) error {
	switch {
	case err == nil:
		return nil
	case c.ended() == nil:
		return c.t.Fault("send", transport.KindRetry, "1006", err)
	}
	return c.ended()
}

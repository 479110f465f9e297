package live

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/livewire"
)

// addition is a text for the model.
type addition struct {
	livewire.ClientEvent

	of   *task // nil for another text
	own  bool  // of a task; the caller repeats its own texts
	sent bool
}

// say sends a text in pieces, about a task if t is not nil. Without a connection, own texts are kept for the next one.
func (d *delegations) say(kind string, t *task, own bool, text string) error {
	d.order.Lock()
	defer d.order.Unlock()
	return d.send(kind, t, own, text)
}

// send is say for a caller that holds order.
func (d *delegations) send(kind string, t *task, own bool, text string) error {
	for _, piece := range livewire.Split(text, appendTokens) {
		if err := d.append(kind, t, own, piece); err != nil {
			return err
		}
	}
	return nil
}

// append sends one text. The caller must hold order.
func (d *delegations) append(kind string, t *task, own bool, text string) error {
	d.mu.Lock()
	d.nextAppend++
	a := addition{of: t, own: own}
	a.Type, a.ID, a.Content = kind, "append_"+strconv.Itoa(d.nextAppend), text
	if t != nil {
		a.Delegation = t.id
	}
	if len(d.appends) == maxAppends {
		d.t.opts.Logger.Warn("append_dropped", "provider", d.t.opts.Name, "kind", d.appends[0].Type, "reason",
			"the provider has not placed it")
		d.appends = slices.Delete(d.appends, 0, 1)
	}
	c := d.conn
	a.sent = c != nil && !d.playing
	d.appends = append(d.appends, a)
	d.mu.Unlock()
	if !a.sent {
		return nil
	}
	return c.write(a.ClientEvent)
}

func (c *conn) write(e livewire.ClientEvent) error {
	frame, err := e.Encode()
	if err != nil {
		return fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return c.ws.Write(websocket.MessageText, frame) //nolint:wrapcheck // the caller classifies it
}

// playPatience is how much longer than a sentence the provider may take to play it and to report the end.
const playPatience = 10 * time.Second

// plays notes that the provider plays a sentence of a length. The caller must hold mu.
func (d *delegations) plays(c *conn, length time.Duration) {
	d.stopLapse()
	d.playing, d.lapse = true, time.AfterFunc(length+playPatience, c.unplayed)
}

// begun notes that the provider has begun to play a sentence, which may have been given up.
func (d *delegations) begun(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.playing {
		d.plays(c, livewire.MaxFixture)
	}
}

// stopLapse ends the wait for the end of a playback. The caller must hold mu.
func (d *delegations) stopLapse() {
	if d.lapse != nil {
		d.lapse.Stop()
	}
}

// exactID is the id of a request to play an exact sentence.
const exactID = "exact"

// play asks the provider to play a sentence. Until it has played or refused it, it refuses appends, so they wait.
func (d *delegations) play(pcm []byte) error {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	c := d.conn
	if c != nil {
		d.plays(c, audio.Duration(sampleRate, len(pcm)))
	}
	d.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.write(livewire.ClientEvent{Type: livewire.FixturePlay, ID: exactID, Audio: audio.AppendBase64(nil, pcm)})
}

// played sends the appends that have waited. It does not wait for the network.
func (d *delegations) played() {
	go func() {
		d.order.Lock()
		defer d.order.Unlock()
		d.mu.Lock()
		c, due := d.conn, []addition(nil)
		d.playing = false
		d.stopLapse()
		for i := range d.appends {
			if a := &d.appends[i]; c != nil && !a.sent {
				a.sent = true
				due = append(due, *a)
			}
		}
		d.mu.Unlock()
		for _, a := range due {
			if c.write(a.ClientEvent) != nil {
				return // the next read knows why
			}
		}
	}()
}

// placed takes the acknowledgement of an append. Azure's names none: then it is the oldest of its kind.
func (d *delegations) placed(id, kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.find(id, kind); at >= 0 {
		d.appends = slices.Delete(d.appends, at, at+1)
	}
}

func (d *delegations) find(id, kind string) int {
	return slices.IndexFunc(d.appends, func(a addition) bool {
		return id != "" && a.ID == id || id == "" && livewire.AppendType(a.Type) == kind
	})
}

// refused takes an error about an append, and reports whether it was about one that is sent again or kept.
func (d *delegations) refused(id string, e *livewire.Failure) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.find(id, "")
	if at < 0 || id == "" {
		return false
	}
	if e.Code == livewire.CodeContextIncomplete {
		return true // the session ends, and the next connection gets it
	}
	a := d.appends[at]
	d.appends = slices.Delete(d.appends, at, at+1)
	tokens := livewire.Tokens(a.Content)
	if e.Code != livewire.CodeInvalidValue || e.Param != "content" || tokens < 2*leastTokens {
		return false
	}
	go func() { // it has more tokens than estimated
		d.order.Lock()
		defer d.order.Unlock()
		for _, half := range livewire.Split(a.Content, tokens/2+1) {
			_ = d.append(a.Type, a.of, a.own, half) // the next read knows why it failed
		}
	}()
	return true
}

// leastTokens is the shortest text that is split because the provider has found it too long.
const leastTokens = 50

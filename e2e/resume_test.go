package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// shortAnswer takes less than 10 s, the limit for unacknowledged audio in the gateway, so none of it is dropped on a
// slow machine.
const shortAnswer = `
name: short
rules:
  - when: {text: any}
    do:
      - say: >-
          I will now talk for some seconds, so that there is something to interrupt, again and again,
          and then I will stop.
`

// resumer is a client that resumes, with the state that this needs.
type resumer struct {
	t    *testing.T
	url  string
	conn *protocol.Conn

	started  *protocol.SessionStarted
	seq      int64
	seen     map[int64]bool
	repeated int
	item     string
	at       int // position of the next frame in the item, in bytes
	audio    map[string][]byte
	ended    map[string]bool
	heard    map[string]int // by item, the last report in ms
}

// dial opens a connection with a first message and reads up to session.started.
func (c *resumer) dial(start *protocol.Start) {
	c.t.Helper()
	var err error
	if c.conn, err = protocol.Dial(context.Background(), c.url, protocol.DialOptions{Back: start.Resume != nil}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.conn.Abort)
	c.say(start)
	c.started, c.item = nil, ""
	for c.started == nil {
		if err := c.step(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *resumer) say(m protocol.ClientMessage) {
	c.t.Helper()
	text, err := protocol.EncodeClient(m)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = c.conn.WriteText(text) // the reader notices a broken connection
}

// back resumes the session.
func (c *resumer) back() {
	c.t.Helper()
	r := &protocol.Resume{SessionID: c.started.SessionID, Token: c.started.ResumeToken, LastSeq: c.seq}
	if c.item != "" {
		r.Audio = &protocol.ResumeAudio{ItemID: c.item, ReceivedMS: int64(len(c.audio[c.item]) / 48)}
	}
	c.dial(&protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: r})
	if !c.started.Resumed {
		c.t.Fatal("another session began")
	}
}

// step reads one frame.
func (c *resumer) step() error {
	c.t.Helper()
	f, err := c.conn.Read()
	if err != nil {
		return err
	}
	if f.Audio {
		have := c.audio[c.item]
		if c.item == "" || c.at > len(have) {
			c.t.Fatalf("audio of %q continues at byte %d, and %d have arrived", c.item, c.at, len(have))
		}
		c.audio[c.item] = append(have[:c.at:c.at], f.Data...)
		c.at += len(f.Data)
		c.reports()
		return nil
	}
	m, err := protocol.ParseServer(f.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	seq := protocol.HeaderOf(m).Seq
	if c.seen[seq] {
		c.repeated++
	}
	c.seen[seq], c.seq = true, max(c.seq, seq)
	switch m := m.(type) {
	case *protocol.SessionStarted:
		c.started = m
	case *protocol.AudioStart:
		c.item, c.at = m.ItemID, int(m.FromMS)*48
	case *protocol.AudioEnd:
		c.ended[m.ItemID] = true
	case *protocol.AudioFlush:
		return fmt.Errorf("the gateway flushed %s (%s), %d bytes of it have arrived", m.ItemID, m.Reason, len(c.audio[m.ItemID]))
	case *protocol.Error:
		return fmt.Errorf("the gateway reported %s: %s", m.Code, m.Message)
	}
	return nil
}

// reports reports playback for every 200 ms of an item. Without reports, the gateway's clock decides when an item
// counts as heard, at any speed of the machine.
func (c *resumer) reports() {
	if ms := c.at / 48 / 200 * 200; ms > c.heard[c.item] {
		c.heard[c.item] = ms
		c.say(&protocol.Playback{ItemID: c.item, PlayedMS: int64(ms)})
	}
}

// hears reads this many bytes of audio, or to the end of an item.
func (c *resumer) hears(n int) error {
	c.t.Helper()
	for {
		have := 0
		for _, pcm := range c.audio {
			have += len(pcm)
		}
		if have >= n || len(c.ended) > 0 {
			return nil
		}
		if err := c.step(); err != nil {
			return err
		}
	}
}

// newResumer begins a session through a proxy that breaks connections.
func newResumer(t *testing.T, provider string) (*resumer, *testutil.Proxy) {
	t.Helper()
	st := newStack(t, provider, setting{
		scenario: shortAnswer, firstAudioMS: 10, speed: 4,
		policy: orchestrator.Policy{ResumeGrace: time.Minute},
	})
	at, err := url.Parse(st.url)
	if err != nil {
		t.Fatal(err)
	}
	p, err := testutil.Listen("127.0.0.1:0", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &resumer{t: t, url: "http://" + p.Addr() + "/v1/voice", seen: map[int64]bool{}, audio: map[string][]byte{}, ended: map[string]bool{}, heard: map[string]int{}}
	c.dial(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	return c, p
}

// TestResumeToTheByte (S1, S2): a connection keeps breaking, in every way of a network, while the model speaks. The
// client ends up with the same audio as without a loss.
func TestResumeToTheByte(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			whole, _ := newResumer(t, provider)
			whole.say(&protocol.InputText{Text: "talk"})
			if err := whole.hears(1 << 30); err != nil {
				t.Fatal(err)
			}
			c, p := newResumer(t, provider)
			c.say(&protocol.InputText{Text: "talk"})
			for i, breaks := range []func() error{
				func() error { return p.Do(testutil.Command{Do: testutil.Reset}) },
				func() error { return p.Do(testutil.Command{Do: testutil.Finish}) },
				func() error { return p.Do(testutil.Command{Do: testutil.BlackHole}) },
				func() error { return p.Do(testutil.Command{Do: testutil.Reset, Way: testutil.ToTarget}) },
				func() error { return c.conn.Close(protocol.CloseServerLeaving, "a page that is reloaded") },
				func() error { return nil }, // the same session from elsewhere, with a working connection
				func() error { return c.conn.Close(protocol.CloseSlowClient, "") },
			} {
				if err := c.hears((i + 1) * 30_000); err != nil {
					t.Fatal(err)
				}
				if err := breaks(); err != nil && websocket.CloseStatus(err) != protocol.CloseServerLeaving {
					t.Log("closing:", err) // the gateway need not answer
				}
				c.back()
			}
			if err := c.hears(1 << 30); err != nil {
				t.Fatal(err)
			}
			for item, pcm := range whole.audio {
				if !bytes.Equal(c.audio[item], pcm) {
					t.Errorf("of %s the client has %d bytes, and not the %d of an unbroken connection", item, len(c.audio[item]), len(pcm))
				}
			}
			if len(whole.audio) != 1 || len(whole.audio[c.item]) < 300_000 {
				t.Errorf("the answer is too short for this test: %d items, %d bytes", len(whole.audio), len(whole.audio[c.item]))
			}
			c.say(&protocol.End{})
			for c.step() == nil {
				continue
			}
		})
	}
}

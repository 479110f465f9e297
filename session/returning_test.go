package session

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// returning is a client that loses its connection and resumes. It follows the protocol: it recognises repeated messages
// by seq, and places audio by position.
type returning struct {
	t      *testing.T
	st     *stage
	conn   *testClient
	taken  int // number of messages of conn.order that it has read
	origin string
	left   []*testClient // its lost connections, for tests that check their end

	id, token string
	highest   int64
	seen      map[int64]int    // how often each seq was received
	leads     map[int64]bool   // seqs that are never sent again
	first     map[string]int64 // the seq of each item's first audio.start
	gaps      bool             // a snapshot has replaced messages

	item    string // the item of the next binary frames
	newest  string // the newest item that it knows
	audio   map[string][]byte
	at      int // position of the next frame in the item
	flushed map[string]bool
	resumed []bool
}

// comingBack begins a session whose client may be disconnected for half a minute.
func comingBack(t *testing.T, change func(*Options)) (*returning, *fakeConn) {
	t.Helper()
	return comingBackTo(t, hearing, change)
}

// comingBackTo is comingBack with a model of other capabilities.
func comingBackTo(t *testing.T, caps transport.Capabilities, change func(*Options)) (*returning, *fakeConn) {
	t.Helper()
	st := newStage(t, caps, func(o *Options) {
		o.Policy = orchestrator.Policy{ResumeGrace: 30 * time.Second}
		if change != nil {
			change(o)
		}
	})
	r := &returning{t: t, st: st, seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
	var model *fakeConn
	r.conn, model = st.started()
	synctest.Wait()
	return r, model
}

// read reads n of the messages written to the connection, or all of them if n is negative.
func (r *returning) read(n int) {
	r.t.Helper()
	r.conn.mu.Lock()
	order := r.conn.order
	r.conn.mu.Unlock()
	if n < 0 || r.taken+n > len(order) {
		n = len(order) - r.taken
	}
	for _, one := range order[r.taken : r.taken+n] {
		switch one := one.(type) {
		case []byte:
			r.frame(one)
		case map[string]any:
			r.message(one)
		}
	}
	r.taken += n
}

func (r *returning) frame(pcm []byte) {
	r.t.Helper()
	if r.item == "" {
		r.t.Fatal("audio came before its audio.start")
	}
	if r.flushed[r.item] {
		r.t.Fatalf("audio of %s came after its flush", r.item)
	}
	have := r.audio[r.item]
	if r.at > len(have) {
		r.t.Fatalf("audio of %s continues at byte %d, after %d bytes", r.item, r.at, len(have))
	}
	r.audio[r.item] = append(have[:r.at:r.at], pcm...)
	r.at += len(pcm)
}

func (r *returning) message(m map[string]any) {
	r.t.Helper()
	seq := int64(m["seq"].(float64))
	r.highest = max(r.highest, seq)
	from, again := m["from_ms"]
	if m["type"] == "session.started" {
		r.id, r.token = m["session_id"].(string), m["resume_token"].(string)
		r.resumed = append(r.resumed, m["resumed"] == true)
		r.gaps = r.gaps || m["snapshot"] == true
		r.item = ""
	}
	if m["type"] == "audio.start" {
		// A repeated audio.start also names the item of the following frames.
		r.item, r.at = m["item_id"].(string), 0
		r.newest = r.item
		if again {
			r.at = int(from.(float64)) * 48
		}
	}
	if m["type"] == "audio.flush" {
		r.flushed[m["item_id"].(string)] = true
	}
	if r.seen[seq]++; r.seen[seq] > 1 {
		return
	}
	if m["type"] == "audio.end" {
		if id, want := m["item_id"].(string), int(m["audio_ms"].(float64)); len(r.audio[id])/48 != want && !r.flushed[id] {
			r.t.Errorf("%s ended after %d ms, after %d bytes", id, want, len(r.audio[id]))
		}
	}
}

// lose breaks the connection without reading more.
func (r *returning) lose() {
	r.noteLeads()
	r.conn.Abort()
	synctest.Wait()
}

// position returns the client's position as JSON.
func (r *returning) position() string {
	if r.newest == "" {
		return ""
	}
	return fmt.Sprintf(`,"audio":{"item_id":%q,"received_ms":%d}`, r.newest, len(r.audio[r.newest])/48)
}

// comeBack reconnects without reading. audio is the position, as JSON.
func (r *returning) comeBack(audio string) {
	r.t.Helper()
	r.conn, r.taken = r.dial(r.start(audio), r.origin), 0
	synctest.Wait()
}

func (r *returning) start(audio string) string {
	return fmt.Sprintf(`{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":%q,"token":%q,"last_seq":%d%s}}`, r.id, r.token, r.highest, audio)
}

func (r *returning) dial(text, origin string) *testClient {
	r.t.Helper()
	a := r.st.admit(netip.MustParseAddr("198.51.100.9"))
	a.Origin = origin
	a.Anonymous = user.Anonymous(someone, true)
	c := newTestClient()
	c.say(text)
	r.st.m.Start(a, c)
	return c
}

// reload forgets everything except the session's id, its token and the highest seq.
func (r *returning) reload() {
	r.item, r.newest, r.audio = "", "", map[string][]byte{}
}

// shown fails unless every seq up to the highest was received, except those that are never sent again.
func (r *returning) shown() {
	r.t.Helper()
	for seq := range r.highest {
		if seq > 0 && r.seen[seq] == 0 && !r.leads[seq] {
			r.t.Errorf("the message %d was never received", seq)
		}
	}
}

// noteLeads records the seqs of the connection that are never sent again: those of session.started, and of any but the
// first audio.start of an item.
func (r *returning) noteLeads() {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	for _, m := range r.conn.texts {
		seq := int64(m["seq"].(float64))
		item, _ := m["item_id"].(string)
		first := r.first[item]
		switch {
		case m["type"] == "session.started", m["type"] == "audio.start" && first != 0 && first != seq:
			r.leads[seq] = true
		case m["type"] == "audio.start":
			r.first[item] = seq
		}
	}
}

// sameAudio fails unless the client has exactly this audio of an item.
func (r *returning) sameAudio(item string, want []byte) {
	r.t.Helper()
	if got := r.audio[item]; !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		r.t.Errorf("of %s the client has %d bytes, want %d; they differ from byte %d", item, len(got), len(want), at)
	}
}

// speech returns audio in which neighbouring bytes differ.
func speech(n int, seed byte) []byte {
	pcm := make([]byte, n)
	x := uint32(seed) + 1
	for i := range pcm {
		x = x*1664525 + 1013904223
		pcm[i] = byte(x >> 24)
	}
	return pcm
}

// gone reports why the session has ended; nil if it runs.
func (r *returning) gone(s *session) error {
	if !s.isOver() {
		return nil
	}
	return s.cause()
}

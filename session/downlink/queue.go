// Package downlink is the queue of messages and audio to one client. It keeps what it has sent until the client confirms
// it, so that a returning client misses nothing, and it counts the memory of all sessions in one [Budget].
package downlink

import (
	"errors"
	"slices"
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// Queue holds messages and audio for the client in one order. It accepts audio only for the open item, so no audio
// follows its flush. The first audio of an item carries its announcement, so a client never hears of an item that is
// dropped whole. Audio is never dropped frame by frame: the session disconnects a client that falls too far behind. A
// writer goroutine exists only while something is queued.
type Queue struct {
	// Fixed after Begin.
	most  Bounds
	write func(gen int) // nil: the caller pops

	writer sync.WaitGroup // the writers; none is added once finished is set and the queue is empty

	mu       sync.Mutex // guards the following fields
	idle     sync.Cond  // signals that no writer runs and the queue is empty
	entries  []Entry
	head     int // index of the oldest entry still queued
	audio    int // bytes of audio in entries
	waiting  int // messages in entries
	words    int // bytes of messages in entries
	bytes    int // memory that entries take, in bytes
	seq      int64
	items    []outgoing // items with audio or an announcement still to come or be written, oldest first
	clock    orchestrator.PlayClock
	flushed  int64 // bytes dropped by flushes, by the end, and of items that were not open
	sent     int64 // bytes written
	busy     bool  // the writer runs, or a caller holds a claim
	finished bool  // nothing more is accepted
	full     bool  // too much was queued

	gen     int      // the current attachment; writers of older ones are ignored
	silent  bool     // the attachment receives nothing yet; see Lead
	away    bool     // no attachment: everything waits
	back    bool     // Resume has run: nothing may be dropped before Attach
	gap     bool     // waiting messages were dropped
	charged int64    // bytes counted in the budget, while away
	short   []string // items that lost waiting audio
	held    replayBuffer
	known   []announcement // the latest items, oldest first
	replays []replay       // not yet confirmed; the newest attachment's is last
}

type outgoing struct {
	item         string
	start        []byte    // the announcement; nil once queued
	queued, sent int64     // bytes of audio: all, and those that were written
	until        time.Time // when the sent audio has been played, if the client plays it at once
	ended        bool
	shut         bool  // accepts no more audio
	told         int64 // sent at the last call of Left
	turn         int
}

// Entry is a message or a frame of audio. The first frame of an item also carries the announcement.
type Entry struct {
	Text  []byte
	seq   int64 // the seq inside text
	Frame *audio.Frame
	item  string             // the item of the frame, or of end
	opens bool               // a message of kind repeats announces an item
	end   *protocol.AudioEnd // the message that text encodes
	kind  entryKind
	last  bool // the last frame of an item that is sent again
}

type entryKind uint8

const (
	plain   entryKind = iota
	repeats           // text was sent before, with the same seq
	lead              // text belongs to the beginning of an attachment, and is never sent again
	lasting           // text stays if other messages that wait are dropped
)

// Reported reports whether the orchestrator must learn that e was written.
func (e Entry) Reported() bool { return e.end != nil || e.Frame != nil && e.Text != nil || e.last }

// announces reports whether e is the client's first notice of an item. A replayed announcement is not.
func (e Entry) announces() bool { return e.Frame != nil && e.Text != nil && e.kind != lead }

// Bounds limit the queue. All but Rate are in bytes.
type Bounds struct {
	Rate  int // sample rate of the audio, Hz
	Audio int // of audio
	All   int // memory, for audio and messages
	Frame int // audio that is joined to one frame
	Away  int // audio that waits for an absent client
}

const maxMessages = 4096

const keepEntries = 16

// Begin initializes the queue. write runs on its own goroutine and must Pop until false; nil: the caller pops.
func (d *Queue) Begin(most Bounds, write func(gen int)) {
	d.most, d.write, d.idle.L = most, write, &d.mu
}

// PushMessage queues a message with the next seq. It returns false if the client is too far behind.
func (d *Queue) PushMessage(m protocol.ServerMessage) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.push(m)
}

// push is PushMessage for a caller that holds mu.
func (d *Queue) push(m protocol.ServerMessage) (bool, error) {
	if d.finished || d.refuses() {
		return !d.full, nil
	}
	seq := d.seq + int64(d.waiting) + 1
	text, err := protocol.EncodeServer(seq, m)
	if err != nil {
		return true, err
	}
	d.entries = append(d.entries, Entry{Text: text, seq: seq})
	d.count(d.entries[len(d.entries)-1], 1)
	return d.queued(), nil
}

// queued starts the writer after an addition. It returns false if the client is too far behind. The caller must hold mu.
func (d *Queue) queued() bool {
	d.run()
	if d.away {
		d.boundWaiting()
		return true
	}
	return d.fits()
}

// count adds an entry to the totals, or removes it if by is -1. The caller must hold mu.
func (d *Queue) count(e Entry, by int) {
	if e.Text != nil {
		d.waiting += by
		d.words += by * cap(e.Text)
		d.bytes += by * cap(e.Text)
	}
	if e.Frame != nil {
		d.audio += by * len(e.Frame.PCM)
		d.bytes += by * e.Frame.Size()
	}
}

// refuses: full, and the client cannot resume; one that can is disconnected instead. The caller must hold mu.
func (d *Queue) refuses() bool { return d.full && !d.held.on() }

// fits reports whether the queue is within its limits. The caller must hold mu.
func (d *Queue) fits() bool {
	d.full = d.full || d.waiting > maxMessages || d.audio > d.most.Audio || d.bytes > d.most.All
	return !d.full
}

// OpenItem lets audio of an item be queued. m announces the item.
func (d *Queue) OpenItem(m *protocol.AudioStart) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := protocol.EncodeServer(0, m) // its seq is set when it is written
	if err != nil {
		return err
	}
	d.items = append(d.items, outgoing{item: m.ItemID, start: text, turn: m.Turn})
	return nil
}

// open returns the item if it accepts audio, otherwise nil. Only the newest item can. The caller must hold mu.
func (d *Queue) open(item string) *outgoing {
	if n := len(d.items); n > 0 && d.items[n-1].item == item && !d.items[n-1].ended && !d.items[n-1].shut {
		return &d.items[n-1]
	}
	return nil
}

// outgoing returns the item with that id, or nil. The caller must hold mu.
func (d *Queue) outgoing(item string) *outgoing {
	for i := range d.items {
		if d.items[i].item == item {
			return &d.items[i]
		}
	}
	return nil
}

// Claim reports whether the caller may write an open item's audio to the attachment itself. It must then call Release.
func (d *Queue) Claim(gen int, item string, pcm []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open(item)
	if d.busy || d.finished || d.away || d.silent || gen != d.gen || o == nil || o.start != nil || d.head < len(d.entries) {
		return false
	}
	d.busy = true
	o.queued += int64(len(pcm))
	d.held.audio(item, pcm)
	return true
}

// Release ends a claim after n bytes of the item were written. It returns the number of a probe to send; see Proven.
func (d *Queue) Release(gen int, item string, n int) (probe uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen != d.gen || d.away {
		return 0 // the attachment is lost
	}
	d.wrote(item, n)
	d.busy = false
	probe = d.held.dueProbe()
	d.run()
	return probe
}

// Written records that an entry was written to the attachment gen. It returns the number of a probe to send; see Proven.
func (d *Queue) Written(gen int, e Entry) (probe uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen != d.gen || d.away {
		return 0
	}
	if e.Frame != nil {
		d.wrote(e.item, len(e.Frame.PCM))
	}
	return d.held.dueProbe()
}

// wrote is Written for a caller that holds mu. The item is unknown if it was flushed since.
func (d *Queue) wrote(item string, n int) {
	d.sent += int64(n)
	if o := d.outgoing(item); o != nil {
		o.sent += int64(n)
		o.until = d.clock.Add(time.Now(), audio.Duration(d.most.Rate, n))
	}
}

// Left returns the amount sent of each item that advanced since the last call.
func (d *Queue) Left() []orchestrator.AudioSent {
	d.mu.Lock()
	defer d.mu.Unlock()
	var news []orchestrator.AudioSent
	kept := d.items[:0]
	for _, o := range d.items {
		if o.sent > o.told {
			news = append(news, orchestrator.AudioSent{Item: o.item, Sent: audio.Duration(d.most.Rate, int(o.sent)), Until: o.until})
			o.told = o.sent
		}
		if !o.ended || o.sent < o.queued {
			kept = append(kept, o)
		}
	}
	clear(d.items[len(kept):])
	d.items = kept
	return news
}

// run starts the writer if something is queued and no writer runs. The caller must hold mu.
func (d *Queue) run() {
	switch {
	case d.busy, d.away, d.silent:
	case d.head == len(d.entries):
		d.idle.Broadcast()
	case d.write != nil:
		d.busy = true
		gen := d.gen
		d.writer.Go(func() { d.write(gen) })
	}
}

// PushAudio queues a copy of pcm if its item is open. It returns false if the client is too far behind.
func (d *Queue) PushAudio(item string, pcm []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open(item)
	if d.finished || o == nil {
		d.flushed += int64(len(pcm))
		return true
	}
	if d.refuses() {
		return false
	}
	if len(pcm) == 0 {
		return true
	}
	if d.away && !d.back && d.audio+len(pcm) > d.most.Away {
		o.shut = true // it ends here
		d.flushed += int64(len(pcm))
		return true
	}
	n := len(d.entries)
	if o.start == nil && n > d.head && d.entries[n-1].item == item && d.entries[n-1].Frame.Extend(pcm, d.joined()) {
		d.audio += len(pcm)
	} else {
		d.entries = append(d.entries, Entry{Frame: d.newFrame(pcm), item: item, Text: o.start})
		d.count(d.entries[n], 1)
		o.start = nil
	}
	o.queued += int64(len(pcm))
	return d.queued()
}

// newFrame returns a frame with a copy of pcm. For an absent client the frame is no larger than its audio.
func (d *Queue) newFrame(pcm []byte) *audio.Frame {
	if d.away {
		return &audio.Frame{PCM: append(make([]byte, 0, len(pcm)), pcm...)}
	}
	return audio.NewFrame(pcm)
}

// joined returns the maximum size of a frame that takes more audio, in bytes.
func (d *Queue) joined() int {
	if d.away {
		return 0
	}
	return d.most.Frame
}

// EndItem marks an item as complete. The message's length is set when it is written. An item without audio gets none.
func (d *Queue) EndItem(m *protocol.AudioEnd) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.outgoing(m.ItemID)
	if o == nil {
		return true, nil
	}
	o.ended = true
	if o.queued == 0 {
		return true, nil
	}
	n := len(d.entries)
	ok, err := d.push(m)
	if len(d.entries) > n {
		d.entries[n].item, d.entries[n].end = m.ItemID, m
	}
	return ok, err
}

// FlushItem drops an item's queued audio and closes the item. It queues m if the client knows the item.
func (d *Queue) FlushItem(m *protocol.AudioFlush) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := !d.drop(func(item string) bool { return item == m.ItemID }, false)
	for i, o := range d.items {
		if o.item == m.ItemID {
			known = known && o.queued > 0
			d.items = append(d.items[:i], d.items[i+1:]...)
			break
		}
	}
	d.held.letGo(func(item string) bool { return item == m.ItemID })
	d.clock.Cut(time.Now()) // flushing one item flushes all
	if !known {
		return true, nil
	}
	if replaced, err := d.flushForEnd(m); replaced || err != nil {
		return true, err
	}
	n := len(d.entries)
	ok, err := d.push(m)
	if len(d.entries) > n {
		d.entries[n].kind = lasting
	}
	return ok, err
}

// flushForEnd replaces a replayed end, which would promise audio that is no longer sent. The caller must hold mu.
func (d *Queue) flushForEnd(m *protocol.AudioFlush) (replaced bool, err error) {
	for i, e := range d.entries[d.head:] {
		if e.kind != repeats || e.end == nil || e.end.ItemID != m.ItemID {
			continue
		}
		text, err := protocol.EncodeServer(e.seq, m)
		if err != nil {
			return false, err
		}
		d.count(e, -1)
		d.entries[d.head+i] = Entry{Text: text, seq: e.seq, kind: repeats}
		d.count(d.entries[d.head+i], 1)
		d.charge()
		return true, nil
	}
	return false, nil
}

// drop removes the queued audio of some items and the messages about their ends. With keepEnds it keeps the ends of
// items that the client knows. Replayed messages stay because the client knows their seq. It reports whether the client
// will never learn of one of the items. The caller must hold mu.
func (d *Queue) drop(which func(item string) bool, keepEnds bool) (unheard bool) {
	kept := d.entries[:d.head]
	var whole []string // items that were not announced
	for _, e := range d.entries[d.head:] {
		if e.item == "" || !which(e.item) || e.kind == repeats || e.end != nil && keepEnds && !slices.Contains(whole, e.item) {
			kept = append(kept, e)
			continue
		}
		d.count(e, -1)
		if e.Frame != nil {
			d.flushed += int64(len(e.Frame.PCM))
			e.Frame.Free()
			if e.announces() {
				whole = append(whole, e.item)
			}
		}
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	d.charge()
	return len(whole) > 0
}

// Finish drops all queued audio and queues the last messages. Nothing can be queued afterwards.
func (d *Queue) Finish(last ...protocol.ServerMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(func(string) bool { return true }, true)
	var failed error
	d.full = false
	for _, m := range last {
		_, err := d.push(m)
		failed = errors.Join(failed, err)
	}
	d.finished = true
	return failed
}

// Wait waits until the queue is written or lost. Call it only after Finish or Lose.
func (d *Queue) Wait() {
	d.mu.Lock()
	for !d.away && (d.busy || d.head < len(d.entries)) {
		d.idle.Wait()
	}
	d.mu.Unlock()
	d.writer.Wait()
}

// Lose drops the queue and everything pushed later, because the client has gone.
func (d *Queue) Lose() {
	d.mu.Lock()
	for _, e := range d.entries[d.head:] {
		if e.Frame != nil {
			e.Frame.Free()
		}
	}
	d.entries, d.head, d.audio, d.words, d.bytes, d.waiting = nil, 0, 0, 0, 0, 0
	d.held.clear()
	d.finished = true
	d.charge()
	d.mu.Unlock()
	if h := d.held.budget; h != nil {
		h.join(d)
	}
}

// Pop returns the oldest entry for the attachment gen. If it returns false, the writer must return.
func (d *Queue) Pop(gen int) (e Entry, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen != d.gen || d.away {
		return Entry{}, false
	}
	if d.head == len(d.entries) {
		d.entries, d.head = d.entries[:0], 0
		if cap(d.entries) > keepEntries {
			d.entries = nil // the backlog is over: release its memory
		}
		d.busy = false
		d.idle.Broadcast()
		return Entry{}, false
	}
	d.busy = true
	e = d.entries[d.head]
	d.entries[d.head] = Entry{}
	d.head++
	d.count(e, -1)
	if e.Text != nil {
		e = d.numbered(e)
	}
	if e.Frame != nil {
		d.held.audio(e.item, e.Frame.PCM)
	}
	if d.head > 64 && d.head*2 > len(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	return e, true
}

// numbered completes an entry that is about to be written, and keeps it for a replay. The caller must hold mu.
func (d *Queue) numbered(e Entry) Entry {
	if e.kind == repeats {
		if e.end != nil {
			e.Text = d.final(e, e.seq)
		}
		d.held.message(e.seq, e.Text, "", 0)
		d.held.endedLast(e.end)
		return e
	}
	d.seq++
	e.Text = d.final(e, d.seq)
	if e.kind == lead {
		return e
	}
	if n := len(d.replays); n > 0 && d.replays[n-1].live == 0 {
		d.replays[n-1].live = d.seq
	}
	if e.end != nil {
		d.held.endedWith(e.item, d.seq)
	}
	if announced := d.outgoing(e.item); e.Frame != nil && announced != nil {
		d.announced(e.item)
		d.held.message(d.seq, e.Text, e.item, announced.turn)
	} else {
		d.held.message(d.seq, e.Text, "", 0)
		d.held.endedLast(e.end)
	}
	return e
}

// final sets the seq and the sent length, which may have changed since the entry was queued. The caller must hold mu.
func (d *Queue) final(e Entry, seq int64) []byte {
	if e.end != nil {
		if o := d.outgoing(e.item); o != nil {
			e.end.AudioMS = audio.MS(d.most.Rate, int(o.sent))
		}
		if text, err := protocol.EncodeServer(seq, e.end); err == nil { // unchanged since it was queued
			return text
		}
	}
	if e.seq != seq {
		return protocol.Renumber(e.Text, seq)
	}
	return e.Text
}

// ItemBytes returns the bytes of audio queued so far for an item; zero after its end.
func (d *Queue) ItemBytes(item string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.outgoing(item); o != nil {
		return o.queued
	}
	return 0
}

// FlushedBytes returns the bytes of audio that were dropped.
func (d *Queue) FlushedBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushed
}

// SentBytes returns the bytes of audio that were written.
func (d *Queue) SentBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent
}

// LastSeq returns the highest seq in use.
func (d *Queue) LastSeq() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seq
}

// Backlog returns the duration of the queued audio.
func (d *Queue) Backlog() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return audio.Duration(d.most.Rate, d.audio)
}

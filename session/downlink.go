package session

import (
	"errors"
	"slices"
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// downlink is the queue towards the client: messages and audio in one order.
// Audio enters it only for the item that is open, so that nothing of a flushed
// item can follow its flush. An item is announced with its first audio and not before, so
// that what is dropped as a whole is never told of. Audio is never dropped frame by frame: a client that
// falls too far behind is disconnected (policy disconnectSlow), and from then on nothing is
// taken but the last messages. What is queued is written
// by a writer, a goroutine that there is only meanwhile.
type downlink struct {
	// Fixed after newDownlink.
	most  downBounds
	write func() // the writer: it pops until there is nothing; nil: the test pops

	writer sync.WaitGroup // it gets no more once finished is set and nothing is queued

	mu       sync.Mutex // guards the following fields
	idle     sync.Cond  // nobody is writing, and nothing is queued
	entries  []downEntry
	head     int  // entries before it are gone
	audio    int  // bytes of audio in entries
	waiting  int  // messages in entries
	bytes    int  // of memory that entries take
	full     bool // there was too much
	seq      int64
	items    []outgoing // those of which something is to come, waits or is not told yet, oldest first
	clock    orchestrator.PlayClock
	flushed  int64 // bytes dropped by flushes and the end, or of items that were not open
	busy     bool  // somebody is writing: the writer, or who has claimed
	finished bool  // nothing is taken any more
}

// outgoing is an item on its way to the client. Its audio is let through from openItem until
// it has ended or was flushed.
type outgoing struct {
	item         string
	start        []byte    // announces it, with its first audio; nil once queued
	queued, sent int64     // bytes: all, and those that were written
	until        time.Time // when a client that plays at once has played those
	ended        bool
	told         int64 // what sent was when left was last asked
}

// downEntry is a message, or a frame with the message that announces its item, if it is the
// first.
type downEntry struct {
	text  []byte
	seq   int64 // that text has
	frame *frame
	item  string             // of the frame, or of end
	end   *protocol.AudioEnd // text is this
}

// tells says whether the orchestrator waits to hear that e has been written.
func (e downEntry) tells() bool { return e.end != nil || e.frame != nil && e.text != nil }

// downBounds bound what may wait for a client, in bytes.
type downBounds struct {
	rate  int // of the audio, Hz
	audio int // of audio
	all   int // of memory, for audio and messages
	frame int // of audio that is put together to one frame
}

// maxMessages is how many messages may wait for a client.
const maxMessages = 4096

// keepEntries is how much room an empty queue keeps.
const keepEntries = 16

func newDownlink(most downBounds, write func()) *downlink {
	d := &downlink{most: most, write: write}
	d.idle.L = &d.mu
	return d
}

// pushMessage queues a message with the next seq. It reports false when the
// client is too far behind.
func (d *downlink) pushMessage(m protocol.ServerMessage) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.push(m)
}

// push is pushMessage with mu held.
func (d *downlink) push(m protocol.ServerMessage) (bool, error) {
	if d.finished || d.full {
		return !d.full, nil
	}
	seq := d.seq + int64(d.waiting) + 1
	text, err := protocol.EncodeServer(seq, m)
	if err != nil {
		return true, err
	}
	d.entries = append(d.entries, downEntry{text: text, seq: seq})
	d.waiting++
	d.bytes += cap(text)
	d.run()
	return d.fits(), nil
}

// fits says whether no more is queued than may be. mu is held.
func (d *downlink) fits() bool {
	d.full = d.full || d.waiting > maxMessages || d.audio > d.most.audio || d.bytes > d.most.all
	return !d.full
}

// openItem lets the audio of an item through; m announces it.
func (d *downlink) openItem(m *protocol.AudioStart) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := protocol.EncodeServer(0, m) // it gets its seq when it is written
	if err != nil {
		return err
	}
	d.items = append(d.items, outgoing{item: m.ItemID, start: text})
	return nil
}

// open returns an item if its audio is let through, or nil: only the newest's ever is. mu is
// held.
func (d *downlink) open(item string) *outgoing {
	if n := len(d.items); n > 0 && d.items[n-1].item == item && !d.items[n-1].ended {
		return &d.items[n-1]
	}
	return nil
}

// outgoing returns what is known of an item, or nil. mu is held.
func (d *downlink) outgoing(item string) *outgoing {
	for i := range d.items {
		if d.items[i].item == item {
			return &d.items[i]
		}
	}
	return nil
}

// claim says that the caller may write n bytes of an item's audio to the client
// itself, because the item is open and announced, nothing is queued and nobody else is
// writing. It must then release.
func (d *downlink) claim(item string, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open(item)
	if d.busy || d.finished || o == nil || o.start != nil || d.head < len(d.entries) {
		return false
	}
	d.busy = true
	o.queued += int64(n)
	return true
}

// release ends a claim: n bytes of the item have been written.
func (d *downlink) release(item string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrote(item, n)
	d.busy = false
	d.run()
}

// written notes that an entry was written.
func (d *downlink) written(e downEntry) {
	if e.frame == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrote(e.item, len(e.frame.pcm))
}

// wrote is written with mu held. An item that was flushed meanwhile is not known any more.
func (d *downlink) wrote(item string, n int) {
	if o := d.outgoing(item); o != nil {
		o.sent += int64(n)
		o.until = d.clock.Add(time.Now(), audio.Duration(d.most.rate, n))
	}
}

// left returns how much of each item has left for the client, of those of which more has
// since it was last asked.
func (d *downlink) left() []orchestrator.AudioSent {
	d.mu.Lock()
	defer d.mu.Unlock()
	var news []orchestrator.AudioSent
	kept := d.items[:0]
	for _, o := range d.items {
		if o.sent > o.told {
			news = append(news, orchestrator.AudioSent{Item: o.item, Sent: audio.Duration(d.most.rate, int(o.sent)), Until: o.until})
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

// run starts the writer, if there is something to write and nobody writes. mu is held.
func (d *downlink) run() {
	switch {
	case d.busy:
	case d.head == len(d.entries):
		d.idle.Broadcast()
	case d.write != nil:
		d.busy = true
		d.writer.Go(d.write)
	}
}

// pushAudio queues a copy of pcm if its item is open. It reports false when the
// client is too far behind.
func (d *downlink) pushAudio(item string, pcm []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open(item)
	if d.finished || o == nil {
		d.flushed += int64(len(pcm))
		return true
	}
	if d.full {
		return false
	}
	if len(pcm) == 0 {
		return true
	}
	n := len(d.entries)
	if o.start != nil || n == d.head || d.entries[n-1].item != item || !d.entries[n-1].frame.extend(pcm, d.most.frame) {
		e := downEntry{frame: newFrame(pcm), item: item, text: o.start}
		d.entries = append(d.entries, e)
		d.bytes += e.frame.size() + cap(e.text)
		if o.start != nil {
			o.start = nil
			d.waiting++
		}
	}
	d.audio += len(pcm)
	o.queued += int64(len(pcm))
	d.run()
	return d.fits()
}

// endItem says that an item is complete. How long it was is known when the message is
// written: as long as what was sent of it. Of an item without any audio nothing is told.
func (d *downlink) endItem(m *protocol.AudioEnd) (bool, error) {
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

// flushItem drops what is queued of an item, shuts it, and tells the client, if it has heard
// of the item.
func (d *downlink) flushItem(m *protocol.AudioFlush) (bool, error) {
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
	d.clock.Cut(time.Now()) // who flushes one item flushes all
	if !known {
		return true, nil
	}
	return d.push(m)
}

// drop drops the queued audio of some items, and their ends, which are kept for items that
// the client has heard of if keepEnds is set. It says whether there is an item that it has
// not heard of: it never will. mu is held.
func (d *downlink) drop(which func(item string) bool, keepEnds bool) (unheard bool) {
	kept := d.entries[:d.head]
	var whole []string // items that were not announced
	for _, e := range d.entries[d.head:] {
		if e.item == "" || !which(e.item) || e.end != nil && keepEnds && !slices.Contains(whole, e.item) {
			kept = append(kept, e)
			continue
		}
		if e.frame != nil {
			n := len(e.frame.pcm)
			d.audio -= n
			d.bytes -= e.frame.size()
			d.flushed += int64(n)
			e.frame.free()
			if e.text != nil {
				whole = append(whole, e.item)
			}
		}
		if e.text != nil {
			d.waiting--
			d.bytes -= cap(e.text)
		}
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	return len(whole) > 0
}

// finish drops all queued audio and queues the last messages. Nothing can be queued
// afterwards; wait waits until they are written.
func (d *downlink) finish(last ...protocol.ServerMessage) error {
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

// wait waits until what is queued is written, or lost. Only after finish or lose.
func (d *downlink) wait() {
	d.mu.Lock()
	for d.busy || d.head < len(d.entries) {
		d.idle.Wait()
	}
	d.mu.Unlock()
	d.writer.Wait()
}

// lose drops what is queued, and all that comes: the client is gone.
func (d *downlink) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries[d.head:] {
		if e.frame != nil {
			e.frame.free()
		}
	}
	d.entries, d.head, d.audio, d.bytes, d.waiting = nil, 0, 0, 0, 0
	d.finished = true
}

// pop returns the oldest entry, for the writer to write. It reports false, and the writer
// must end, when there is none.
func (d *downlink) pop() (e downEntry, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.head == len(d.entries) {
		d.entries, d.head = d.entries[:0], 0
		if cap(d.entries) > keepEntries {
			d.entries = nil // a backlog is over: give its memory back
		}
		d.busy = false
		d.idle.Broadcast()
		return downEntry{}, false
	}
	d.busy = true
	e = d.entries[d.head]
	d.entries[d.head] = downEntry{}
	d.head++
	if e.frame != nil {
		d.audio -= len(e.frame.pcm)
		d.bytes -= e.frame.size()
	}
	if e.text != nil {
		d.bytes -= cap(e.text)
		d.waiting--
		d.seq++
		e.text = d.final(e)
	}
	if d.head > 64 && d.head*2 > len(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	return e, true
}

// final is the message of an entry that is about to be written: the seq of it may have
// changed since it was queued, and how much was sent of an item that it ends. mu is held.
func (d *downlink) final(e downEntry) []byte {
	if e.end != nil {
		if o := d.outgoing(e.item); o != nil {
			e.end.AudioMS = audio.MS(d.most.rate, int(o.sent))
		}
		if text, err := protocol.EncodeServer(d.seq, e.end); err == nil { // as it was when it was queued
			return text
		}
	}
	if e.seq != d.seq {
		return protocol.Renumber(e.text, d.seq)
	}
	return e.text
}

// itemBytes returns how much audio of an item has been queued, until it has ended.
func (d *downlink) itemBytes(item string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.outgoing(item); o != nil {
		return o.queued
	}
	return 0
}

func (d *downlink) flushedBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushed
}

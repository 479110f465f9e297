package session

import (
	"errors"
	"sync"

	"voicegw/session/wsclient"
)

// downlink is the queue towards the client: messages and audio in one order.
// Audio enters it only for the item that is open, so that nothing of a flushed
// item can follow its flush. Audio is never dropped frame by frame: a client that
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
	open     string // the item whose audio is let through
	isFirst  bool   // its next frame is its first
	sent     int64  // bytes of the open item that were queued
	flushed  int64  // bytes dropped by flushes and the end, or of items that were not open
	busy     bool   // somebody is writing: the writer, or who has claimed
	finished bool   // nothing is taken any more
}

// downEntry is a message or a frame.
type downEntry struct {
	text  []byte
	frame *frame
	item  string
	first bool // the first frame of its item
	end   *itemEnd
}

// itemEnd is an audio.end that waits behind audio: if that is dropped, it must not promise it.
type itemEnd struct {
	seq     int64
	m       *wsclient.AudioEnd
	audioMS int64 // of bytes
	bytes   int64
}

// less takes dropped bytes out of what is promised, and returns the message anew.
func (e *itemEnd) less(dropped int64) ([]byte, error) {
	if e.bytes > 0 {
		e.m.AudioMS = e.audioMS * (e.bytes - dropped) / e.bytes
	}
	return wsclient.EncodeServer(e.seq, e.m)
}

// downBounds bound what may wait for a client, in bytes.
type downBounds struct {
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
func (d *downlink) pushMessage(m wsclient.ServerMessage) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.push(m)
}

// push is pushMessage with mu held.
func (d *downlink) push(m wsclient.ServerMessage) (bool, error) {
	if d.finished || d.full {
		return !d.full, nil
	}
	text, err := wsclient.EncodeServer(d.seq+1, m)
	if err != nil {
		return true, err
	}
	d.seq++
	d.entries = append(d.entries, downEntry{text: text})
	d.waiting++
	d.bytes += cap(text)
	d.start()
	return d.fits(), nil
}

// fits says whether no more is queued than may be. mu is held.
func (d *downlink) fits() bool {
	d.full = d.full || d.waiting > maxMessages || d.audio > d.most.audio || d.bytes > d.most.all
	return !d.full
}

// openItem lets the audio of an item through and announces it.
func (d *downlink) openItem(m *wsclient.AudioStart) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open, d.isFirst, d.sent = m.ItemID, true, 0
	return d.push(m)
}

// claim says that the caller may write n bytes of an item's audio to the client
// itself, because the item is open, nothing is queued and nobody else is writing.
// It must then release. first says that it is the item's first frame.
func (d *downlink) claim(item string, n int) (first, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy || d.finished || item != d.open || d.head < len(d.entries) {
		return false, false
	}
	first = d.isFirst
	d.busy, d.isFirst = true, false
	d.sent += int64(n)
	return first, true
}

// release ends a claim.
func (d *downlink) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = false
	d.start()
}

// start starts the writer, if there is something to write and nobody writes. mu is held.
func (d *downlink) start() {
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
	if d.finished || item != d.open {
		d.flushed += int64(len(pcm))
		return true
	}
	if d.full {
		return false
	}
	if n := len(d.entries); n == d.head || d.entries[n-1].item != item || !d.entries[n-1].frame.extend(pcm, d.most.frame) {
		f := newFrame(pcm)
		d.entries = append(d.entries, downEntry{frame: f, item: d.open, first: d.isFirst})
		d.bytes += f.size()
	}
	d.isFirst = false
	d.audio += len(pcm)
	d.sent += int64(len(pcm))
	d.start()
	return d.fits()
}

// endItem says that an item is complete.
func (d *downlink) endItem(m *wsclient.AudioEnd) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var end *itemEnd
	if d.open == m.ItemID {
		d.open = ""
		end = &itemEnd{seq: d.seq + 1, m: m, audioMS: m.AudioMS, bytes: d.sent}
	}
	ok, err := d.push(m)
	if end != nil && d.seq == end.seq { // it has been queued
		last := &d.entries[len(d.entries)-1]
		last.item, last.end = m.ItemID, end
	}
	return ok, err
}

// flushItem drops what is queued of an item, shuts it, and tells the client.
func (d *downlink) flushItem(m *wsclient.AudioFlush) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == m.ItemID {
		d.open = ""
	}
	dropping := d.drop(func(item string) bool { return item == m.ItemID })
	ok, err := d.push(m)
	return ok, errors.Join(dropping, err)
}

// drop drops what is queued of some items, whatever it returns. mu is held.
func (d *downlink) drop(which func(item string) bool) error {
	kept := d.entries[:d.head]
	dropped := map[string]int64{}
	var failed []error
	for _, e := range d.entries[d.head:] {
		switch {
		case e.frame != nil && which(e.item):
			n := len(e.frame.pcm)
			d.audio -= n
			d.bytes -= e.frame.size()
			d.flushed += int64(n)
			dropped[e.item] += int64(n)
			e.frame.free()
			continue
		case e.end != nil && dropped[e.item] > 0:
			text, err := e.end.less(dropped[e.item])
			if err != nil {
				failed = append(failed, err)
				break
			}
			d.bytes += cap(text) - cap(e.text)
			e.text = text
		}
		kept = append(kept, e)
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	return errors.Join(failed...)
}

// finish drops all queued audio and queues the last messages. Nothing can be queued
// afterwards; wait waits until they are written.
func (d *downlink) finish(last ...wsclient.ServerMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	failed := d.drop(func(string) bool { return true })
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
	d.entries, d.head, d.audio, d.bytes = nil, 0, 0, 0
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
	} else {
		d.bytes -= cap(e.text)
		d.waiting--
	}
	if d.head > 64 && d.head*2 > len(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	return e, true
}

// itemBytes returns how much audio of an item has been queued, if it is open.
func (d *downlink) itemBytes(item string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if item != d.open {
		return 0
	}
	return d.sent
}

func (d *downlink) flushedBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushed
}

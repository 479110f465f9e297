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

// downlink is the queue to the client: messages and audio in one order. Audio enters it only for
// the item that is open, so that no audio of a flushed item can follow its flush. An item is
// announced with its first audio, so that the client never hears of an item that is dropped whole.
// Audio is never dropped frame by frame: a client that falls too far behind is disconnected
// (policy disconnectSlow), and after that, if it cannot come back, only the last messages are
// accepted. A writer goroutine, which exists only while something is queued, writes the entries.
type downlink struct {
	// Fixed after begin.
	most  downBounds
	write func(gen int) // the writer for an attachment: it pops until the queue is empty; nil if a test pops

	writer sync.WaitGroup // the writers; none is added once finished is set and the queue is empty

	mu       sync.Mutex // guards the following fields
	idle     sync.Cond  // signals that nobody is writing and the queue is empty
	entries  []downEntry
	head     int  // index of the oldest entry still queued
	audio    int  // bytes of audio in entries
	waiting  int  // messages in entries
	words    int  // bytes of messages in entries
	bytes    int  // memory that entries take, in bytes
	full     bool // too much was queued
	seq      int64
	items    []outgoing // items with audio or an announcement still to come or be written, oldest first
	clock    orchestrator.PlayClock
	flushed  int64 // bytes dropped by flushes, by the end, and of items that were not open
	sent     int64 // bytes written
	busy     bool  // somebody is writing for gen: the writer, or the holder of a claim
	finished bool  // nothing is accepted any more

	gen     int      // the attachment that is written to; what writers for older ones do is ignored
	silent  bool     // the attachment is told nothing yet; see lead
	away    bool     // there is no attachment: everything waits
	back    bool     // resume has decided what the next attachment gets, and nothing of it may be dropped before attach
	gap     bool     // messages that had to wait were dropped
	charged int64    // bytes that are counted in the hoard, while away
	short   []string // items of which audio that had to wait was dropped
	held    holding
	known   []announcement // of the latest items, oldest first
	replays []replay       // of which the client may have a part; the newest attachment's is the last
}

// outgoing is an item on its way to the client. Its audio is accepted from openItem until the item
// ends or is flushed.
type outgoing struct {
	item         string
	start        []byte    // announces the item with its first audio; nil once queued
	queued, sent int64     // bytes of audio: all, and those that were written
	until        time.Time // when a client that plays at once has played what was sent
	ended        bool
	shut         bool  // no more of its audio is accepted
	told         int64 // the value of sent when left was last called
	turn         int
}

// downEntry is a message, or a frame; an item's first frame has the item's announcement with it.
type downEntry struct {
	text  []byte
	seq   int64 // the seq inside text
	frame *audio.Frame
	item  string             // the item of the frame, or of end
	opens bool               // a message of kind repeats announces an item
	end   *protocol.AudioEnd // the message that text encodes
	kind  entryKind
	last  bool // the last frame of an item that is sent again
}

// entryKind tells what is special about an entry.
type entryKind uint8

const (
	plain   entryKind = iota
	repeats           // text was sent before, with the same seq
	lead              // text belongs to the beginning of an attachment, and is never sent again
	lasting           // text stays if other messages that wait are dropped
)

// tells reports whether the orchestrator must be told when e has been written.
func (e downEntry) tells() bool { return e.end != nil || e.frame != nil && e.text != nil || e.last }

// announces reports whether e is the first that a client hears of an item. Audio that is sent again has an
// announcement, too, but the client knows its item.
func (e downEntry) announces() bool { return e.frame != nil && e.text != nil && e.kind != lead }

// downBounds bound what may be queued for a client, in bytes.
type downBounds struct {
	rate  int // sample rate of the audio, Hz
	audio int // of audio
	all   int // memory, for audio and messages
	frame int // audio that is joined to one frame
	away  int // audio that waits for a client that is away
}

// maxMessages is how many messages may be queued for a client.
const maxMessages = 4096

// keepEntries is the capacity that an empty queue keeps.
const keepEntries = 16

// begin must be called first.
func (d *downlink) begin(most downBounds, write func(gen int)) {
	d.most, d.write, d.idle.L = most, write, &d.mu
}

// pushMessage queues a message with the next seq. It reports false if the client is too far
// behind.
func (d *downlink) pushMessage(m protocol.ServerMessage) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.push(m)
}

// push is pushMessage for a caller that holds mu.
func (d *downlink) push(m protocol.ServerMessage) (bool, error) {
	if d.finished || d.refuses() {
		return !d.full, nil
	}
	seq := d.seq + int64(d.waiting) + 1
	text, err := protocol.EncodeServer(seq, m)
	if err != nil {
		return true, err
	}
	d.entries = append(d.entries, downEntry{text: text, seq: seq})
	d.waiting++
	d.words += cap(text)
	d.bytes += cap(text)
	d.run()
	if d.away {
		d.boundWaiting()
		return true, nil
	}
	return d.fits(), nil
}

// refuses reports whether too much is queued for a client that cannot come back. What a client that
// can come back is still to get is kept: it loses its connection at once. The caller must hold mu.
func (d *downlink) refuses() bool { return d.full && !d.held.on() }

// fits reports whether the queue is within its bounds. The caller must hold mu.
func (d *downlink) fits() bool {
	d.full = d.full || d.waiting > maxMessages || d.audio > d.most.audio || d.bytes > d.most.all
	return !d.full
}

// openItem accepts the audio of an item from now on; m announces the item.
func (d *downlink) openItem(m *protocol.AudioStart) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := protocol.EncodeServer(0, m) // its seq is set when it is written
	if err != nil {
		return err
	}
	d.items = append(d.items, outgoing{item: m.ItemID, start: text, turn: m.Turn})
	return nil
}

// open returns an item if its audio is accepted, otherwise nil; only the newest item's can be. The
// caller must hold mu.
func (d *downlink) open(item string) *outgoing {
	if n := len(d.items); n > 0 && d.items[n-1].item == item && !d.items[n-1].ended && !d.items[n-1].shut {
		return &d.items[n-1]
	}
	return nil
}

// outgoing returns the item with that id; nil if it is unknown. The caller must hold mu.
func (d *downlink) outgoing(item string) *outgoing {
	for i := range d.items {
		if d.items[i].item == item {
			return &d.items[i]
		}
	}
	return nil
}

// claim reports whether the caller may itself write an item's audio to that attachment: the item is
// open and announced, the queue is empty and nobody else is writing. The caller must then call
// release.
func (d *downlink) claim(gen int, item string, pcm []byte) bool {
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

// release ends a claim: n bytes of the item have been written.
func (d *downlink) release(gen int, item string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen != d.gen || d.away {
		return // the attachment was lost meanwhile
	}
	d.wrote(item, n)
	d.busy = false
	d.run()
}

// written records that an entry was written to that attachment.
func (d *downlink) written(gen int, e downEntry) {
	if e.frame == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen == d.gen && !d.away {
		d.wrote(e.item, len(e.frame.PCM))
	}
}

// wrote is written for a caller that holds mu. An item that was flushed meanwhile is unknown.
func (d *downlink) wrote(item string, n int) {
	d.sent += int64(n)
	if o := d.outgoing(item); o != nil {
		o.sent += int64(n)
		o.until = d.clock.Add(time.Now(), audio.Duration(d.most.rate, n))
	}
}

// left returns how much of each item has been sent to the client, for the items of which more has
// been sent since the last call.
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

// run starts the writer, if something is queued and nobody is writing. The caller must hold mu.
func (d *downlink) run() {
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

// pushAudio queues a copy of pcm if its item is open. It reports false if the client is too far
// behind.
func (d *downlink) pushAudio(item string, pcm []byte) bool {
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
	if d.away && !d.back && d.audio+len(pcm) > d.most.away {
		o.shut = true // it ends with what has come so far
		d.flushed += int64(len(pcm))
		return true
	}
	n := len(d.entries)
	if o.start != nil || n == d.head || d.entries[n-1].item != item || !d.entries[n-1].frame.Extend(pcm, d.joined()) {
		e := downEntry{frame: d.newFrame(pcm), item: item, text: o.start}
		d.entries = append(d.entries, e)
		d.bytes += e.frame.Size() + cap(e.text)
		if o.start != nil {
			o.start = nil
			d.waiting++
			d.words += cap(e.text)
		}
	}
	d.audio += len(pcm)
	o.queued += int64(len(pcm))
	d.run()
	if d.away {
		d.boundWaiting()
		return true
	}
	return d.fits()
}

// newFrame returns a frame with a copy of pcm. One that waits for a client that is away takes no
// more memory than its audio.
func (d *downlink) newFrame(pcm []byte) *audio.Frame {
	if d.away {
		return &audio.Frame{PCM: append(make([]byte, 0, len(pcm)), pcm...)}
	}
	return audio.NewFrame(pcm)
}

// joined returns how much audio may be joined to one frame, in bytes.
func (d *downlink) joined() int {
	if d.away {
		return 0
	}
	return d.most.frame
}

// endItem marks an item as complete. Its length is determined when the message is written: as much
// as was sent of it. For an item without audio, no message is sent.
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

// flushItem drops an item's queued audio, closes the item and, if the client knows the item, tells
// the client.
func (d *downlink) flushItem(m *protocol.AudioFlush) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := !d.drop(func(item string) bool { return item == m.ItemID }, false)
	for i, o := range d.items {
		if o.item == m.ItemID {
			known = known && o.queued > 0
			d.held.letGo(func(item string) bool { return item == m.ItemID })
			d.items = append(d.items[:i], d.items[i+1:]...)
			break
		}
	}
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

// flushForEnd puts a flush in the place of the item's end, with its number, if that waits to be sent again: it
// would promise the client audio that is not sent any more. The caller must hold mu.
func (d *downlink) flushForEnd(m *protocol.AudioFlush) (replaced bool, err error) {
	for i, e := range d.entries[d.head:] {
		if e.kind != repeats || e.end == nil || e.end.ItemID != m.ItemID {
			continue
		}
		text, err := protocol.EncodeServer(e.seq, m)
		if err != nil {
			return false, err
		}
		more := cap(text) - cap(e.text)
		d.words += more
		d.bytes += more
		d.entries[d.head+i] = downEntry{text: text, seq: e.seq, kind: repeats}
		d.charge()
		return true, nil
	}
	return false, nil
}

// drop drops the queued audio of some items and the messages about their ends. If keepEnds is set,
// it keeps the end of each item that the client knows. A message that is sent again stays, since its number
// is known. It reports whether there is an item that the client does not know, and never will. The caller
// must hold mu.
func (d *downlink) drop(which func(item string) bool, keepEnds bool) (unheard bool) {
	kept := d.entries[:d.head]
	var whole []string // items that were not announced
	for _, e := range d.entries[d.head:] {
		if e.item == "" || !which(e.item) || e.kind == repeats || e.end != nil && keepEnds && !slices.Contains(whole, e.item) {
			kept = append(kept, e)
			continue
		}
		if e.frame != nil {
			n := len(e.frame.PCM)
			d.audio -= n
			d.bytes -= e.frame.Size()
			d.flushed += int64(n)
			e.frame.Free()
			if e.announces() {
				whole = append(whole, e.item)
			}
		}
		if e.text != nil {
			d.waiting--
			d.words -= cap(e.text)
			d.bytes -= cap(e.text)
		}
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	d.charge()
	return len(whole) > 0
}

// finish drops all queued audio and queues the last messages. Nothing can be queued afterwards;
// wait waits until they are written.
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

// wait waits until the queue is written or lost. It may be called only after finish or lose.
func (d *downlink) wait() {
	d.mu.Lock()
	for !d.away && (d.busy || d.head < len(d.entries)) {
		d.idle.Wait()
	}
	d.mu.Unlock()
	d.writer.Wait()
}

// lose drops the queue and everything that is added later, because the client has gone.
func (d *downlink) lose() {
	d.mu.Lock()
	for _, e := range d.entries[d.head:] {
		if e.frame != nil {
			e.frame.Free()
		}
	}
	d.entries, d.head, d.audio, d.words, d.bytes, d.waiting = nil, 0, 0, 0, 0, 0
	d.held.clear()
	d.finished = true
	d.charge()
	d.mu.Unlock()
	if h := d.held.hoard; h != nil {
		h.join(d)
	}
}

// pop returns the oldest entry, for that attachment's writer to write. It reports false if the queue
// is empty or the attachment is not the newest any more; the writer must then end.
func (d *downlink) pop(gen int) (e downEntry, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen != d.gen || d.away {
		return downEntry{}, false
	}
	if d.head == len(d.entries) {
		d.entries, d.head = d.entries[:0], 0
		if cap(d.entries) > keepEntries {
			d.entries = nil // the backlog is over: release its memory
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
		d.audio -= len(e.frame.PCM)
		d.bytes -= e.frame.Size()
	}
	if e.text != nil {
		d.words -= cap(e.text)
		d.bytes -= cap(e.text)
		d.waiting--
		e = d.numbered(e)
	}
	if e.frame != nil {
		d.held.audio(e.item, e.frame.PCM)
	}
	if d.head > 64 && d.head*2 > len(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	return e, true
}

// numbered returns an entry whose message is about to be written with its final text, and holds the
// message. The caller must hold mu.
func (d *downlink) numbered(e downEntry) downEntry {
	if e.kind == repeats {
		if e.end != nil {
			e.text = d.final(e, e.seq)
		}
		d.held.message(e.seq, e.text, "", 0)
		d.held.told(e.end)
		return e
	}
	d.seq++
	e.text = d.final(e, d.seq)
	if e.kind == lead {
		return e
	}
	if n := len(d.replays); n > 0 && d.replays[n-1].live == 0 {
		d.replays[n-1].live = d.seq
	}
	if e.end != nil {
		d.held.endedWith(e.item, d.seq)
	}
	if announced := d.outgoing(e.item); e.frame != nil && announced != nil {
		d.announced(e.item)
		d.held.message(d.seq, e.text, e.item, announced.turn)
	} else {
		d.held.message(d.seq, e.text, "", 0)
		d.held.told(e.end)
	}
	return e
}

// final returns the message of an entry that is about to be written with that seq. The seq may have changed
// since it was queued, and so may the sent length of the item that it ends. The caller must hold
// mu.
func (d *downlink) final(e downEntry, seq int64) []byte {
	if e.end != nil {
		if o := d.outgoing(e.item); o != nil {
			e.end.AudioMS = audio.MS(d.most.rate, int(o.sent))
		}
		if text, err := protocol.EncodeServer(seq, e.end); err == nil { // unchanged since it was queued
			return text
		}
	}
	if e.seq != seq {
		return protocol.Renumber(e.text, seq)
	}
	return e.text
}

// itemBytes returns how much audio of an item has been queued; zero once it has ended.
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

func (d *downlink) sentBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent
}

// lastSeq returns the highest seq that was given.
func (d *downlink) lastSeq() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seq
}

// backlog returns how much audio waits for the client.
func (d *downlink) backlog() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return audio.Duration(d.most.rate, d.audio)
}

package session

import (
	"slices"

	"voicegw/protocol"
)

// The bounds on what a session keeps of what it has sent. A client tells repeats apart among the
// last 1,024 messages, so more would be of no use.
const (
	maxHeldMessages = 1024
	maxHeldBytes    = 256 << 10
)

// holding is what a downlink has sent and its client may not have received: messages, and audio by its
// position in its item, in the order in which they were sent. A downlink without hoard holds
// nothing. The downlink's lock guards it.
type holding struct {
	hoard *hoard // nil if clients may not come back
	most  int    // bytes of audio that may be held
	ring  int    // messages that may be held, or wait for a client that is away

	sent     []sentEntry
	messages int   // messages in sent
	bytes    int   // bytes of messages in sent
	lost     int64 // messages up to this seq may have been dropped
	items    []*heldItem
	chunks   int // chunks in items
}

// sentEntry is a message, or a part of an item's audio.
type sentEntry struct {
	seq      int64
	text     []byte // nil for audio
	item     string // the item of the audio, or that the message announces
	from, to int64  // the part, in bytes of the item

	end *protocol.AudioEnd // what the message says; nil for others
}

// heldItem is an item of which audio was sent.
type heldItem struct {
	id      string
	turn    int
	started int64 // seq of the message that announced it
	ended   int64 // seq of its audio.end; zero if that was not sent yet
	whole   int64 // its length, once its audio.end was sent
	tail    int64 // where the last frame that was sent of it began
	// The audio from position base to position end is held; first is the position of the first
	// byte of chunks.
	first, base, end int64
	chunks           []*chunk
}

// on reports whether anything is held.
func (h *holding) on() bool { return h.hoard != nil }

// message holds a message that is being sent. item is the item that it announces, if it does.
func (h *holding) message(seq int64, text []byte, item string, turn int) {
	if !h.on() {
		return
	}
	if item != "" {
		if it := h.item(item); it == nil {
			h.items = append(h.items, &heldItem{id: item, turn: turn, started: seq})
		}
	}
	h.sent = append(h.sent, sentEntry{seq: seq, text: text, item: item})
	h.messages++
	h.bytes += len(text)
	for h.messages > h.ring || h.bytes > maxHeldBytes {
		h.dropMessage()
	}
	if len(h.sent) > 3*h.ring {
		h.tidy(0)
	}
}

// dropMessage drops the oldest message.
func (h *holding) dropMessage() {
	i := slices.IndexFunc(h.sent, func(e sentEntry) bool { return e.text != nil })
	h.lost = max(h.lost, h.sent[i].seq)
	h.messages--
	h.bytes -= len(h.sent[i].text)
	h.sent = slices.Delete(h.sent, i, i+1)
}

// item returns the item with that id; nil if it is unknown.
func (h *holding) item(id string) *heldItem {
	for _, it := range h.items {
		if it.id == id {
			return it
		}
	}
	return nil
}

// audio holds a copy of audio that is being sent.
func (h *holding) audio(item string, pcm []byte) {
	it := h.item(item)
	if it == nil {
		return // nothing is held, or the item was let go
	}
	from := it.end
	it.tail = max(it.tail, from)
	for len(pcm) > 0 {
		if it.room() == 0 && !h.grow(it) {
			it.end += int64(len(pcm))
			it.first, it.base = it.end, it.end
			break
		}
		n := copy(it.chunks[len(it.chunks)-1][chunkSize-it.room():], pcm)
		it.end += int64(n)
		pcm = pcm[n:]
	}
	if n := len(h.sent); n > 0 && h.sent[n-1].text == nil && h.sent[n-1].item == item && h.sent[n-1].to == from {
		h.sent[n-1].to = it.end
		return
	}
	h.sent = append(h.sent, sentEntry{item: item, from: from, to: it.end})
}

// room returns how many bytes the item's last chunk still takes.
func (it *heldItem) room() int64 { return int64(len(it.chunks))*chunkSize - (it.end - it.first) }

// grow gives an item another chunk: a new one or, if too much is held, the oldest. It reports false
// if no chunk is left.
func (h *holding) grow(it *heldItem) bool {
	var c *chunk
	if h.chunks*chunkSize < h.most && h.hoard.take() {
		c = chunks.Get().(*chunk)
		h.chunks++
	} else if oldest := h.oldest(); oldest != nil {
		c = oldest.dropChunk()
	} else {
		return false
	}
	it.chunks = append(it.chunks, c)
	return true
}

// oldest returns the oldest item that has a chunk.
func (h *holding) oldest() *heldItem {
	for _, it := range h.items {
		if len(it.chunks) > 0 {
			return it
		}
	}
	return nil
}

// dropChunk takes the item's first chunk.
func (it *heldItem) dropChunk() *chunk {
	c := it.chunks[0]
	n := copy(it.chunks, it.chunks[1:])
	it.chunks[n] = nil
	it.chunks = it.chunks[:n]
	it.first += chunkSize
	it.base = min(max(it.base, it.first), it.end)
	if n == 0 {
		it.first, it.base = it.end, it.end
	}
	return c
}

// read appends the audio from one position to another, which must be held, to pcm.
func (it *heldItem) read(pcm []byte, from, to int64) []byte {
	for from < to {
		at := from - it.first
		c := it.chunks[at/chunkSize]
		n := min(chunkSize-at%chunkSize, to-from)
		pcm = append(pcm, c[at%chunkSize:at%chunkSize+n]...)
		from += n
	}
	return pcm
}

// received lets go of an item's audio up to a position.
func (h *holding) received(item string, to int64) {
	it := h.item(item)
	if it == nil {
		return
	}
	to = min(to, it.end)
	for len(it.chunks) > 0 && (it.first+chunkSize <= to || to == it.end) {
		h.free(it.dropChunk())
	}
	it.base = max(it.base, to)
}

func (h *holding) free(c *chunk) {
	chunks.Put(c)
	h.chunks--
	h.hoard.give(1)
}

// letGo forgets the items for which over returns true.
func (h *holding) letGo(over func(item string) bool) {
	if len(h.items) == 0 {
		return
	}
	h.items = slices.DeleteFunc(h.items, func(it *heldItem) bool {
		gone := over(it.id)
		if gone {
			for len(it.chunks) > 0 {
				h.free(it.dropChunk())
			}
		}
		return gone
	})
	h.tidy(0)
}

// tidy removes messages up to that seq, and audio that is not held any more.
func (h *holding) tidy(seq int64) {
	h.sent = slices.DeleteFunc(h.sent, func(e sentEntry) bool {
		if e.text == nil {
			it := h.item(e.item)
			return it == nil || e.to <= it.base
		}
		if e.seq > seq {
			return false
		}
		h.messages--
		h.bytes -= len(e.text)
		h.lost = max(h.lost, e.seq)
		return true
	})
	if len(h.sent) == 0 && cap(h.sent) > keepEntries {
		h.sent = nil
	}
}

// clear forgets everything.
func (h *holding) clear() {
	if h.on() {
		h.letGo(func(string) bool { return true })
		h.sent, h.items, h.messages, h.bytes = nil, nil, 0, 0
	}
}

// known reports whether a client that has received everything up to that seq knows the item.
func (it *heldItem) known(seq int64) bool { return it.started <= seq }

// positionOf returns the index of an item and how much of it the client has, in bytes. The client
// surely has all messages up to last.
func (h *holding) positionOf(has *protocol.ResumeAudio, last, perMS int64) (index int, bytes int64) {
	index = slices.IndexFunc(h.items, func(it *heldItem) bool { return it.id == has.ItemID })
	if index < 0 {
		return index, 0
	}
	it := h.items[index]
	if it.ended > 0 && it.end == it.whole && has.ReceivedMS >= it.end/perMS && (it.ended <= last || it.tail/perMS < it.end/perMS) {
		return index, it.end // it has all of it, and has rounded down
	}
	return index, min(has.ReceivedMS, it.end/perMS) * perMS
}

// endedWith records the seq of an item's audio.end.
func (h *holding) endedWith(item string, seq int64) {
	if it := h.item(item); it != nil {
		it.ended, it.whole = seq, it.end
	}
}

// told notes that the message that was held last is the end of an item.
func (h *holding) told(m *protocol.AudioEnd) {
	if n := len(h.sent); n > 0 && h.on() {
		h.sent[n-1].end = m
	}
}

// endedAt returns the item whose audio.end has that seq; nil if it is unknown.
func (h *holding) endedAt(seq int64) *heldItem {
	for _, it := range h.items {
		if it.ended == seq {
			return it
		}
	}
	return nil
}

// announcement is the message that has told the client of an item. It is remembered for longer than
// the message itself is held.
type announcement struct {
	item string
	seq  int64
}

// maxAnnounced is how many announcements are remembered: no fewer than a checkpoint has items.
const maxAnnounced = 8

// announced remembers that the message that is being written announces an item. The caller must hold mu.
func (d *downlink) announced(item string) {
	if slices.ContainsFunc(d.known, func(a announcement) bool { return a.item == item }) {
		return
	}
	if len(d.known) == maxAnnounced {
		d.known = slices.Delete(d.known, 0, 1)
	}
	d.known = append(d.known, announcement{item, d.seq})
}

// announcedWith returns the seq of the message that has announced one of the latest items, or that waits
// to; zero if no message announces it.
func (d *downlink) announcedWith(item string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.known {
		if a.item == item {
			return a.seq
		}
	}
	seq := d.seq
	for _, e := range d.entries[d.head:] {
		if e.text != nil && e.kind != repeats {
			seq++
		}
		if e.item == item && e.announces() {
			return seq
		}
	}
	return 0
}

// keep makes the queue keep what it has sent until the client has it: at most audio bytes and ring messages, within hoard.
// It must be called before the queue is used.
func (d *downlink) keep(hoard *hoard, audio, ring int) {
	d.held = holding{hoard: hoard, most: audio, ring: ring}
}

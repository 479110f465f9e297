package downlink

import (
	"slices"
	"sync"
	"sync/atomic"

	"voicegw/protocol"
)

// Limits of the replay buffer. Clients detect repeats among the last 1,024 messages only.
const (
	MaxKept      = 1024
	maxHeldBytes = 256 << 10
)

// replayBuffer keeps sent but unconfirmed messages and audio; nothing without a budget. The queue's lock guards it.
type replayBuffer struct {
	budget *Budget // nil if clients may not come back
	most   int32   // bytes of audio that may be held
	ring   int32   // messages that may be held, or wait for an absent client

	sent     []sentEntry
	messages int32 // messages in sent
	chunks   int32 // chunks in items
	bytes    int   // bytes of messages in sent
	lost     int64 // messages up to this seq may have been dropped
	items    []*heldItem
	probe    *probe // nil before the first
}

// probe is a WebSocket ping to a client without playback reports. The pong proves that everything before it arrived.
type probe struct {
	number uint32 // of the latest one on this attachment; from 1
	open   bool   // it is not answered yet
	acked  bool   // the client acknowledges by itself, so it gets no probes
	chunks int32  // were kept after the previous answer
}

// probeChunks is how much audio is sent before the next probe: half a second at 24 kHz.
const probeChunks = 3

// dueProbe returns the number of a probe to send now; zero for none.
func (h *replayBuffer) dueProbe() uint32 {
	freed := int32(0)
	if p := h.probe; p != nil {
		if p.open || p.acked {
			return 0
		}
		freed = p.chunks
	}
	if h.chunks <= freed+probeChunks {
		return 0
	}
	if h.probe == nil {
		h.probe = new(probe)
	}
	h.probe.number++
	h.probe.open = true
	for _, it := range h.items {
		it.probed = it.end
	}
	return h.probe.number
}

// proven frees the audio before a probe, of each item up to the position that until returns. It returns false for an
// unknown probe.
func (h *replayBuffer) proven(number uint32, until func(item string) int64) bool {
	if h.probe == nil || !h.probe.open || number != h.probe.number {
		return false
	}
	for _, it := range h.items {
		h.received(it.id, min(it.probed, until(it.id)))
	}
	h.probe.open, h.probe.chunks = false, h.chunks
	return true
}

func (h *replayBuffer) acked() {
	if h.probe == nil {
		h.probe = new(probe)
	}
	h.probe.acked = true
}

type sentEntry struct {
	seq      int64
	text     []byte // nil for audio
	item     string // the item of the audio, or that the message announces
	from, to int64  // the part, in bytes of the item

	end *protocol.AudioEnd // the encoded message, if it is one
}

type heldItem struct {
	id      string
	turn    int
	started int64 // seq of the message that announced it
	ended   int64 // seq of its audio.end; zero if that was not sent yet
	whole   int64 // its length, once its audio.end was sent
	tail    int64 // where the last frame that was sent of it began
	probed  int64 // its end at the latest probe
	// The audio from position base to position end is held; first is the position of the first byte of chunks.
	first, base, end int64
	chunks           []*chunk
}

func (h *replayBuffer) on() bool { return h.budget != nil }

// message keeps a message that is being sent. item is the item it announces, if any.
func (h *replayBuffer) message(seq int64, text []byte, item string, turn int) {
	if !h.on() {
		return
	}
	if item != "" && h.item(item) == nil {
		h.items = append(h.items, &heldItem{id: item, turn: turn, started: seq})
	}
	h.sent = append(h.sent, sentEntry{seq: seq, text: text, item: item})
	h.messages++
	h.bytes += len(text)
	for h.messages > h.ring || h.bytes > maxHeldBytes {
		h.dropMessage()
	}
	if len(h.sent) > 3*int(h.ring) {
		h.tidy(0)
	}
}

func (h *replayBuffer) dropMessage() {
	i := slices.IndexFunc(h.sent, func(e sentEntry) bool { return e.text != nil })
	h.lost = max(h.lost, h.sent[i].seq)
	h.messages--
	h.bytes -= len(h.sent[i].text)
	h.sent = slices.Delete(h.sent, i, i+1)
}

func (h *replayBuffer) item(id string) *heldItem {
	for _, it := range h.items {
		if it.id == id {
			return it
		}
	}
	return nil
}

func (h *replayBuffer) audio(item string, pcm []byte) {
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

// room returns the free bytes of the item's last chunk.
func (it *heldItem) room() int64 { return int64(len(it.chunks))*chunkSize - (it.end - it.first) }

// grow gives an item another chunk: a new one, or the oldest one in use. It returns false without one.
func (h *replayBuffer) grow(it *heldItem) bool {
	var c *chunk
	if h.chunks*chunkSize < h.most && h.budget.take() {
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

func (h *replayBuffer) oldest() *heldItem {
	for _, it := range h.items {
		if len(it.chunks) > 0 {
			return it
		}
	}
	return nil
}

func (it *heldItem) dropChunk() *chunk {
	c := it.chunks[0]
	it.chunks = slices.Delete(it.chunks, 0, 1)
	it.first += chunkSize
	it.base = min(max(it.base, it.first), it.end)
	if len(it.chunks) == 0 {
		it.first, it.base = it.end, it.end
	}
	return c
}

// read appends the audio between two positions, which must be in the buffer, to pcm.
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

func (h *replayBuffer) received(item string, to int64) {
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

func (h *replayBuffer) free(c *chunk) {
	chunks.Put(c)
	h.chunks--
	h.budget.give(1)
}

func (h *replayBuffer) letGo(over func(item string) bool) {
	if len(h.items) == 0 {
		return
	}
	h.items = slices.DeleteFunc(h.items, func(it *heldItem) bool {
		gone := over(it.id)
		if gone {
			h.rewound(it, it.end)
		}
		return gone
	})
	h.tidy(0)
}

func (h *replayBuffer) tidy(seq int64) {
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

func (h *replayBuffer) clear() {
	if h.on() {
		h.letGo(func(string) bool { return true })
		h.sent, h.items, h.messages, h.bytes = nil, nil, 0, 0
	}
}

func (it *heldItem) known(seq int64) bool { return it.started <= seq }

// positionOf returns the item that the client names and the bytes it has of it. It has all messages up to last.
func (h *replayBuffer) positionOf(has *protocol.ResumeAudio, last, perMS int64) (index int, bytes int64) {
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

func (h *replayBuffer) endedWith(item string, seq int64) {
	if it := h.item(item); it != nil {
		it.ended, it.whole = seq, it.end
	}
}

func (h *replayBuffer) endedLast(m *protocol.AudioEnd) {
	if n := len(h.sent); n > 0 && h.on() {
		h.sent[n-1].end = m
	}
}

func (h *replayBuffer) endedAt(seq int64) *heldItem {
	for _, it := range h.items {
		if it.ended == seq {
			return it
		}
	}
	return nil
}

// announcement is the message that announced an item. It is remembered for longer than the message itself.
type announcement struct {
	item string
	seq  int64
}

// maxAnnounced is the number of announcements remembered: at least as many as a checkpoint has items.
const maxAnnounced = 8

// announced records that the message being written announces an item. The caller must hold mu.
func (d *Queue) announced(item string) {
	if slices.ContainsFunc(d.known, func(a announcement) bool { return a.item == item }) {
		return
	}
	if len(d.known) == maxAnnounced {
		d.known = slices.Delete(d.known, 0, 1)
	}
	d.known = append(d.known, announcement{item, d.seq})
}

// AnnouncedWith returns the seq of the message that announces one of the latest items; zero without one.
func (d *Queue) AnnouncedWith(item string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.known {
		if a.item == item {
			return a.seq
		}
	}
	seq := d.seq
	for _, e := range d.entries[d.head:] {
		if e.Text != nil && e.kind != repeats {
			seq++
		}
		if e.item == item && e.announces() {
			return seq
		}
	}
	return 0
}

// Keep enables replays of audio bytes and ring messages, within budget. Call it before the queue is used.
func (d *Queue) Keep(budget *Budget, audio, ring int) {
	d.held = replayBuffer{budget: budget, most: int32(audio), ring: int32(ring)}
}

// The limits of a Budget in bytes: everything kept for absent clients, and sent audio that is not yet confirmed.
const (
	budgetAll  = 192 << 20
	budgetKept = 64 << 20
)

// Budget counts the memory of all sessions for clients that may return. Its lock comes before a Queue's.
type Budget struct {
	all, kept int64 // the bounds, in bytes; fixed

	waiting    atomic.Int64 // bytes that wait for absent clients
	keptChunks atomic.Int64 // chunks of audio that was sent

	mu   sync.Mutex // guards the following field
	away []*Queue
}

// NewBudget returns a Budget with the default limits.
func NewBudget() *Budget { return &Budget{all: budgetAll, kept: budgetKept} }

// take reserves one chunk. It returns false if none is left.
func (h *Budget) take() bool {
	if h.keptChunks.Add(1)*chunkSize > h.kept {
		h.keptChunks.Add(-1)
		return false
	}
	return true
}

func (h *Budget) give(chunks int) { h.keptChunks.Add(-int64(chunks)) }

func (h *Budget) full() bool { return h.waiting.Load()+h.keptChunks.Load()*chunkSize > h.all }

func (h *Budget) leave(d *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = append(h.away, d)
}

func (h *Budget) join(d *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away = slices.DeleteFunc(h.away, func(other *Queue) bool { return other == d }); len(h.away) == 0 {
		h.away = nil
	}
}

func (h *Budget) shrink() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range h.away {
		if !h.full() {
			return
		}
		d := h.away[0]
		d.shed()
		copy(h.away, h.away[1:])
		h.away[len(h.away)-1] = d // it has nothing to lose for a while
	}
}

type chunk [chunkSize]byte

const chunkSize = 8 << 10

var chunks = sync.Pool{New: func() any { return new(chunk) }}

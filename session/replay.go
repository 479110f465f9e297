package session

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// A downlink without an attachment keeps everything that its client has not received: what waits in
// the queue, and what it holds of what was sent. When a client comes back, resume puts what that
// client lacks at the front of the queue, lead puts its session.started before that, and attach lets
// a writer begin.

// replay is what was sent again to an attachment. Until a client has a message that was written
// after the replay, it may lack a part of the replay, whatever its highest seq is.
type replay struct {
	started  int64 // seq of the session.started before the replay
	from     int64 // seq with which the replay began
	snapshot bool
	live     int64 // seq of the first message after the replay; zero if none was written yet
}

// maxReplays is how many replays are remembered of which the client may have a part.
const maxReplays = 8

// partOf returns the replay of which a client may have only a part whose highest seq is last; nil
// if the client has all of them. The caller must hold mu.
func (d *downlink) partOf(last int64) *replay {
	for i := len(d.replays) - 1; i >= 0; i-- {
		if r := &d.replays[i]; last >= r.started {
			if r.live == 0 || last < r.live {
				return r
			}
			return nil
		}
	}
	return nil
}

// remember adds a replay. A client that has only a part of a replay that is forgotten needs a
// snapshot.
func (d *downlink) remember(r replay) {
	d.replays = append(d.replays, r)
	if len(d.replays) > maxReplays {
		d.replays = slices.Delete(d.replays, 0, 1)
		d.held.lost = max(d.held.lost, d.replays[0].started)
	}
}

// returned is what a client that comes back is given.
type returned struct {
	again    []orchestrator.Again
	gone     []string // items that the client knows and that cannot be sent again
	snapshot bool     // messages that the client lacks are not known any more
}

// detach records that the attachment is lost: from now on everything waits, within other bounds.
func (d *downlink) detach() {
	d.mu.Lock()
	d.away, d.busy, d.full = true, false, false
	if d.audio > d.most.away {
		d.dropAudio()
	}
	d.boundWaiting()
	d.charge()
	d.idle.Broadcast()
	finished := d.finished
	d.mu.Unlock()
	if h := d.held.hoard; h != nil && !finished {
		h.leave(d)
		d.crowd()
	}
}

// crowd makes room if all sessions together keep too much for clients that are away. The caller
// must not hold mu.
func (d *downlink) crowd() {
	if h := d.held.hoard; h != nil && h.full() {
		h.shrink()
	}
}

// charge counts in the hoard what waits while the client is away. The caller must hold mu.
func (d *downlink) charge() {
	if d.held.hoard == nil {
		return
	}
	var now int64
	if d.away && !d.finished {
		now = int64(d.bytes)
	}
	d.held.hoard.waiting.Add(now - d.charged)
	d.charged = now
}

// shed drops the audio that waits for a client that is away.
func (d *downlink) shed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.away || d.back {
		return
	}
	d.dropAudio()
	for _, it := range d.held.items {
		if it.end > it.base && !slices.Contains(d.short, it.id) {
			d.short = append(d.short, it.id)
		}
	}
	d.held.letGo(func(string) bool { return true })
}

// dropAudio drops the audio that waits. The items that lose some are flushed when the client is
// back. The caller must hold mu.
func (d *downlink) dropAudio() {
	announced := func(o outgoing) bool {
		return !slices.ContainsFunc(d.entries[d.head:], func(e downEntry) bool { return e.item == o.item && e.announces() })
	}
	for i := range d.items {
		o := &d.items[i]
		if o.sent == o.queued {
			continue
		}
		d.short = append(d.short, o.item)
		o.shut = true
		o.queued = 0
		if announced(*o) {
			o.queued = max(o.sent, 1) // so that its flush is told
		}
	}
	d.drop(func(item string) bool { return slices.Contains(d.short, item) }, false)
}

// boundWaiting drops the oldest messages that wait for a client that is away, if there are too
// many. A client that comes back then gets a snapshot. The caller must hold mu.
func (d *downlink) boundWaiting() {
	for !d.back && (d.waiting > d.held.ring || d.words > maxHeldBytes) {
		i := slices.IndexFunc(d.entries[d.head:], func(e downEntry) bool { return e.droppable() })
		if i < 0 {
			break
		}
		d.removeMessage(d.head + i)
		d.gap = true
	}
	d.charge()
}

// droppable reports whether e is only a message, which a snapshot can stand for.
func (e downEntry) droppable() bool { return e.frame == nil && e.end == nil && e.kind == plain }

func (d *downlink) removeMessage(i int) {
	e := d.entries[i]
	d.waiting--
	d.words -= cap(e.text)
	d.bytes -= cap(e.text)
	d.entries = slices.Delete(d.entries, i, i+1)
}

// acknowledged takes the client's report that it has everything up to that seq. A seq of a replay
// that may not be complete says only that the client had what came before the replay.
func (d *downlink) acknowledged(seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if part := d.partOf(seq); part != nil {
		seq = part.from - 1
	}
	d.held.tidy(min(seq, d.seq))
}

// received takes the client's report that it has so much of an item's audio.
func (d *downlink) received(item string, ms int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.received(item, min(ms, longestItemMS)*d.perMS())
}

// longestItemMS bounds positions that clients name, in ms.
const longestItemMS = 1 << 40

// letGo forgets the audio of items that are over.
func (d *downlink) letGo(over func(item string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.letGo(over)
}

// perMS returns how many bytes a ms of audio has.
func (d *downlink) perMS() int64 { return int64(audio.Bytes(d.most.rate, time.Millisecond)) }

// resume puts what a client is missing at the front of the queue: it has received messages up to seq last, and
// the audio that has tells of, or none if has is nil. away is how long it was gone. barely reports whether the
// user has heard next to nothing of an item. The downlink must be detached.
func (d *downlink) resume(last int64, has *protocol.ResumeAudio, away time.Duration, barely func(item string) bool) returned {
	d.mu.Lock()
	defer d.mu.Unlock()
	part := d.partOf(last)
	r := replay{from: last + 1, snapshot: d.gap}
	if part != nil {
		r.from, r.snapshot = part.from, d.gap || part.snapshot
	}
	r.snapshot = r.snapshot || r.from <= d.held.lost || slices.ContainsFunc(d.replays, func(e replay) bool {
		return e.snapshot && last < e.started // an earlier snapshot has not arrived
	})
	back := returned{snapshot: r.snapshot, gone: d.short}
	needs := d.needs(min(last, r.from-1), has, barely, &back)
	w := rewinder{d: d, replay: r, has: has, unsure: part != nil, needs: needs}
	less := w.rewind(&back)
	// What an attachment that was lost at once has not been told of its beginning is not for this one.
	waiting := slices.DeleteFunc(d.entries[d.head:], func(e downEntry) bool {
		gone := e.kind == lead && e.frame == nil || r.snapshot && (e.droppable() || e.kind == repeats && !e.opens)
		if gone {
			d.waiting--
			d.words -= cap(e.text)
			d.bytes -= cap(e.text)
		}
		return gone
	})
	w.announceOpen(waiting, back.gone)
	d.entries, d.head = append(w.entries, waiting...), 0
	d.endAgain(min(last, r.from-1), has, r.snapshot)
	d.clock.Hold(away, audio.Duration(d.most.rate, int(less)))
	d.held.lost = max(d.held.lost, r.from-1)
	if r.snapshot {
		d.held.lost = d.seq
	}
	d.short, d.gap, d.back = nil, false, true
	d.remember(r)
	return back
}

// needs returns, for each item of which audio is held, the position from which the client needs it.
// Items that cannot be sent from there are gone. The client surely has all messages up to last.
func (d *downlink) needs(last int64, has *protocol.ResumeAudio, barely func(item string) bool, back *returned) map[string]int64 {
	needs := make(map[string]int64, len(d.held.items))
	index, position := -1, int64(0)
	if has != nil {
		index, position = d.held.positionOf(has, last, d.perMS())
	}
	for i, it := range d.held.items {
		switch {
		case i < index:
			continue // it has all of it
		case i == index:
			needs[it.id] = position
		case has == nil && it.known(last) && !barely(it.id):
			back.gone = append(back.gone, it.id)
			continue
		default:
			needs[it.id] = 0
		}
		if needs[it.id] < it.base || slices.Contains(d.short, it.id) {
			delete(needs, it.id)
			if !slices.Contains(back.gone, it.id) {
				back.gone = append(back.gone, it.id)
			}
		}
	}
	return needs
}

// rewinder turns what a downlink holds into entries of its queue again.
type rewinder struct {
	d       *downlink
	replay  replay
	has     *protocol.ResumeAudio // what the client has; may be nil
	unsure  bool                  // the client may know items whose announcement is sent again
	needs   map[string]int64
	current string // the item that the last announcement names
	entries []downEntry
}

// rewind makes the entries, and empties what is held: all of it is either received or sent again.
// It returns how many bytes of audio are sent again.
func (w *rewinder) rewind(back *returned) (less int64) {
	h := &w.d.held
	for _, e := range h.sent {
		if e.text != nil {
			w.message(e)
			continue
		}
		if from, ok := w.needs[e.item]; ok && from < e.to {
			w.audio(h.item(e.item), max(e.from, from), e.to)
		}
	}
	for _, it := range h.items {
		from, ok := w.needs[it.id]
		switch {
		case slices.Contains(back.gone, it.id):
			continue // its flush forgets it
		case !ok || from >= it.end:
			w.d.unsend(it, it.end) // the client has what was handed to the connection
			h.rewound(it, it.end)
			continue
		}
		w.lastOf(it.id)
		less += it.end - from
		w.d.unsend(it, from)
		back.again = append(back.again, orchestrator.Again{Item: it.id, Has: audio.Duration(w.d.most.rate, int(from))})
		h.rewound(it, from)
	}
	h.sent, h.messages, h.bytes = nil, 0, 0
	return less
}

// message queues a message that the client lacks.
func (w *rewinder) message(e sentEntry) {
	if w.replay.snapshot || e.seq < w.replay.from {
		return
	}
	if e.item != "" && !w.unsure {
		w.current = e.item
	}
	again := downEntry{text: e.text, seq: e.seq, opens: e.item != "", kind: repeats}
	if it := w.d.held.endedAt(e.seq); it != nil { // less of the item may be sent again than the end says
		again.item, again.end = it.id, &protocol.AudioEnd{Header: protocol.Header{Turn: it.turn}, ItemID: it.id, AudioMS: it.whole / w.d.perMS()}
	} else if e.end != nil {
		again.text = w.lostEnd(e)
	}
	w.add(again)
}

// lostEnd returns the message that stands for the end of an item whose audio is held no more, because it should
// have been heard by now: a flush, if the client's newest item is this one, or an earlier one, and the network has
// lost the rest. A client that names no item waits for no audio.
func (w *rewinder) lostEnd(e sentEntry) []byte {
	if w.has == nil || e.end.AudioMS == 0 || w.has.ItemID == e.end.ItemID && w.has.ReceivedMS >= e.end.AudioMS {
		return e.text
	}
	newest := slices.IndexFunc(w.d.known, func(a announcement) bool { return a.item == w.has.ItemID })
	if newest < 0 || e.seq < w.d.known[newest].seq {
		return e.text // it had ended before the newest one began
	}
	flush := &protocol.AudioFlush{Header: e.end.Header, ItemID: e.end.ItemID, Reason: string(orchestrator.FlushConnectionLost)}
	text, err := protocol.EncodeServer(e.seq, flush)
	if err != nil {
		return e.text // it holds strings and numbers only
	}
	return text
}

func (w *rewinder) add(e downEntry) {
	w.entries = append(w.entries, e)
	w.d.count(e)
}

// count adds an entry to what is queued. The caller must hold mu.
func (d *downlink) count(e downEntry) {
	if e.text != nil {
		d.waiting++
		d.words += cap(e.text)
		d.bytes += cap(e.text)
	}
	if e.frame != nil {
		d.audio += len(e.frame.PCM)
		d.bytes += e.frame.Size()
	}
}

// endAgain queues another audio.end for each item that the client would otherwise wait for: its first
// one does not come again, because the client surely has it (it has all messages up to last) and gets
// audio that opens the item once more, or because a snapshot stands for it. The caller must hold mu.
func (d *downlink) endAgain(last int64, has *protocol.ResumeAudio, snapshot bool) {
	for _, it := range d.held.items {
		if it.ended == 0 || it.ended > last && !snapshot {
			continue
		}
		frame := -1
		for i, e := range slices.Backward(d.entries) {
			if e.frame != nil && e.item == it.id {
				frame = i
				break
			}
		}
		if frame >= 0 || it.ended > last {
			d.insertEnd(frame+1, it.id, it.turn, it.whole/d.perMS())
		}
	}
	if snapshot && has != nil && d.held.item(has.ItemID) == nil {
		d.insertEnd(0, has.ItemID, 0, has.ReceivedMS)
	}
}

// insertEnd puts an audio.end into the queue. The caller must hold mu.
func (d *downlink) insertEnd(at int, item string, turn int, ms int64) {
	m := &protocol.AudioEnd{Header: protocol.Header{Turn: turn}, ItemID: item, AudioMS: ms}
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		return // it holds strings and numbers only
	}
	e := downEntry{text: text, item: item, end: m, kind: lead}
	d.entries = slices.Insert(d.entries, at, e)
	d.count(e)
}

// audio queues a part of an item.
func (w *rewinder) audio(it *heldItem, from, to int64) {
	for from < to {
		n := min(int64(w.d.most.frame), to-from)
		e := downEntry{item: it.id, frame: &audio.Frame{PCM: it.read(make([]byte, 0, n), from, from+n)}}
		if w.current != it.id {
			e.text, e.kind = w.announcement(it.id, it.turn, from), lead
		}
		w.add(e)
		from += n
	}
}

// announcement returns the message that says where the audio of an item that was announced before
// continues.
func (w *rewinder) announcement(item string, turn int, from int64) []byte {
	w.current = item
	m := &protocol.AudioStart{Header: protocol.Header{Turn: turn}, ItemID: item, FromMS: from / w.d.perMS()}
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		return nil // it holds strings and numbers only
	}
	return text
}

// announceOpen announces the item whose audio goes on, if the client knows it from an earlier
// attachment: that of the first audio that waits or, without any, the one that is open. An item
// that is gone is flushed instead.
func (w *rewinder) announceOpen(waiting []downEntry, gone []string) {
	item := ""
	if n := len(w.d.items); n > 0 && w.d.open(w.d.items[n-1].item) != nil && w.d.items[n-1].start == nil {
		item = w.d.items[n-1].item
	}
	if i := slices.IndexFunc(waiting, func(e downEntry) bool { return e.frame != nil }); i >= 0 {
		if waiting[i].text != nil || slices.ContainsFunc(waiting[:i], func(e downEntry) bool { return e.opens }) {
			return // the item is announced
		}
		item = waiting[i].item
	}
	it := w.d.held.item(item)
	if it == nil || item == w.current || slices.Contains(gone, item) {
		return
	}
	w.add(downEntry{text: w.announcement(item, it.turn, it.end), kind: lead})
}

// lastOf marks the last frame of an item.
func (w *rewinder) lastOf(item string) {
	for i := len(w.entries) - 1; i >= 0; i-- {
		if w.entries[i].item == item && w.entries[i].frame != nil {
			w.entries[i].last = true
			return
		}
	}
}

// unsend records that the audio of an item counts as sent up to a position, and no further. The
// caller must hold mu.
func (d *downlink) unsend(it *heldItem, to int64) {
	o := d.outgoing(it.id)
	if o == nil {
		if to < it.end {
			d.items = slices.Insert(d.items, 0, outgoing{item: it.id, queued: it.end, sent: to, told: to, ended: true, turn: it.turn})
		}
		return
	}
	if more := to - o.sent; more > 0 {
		o.until = d.clock.Add(time.Now(), audio.Duration(d.most.rate, int(more))) // it arrived before the connection broke
	}
	o.sent, o.told = to, min(o.told, to)
}

// rewound forgets an item's audio from a position on, because it is in the queue again.
func (h *holding) rewound(it *heldItem, to int64) {
	for len(it.chunks) > 0 {
		h.free(it.dropChunk())
	}
	it.end, it.first, it.base = to, to, to
}

// lead puts messages before everything that waits. The first is the attachment's session.started; nothing
// is written before speak is called.
func (d *downlink) lead(messages ...protocol.ServerMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var front []downEntry
	for _, m := range messages {
		text, err := protocol.EncodeServer(0, m)
		if err != nil {
			return err
		}
		e := downEntry{text: text, kind: lead}
		front = append(front, e)
		d.count(e)
	}
	d.entries, d.head = append(front, d.entries[d.head:]...), 0
	if n := len(d.replays); d.away && n > 0 {
		d.replays[n-1].started = d.seq + 1
	}
	d.silent = true
	return nil
}

// speak lets what lead has kept back be written to that attachment. It changes nothing for an older one.
func (d *downlink) speak(gen int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen == d.gen && !d.away {
		d.silent = false
		d.run()
	}
}

// speaks reports whether anything may have been written to the attachment.
func (d *downlink) speaks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.silent
}

// attach lets the queue be written to that attachment, once it may be told anything.
func (d *downlink) attach(gen int) {
	if d.held.hoard != nil {
		d.held.hoard.join(d)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gen, d.away, d.back, d.busy = gen, false, false, false
	d.charge()
	d.run()
}

// goOnAfter begins with the seq after last. A client that has a lower one gets a snapshot.
func (d *downlink) goOnAfter(last int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq, d.held.lost = last, last
}

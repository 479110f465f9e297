package downlink

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// A detached queue keeps everything its client has not received: the waiting entries and the replay buffer. When the
// client returns, Resume puts the missing part first, Lead adds session.started before it, and Attach starts the writer.

// replay is a set of messages sent again. Until the client has a later message, it may lack some of them.
type replay struct {
	started  int64 // seq of the session.started before the replay
	from     int64 // seq with which the replay began
	snapshot bool
	live     int64 // seq of the first message after the replay; zero if none was written yet
}

const maxReplays = 8

// partOf returns the replay that a client with the highest seq last may have only in part. The caller must hold mu.
func (d *Queue) partOf(last int64) *replay {
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

// remember adds a replay. If the oldest is forgotten, a client with a part of it needs a snapshot.
func (d *Queue) remember(r replay) {
	d.replays = append(d.replays, r)
	if len(d.replays) > maxReplays {
		d.replays = slices.Delete(d.replays, 0, 1)
		d.held.lost = max(d.held.lost, d.replays[0].started)
	}
}

// Resumed describes how a client resumes.
type Resumed struct {
	Again    []orchestrator.Again
	Gone     []string // items that the client knows and that cannot be sent again
	Snapshot bool     // messages that the client lacks are not known any more
	last     int64    // the client has all messages up to it
}

// Detach records the loss of the attachment. From now on everything waits, within the limits for absent clients.
func (d *Queue) Detach() {
	d.mu.Lock()
	d.away, d.busy, d.full = true, false, false
	if d.audio > d.most.Away {
		d.dropAudio()
	}
	d.boundWaiting()
	d.charge()
	d.idle.Broadcast()
	finished := d.finished
	d.mu.Unlock()
	if h := d.held.budget; h != nil && !finished {
		h.leave(d)
		d.Crowd()
	}
}

// Crowd makes room if all sessions together exceed the budget. The caller must not hold mu.
func (d *Queue) Crowd() {
	if h := d.held.budget; h != nil && h.full() {
		h.shrink()
	}
}

// charge adds the waiting bytes of an absent client to the budget. The caller must hold mu.
func (d *Queue) charge() {
	if d.held.budget == nil {
		return
	}
	var now int64
	if d.away && !d.finished {
		now = int64(d.bytes)
	}
	d.held.budget.waiting.Add(now - d.charged)
	d.charged = now
}

func (d *Queue) shed() {
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

// dropAudio drops the waiting audio. The affected items are flushed when the client resumes. The caller must hold mu.
func (d *Queue) dropAudio() {
	announced := func(o outgoing) bool {
		return !slices.ContainsFunc(d.entries[d.head:], func(e Entry) bool { return e.item == o.item && e.announces() })
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
			o.queued = max(o.sent, 1) // so that the client gets its flush
		}
	}
	d.drop(func(item string) bool { return slices.Contains(d.short, item) }, false)
}

// boundWaiting drops the oldest messages beyond the bounds; the client then gets a snapshot. The caller must hold mu.
func (d *Queue) boundWaiting() {
	for !d.back && (d.waiting > int(d.held.ring) || d.words > maxHeldBytes) {
		i := slices.IndexFunc(d.entries[d.head:], func(e Entry) bool { return e.droppable() })
		if i < 0 {
			break
		}
		d.count(d.entries[d.head+i], -1)
		d.entries = slices.Delete(d.entries, d.head+i, d.head+i+1)
		d.gap = true
	}
	d.charge()
}

func (e Entry) droppable() bool { return e.Frame == nil && e.end == nil && e.kind == plain }

// Acknowledged records that the client has all messages up to seq. Within an incomplete replay, that means only those
// before it.
func (d *Queue) Acknowledged(seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq > 0 {
		d.held.acked()
	}
	if part := d.partOf(seq); part != nil {
		seq = part.from - 1
	}
	d.held.tidy(min(seq, d.seq))
}

// Received records the client's report that it has ms milliseconds of an item's audio.
func (d *Queue) Received(item string, ms int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.received(item, min(ms, longestItemMS)*d.perMS())
}

// longestItemMS limits positions named by clients, in ms.
const longestItemMS = 1 << 40

// Proven records that the attachment gen has answered the probe of that number. Its program may not have taken what has
// arrived, so audio is kept that it should not have played for a while: until returns the end of the other, in ms.
func (d *Queue) Proven(gen int, probe uint32, until func(item string) int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	position := func(item string) int64 { return min(until(item), longestItemMS) * d.perMS() }
	if gen == d.gen && !d.away && d.held.proven(probe, position) {
		d.held.tidy(0)
	}
}

// LetGo forgets the audio of items for which over returns true.
func (d *Queue) LetGo(over func(item string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.letGo(over)
}

func (d *Queue) perMS() int64 { return int64(audio.Bytes(d.most.Rate, time.Millisecond)) }

// Resume puts what the client lacks at the front. It has messages up to last and the audio in has (may be nil). barely
// reports whether the user has heard next to nothing of an item. The queue must be detached.
func (d *Queue) Resume(last int64, has *protocol.ResumeAudio, away time.Duration, barely func(item string) bool) Resumed {
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
	back := Resumed{Snapshot: r.snapshot, Gone: d.short, last: min(last, r.from-1)}
	needs := d.needs(back.last, has, barely, &back)
	w := rewinder{d: d, replay: r, has: has, unsure: part != nil, needs: needs}
	less := w.rewind(&back)
	// Messages for the beginning of an attachment that was lost at once are not for this one.
	waiting := slices.DeleteFunc(d.entries[d.head:], func(e Entry) bool {
		gone := e.kind == lead && e.Frame == nil || r.snapshot && (e.droppable() || e.kind == repeats && !e.opens)
		if gone {
			d.count(e, -1)
		}
		return gone
	})
	w.announceOpen(waiting, back.Gone)
	d.entries, d.head = append(w.entries, waiting...), 0
	d.endAgain(back.last, has, r.snapshot)
	d.clock.Hold(away, audio.Duration(d.most.Rate, int(less)))
	d.held.lost = max(d.held.lost, r.from-1)
	if r.snapshot {
		d.held.lost = d.seq
	}
	d.short, d.gap, d.back = nil, false, true
	d.remember(r)
	return back
}

// Flush flushes the Gone items that FlushItem has not flushed since Resume, because by the clock the user had heard them.
// An item that the client never hears of is forgotten instead.
func (r Resumed) Flush(d *Queue) error {
	for _, id := range r.Gone {
		d.mu.Lock()
		it := d.held.item(id)
		if it != nil && r.Snapshot && !it.known(r.last) {
			d.drop(func(item string) bool { return item == id }, false)
			d.held.letGo(func(item string) bool { return item == id })
			it = nil
		}
		d.mu.Unlock()
		if it == nil {
			continue
		}
		flush := &protocol.AudioFlush{Header: protocol.Header{Turn: it.turn}, ItemID: id, Reason: string(orchestrator.FlushConnectionLost)}
		if _, err := d.FlushItem(flush); err != nil {
			return err
		}
	}
	return nil
}

// needs returns the position from which the client needs each kept item; others are added to back.Gone. The client has
// all messages up to last.
func (d *Queue) needs(last int64, has *protocol.ResumeAudio, barely func(item string) bool, back *Resumed) map[string]int64 {
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
			back.Gone = append(back.Gone, it.id)
			continue
		default:
			needs[it.id] = 0
		}
		if needs[it.id] < it.base || slices.Contains(d.short, it.id) {
			delete(needs, it.id)
			if !slices.Contains(back.Gone, it.id) {
				back.Gone = append(back.Gone, it.id)
			}
		}
	}
	return needs
}

type rewinder struct {
	d       *Queue
	replay  replay
	has     *protocol.ResumeAudio // the client's position; may be nil
	unsure  bool                  // the client may know items whose announcement is sent again
	needs   map[string]int64
	current string // the item that the last announcement names
	entries []Entry
}

// rewind makes the entries and empties the buffer. It returns the bytes of audio that are sent again.
func (w *rewinder) rewind(back *Resumed) (less int64) {
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
		case slices.Contains(back.Gone, it.id):
			continue // its flush forgets it
		case !ok || from >= it.end:
			w.d.unsend(it, it.end) // the client has all that the connection accepted
			h.rewound(it, it.end)
			continue
		}
		if i := lastFrame(w.entries, it.id); i >= 0 {
			w.entries[i].last = true
		}
		less += it.end - from
		w.d.unsend(it, from)
		back.Again = append(back.Again, orchestrator.Again{Item: it.id, Has: audio.Duration(w.d.most.Rate, int(from))})
		h.rewound(it, from)
	}
	h.sent, h.messages, h.bytes = nil, 0, 0
	return less
}

func (w *rewinder) message(e sentEntry) {
	if w.replay.snapshot || e.seq < w.replay.from {
		return
	}
	if e.item != "" && !w.unsure {
		w.current = e.item
	}
	again := Entry{Text: e.text, seq: e.seq, opens: e.item != "", kind: repeats}
	if it := w.d.held.endedAt(e.seq); it != nil { // less of the item may be sent again than the end says
		again.item, again.end = it.id, &protocol.AudioEnd{Header: protocol.Header{Turn: it.turn}, ItemID: it.id,
			AudioMS: it.whole / w.d.perMS()}
	} else if e.end != nil {
		again.Text = w.lostEnd(e)
	}
	w.add(again)
}

// lostEnd flushes an item whose rest the network lost and nothing keeps. A client without an item expects no audio.
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

func (w *rewinder) add(e Entry) {
	w.entries = append(w.entries, e)
	w.d.count(e, 1)
}

// endAgain queues another audio.end for items that would stay open at the client, because audio reopens them or a
// snapshot replaces the end. The client has all messages up to last. The caller must hold mu.
func (d *Queue) endAgain(last int64, has *protocol.ResumeAudio, snapshot bool) {
	for _, it := range d.held.items {
		if it.ended == 0 || it.ended > last && !snapshot {
			continue
		}
		if frame := lastFrame(d.entries, it.id); frame >= 0 || it.ended > last {
			d.insertEnd(frame+1, it.id, it.turn, it.whole/d.perMS())
		}
	}
	if snapshot && has != nil && d.held.item(has.ItemID) == nil {
		d.insertEnd(0, has.ItemID, 0, has.ReceivedMS)
	}
}

// insertEnd inserts an audio.end into the queue. The caller must hold mu.
func (d *Queue) insertEnd(at int, item string, turn int, ms int64) {
	m := &protocol.AudioEnd{Header: protocol.Header{Turn: turn}, ItemID: item, AudioMS: ms}
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		return // it holds strings and numbers only
	}
	e := Entry{Text: text, item: item, end: m, kind: lead}
	d.entries = slices.Insert(d.entries, at, e)
	d.count(e, 1)
}

func (w *rewinder) audio(it *heldItem, from, to int64) {
	for from < to {
		n := min(int64(w.d.most.Frame), to-from)
		e := Entry{item: it.id, Frame: &audio.Frame{PCM: it.read(make([]byte, 0, n), from, from+n)}}
		if w.current != it.id {
			e.Text, e.kind = w.announcement(it.id, it.turn, from), lead
		}
		w.add(e)
		from += n
	}
}

func (w *rewinder) announcement(item string, turn int, from int64) []byte {
	w.current = item
	m := &protocol.AudioStart{Header: protocol.Header{Turn: turn}, ItemID: item, FromMS: from / w.d.perMS()}
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		return nil // it holds strings and numbers only
	}
	return text
}

// announceOpen announces the item whose audio continues, if the client knows it from before. It flushes one in gone.
func (w *rewinder) announceOpen(waiting []Entry, gone []string) {
	item := ""
	if n := len(w.d.items); n > 0 && w.d.open(w.d.items[n-1].item) != nil && w.d.items[n-1].start == nil {
		item = w.d.items[n-1].item
	}
	if i := slices.IndexFunc(waiting, func(e Entry) bool { return e.Frame != nil }); i >= 0 {
		if waiting[i].Text != nil || slices.ContainsFunc(waiting[:i], func(e Entry) bool { return e.opens }) {
			return // the item is announced
		}
		item = waiting[i].item
	}
	it := w.d.held.item(item)
	if it == nil || item == w.current || slices.Contains(gone, item) {
		return
	}
	w.add(Entry{Text: w.announcement(item, it.turn, it.end), kind: lead})
}

// lastFrame returns the index of an item's last frame; -1 without one.
func lastFrame(entries []Entry, item string) int {
	for i, e := range slices.Backward(entries) {
		if e.item == item && e.Frame != nil {
			return i
		}
	}
	return -1
}

// unsend sets the sent position of an item back. The caller must hold mu.
func (d *Queue) unsend(it *heldItem, to int64) {
	o := d.outgoing(it.id)
	if o == nil {
		if to < it.end {
			d.items = slices.Insert(d.items, 0, outgoing{item: it.id, queued: it.end, sent: to, told: to, ended: true, turn: it.turn})
		}
		return
	}
	if more := to - o.sent; more > 0 {
		o.until = d.clock.Add(time.Now(), audio.Duration(d.most.Rate, int(more))) // it arrived before the connection broke
	}
	o.sent, o.told = to, min(o.told, to)
}

// rewound forgets an item's audio from a position on, because it is queued again.
func (h *replayBuffer) rewound(it *heldItem, to int64) {
	for len(it.chunks) > 0 {
		h.free(it.dropChunk())
	}
	it.end, it.first, it.base = to, to, to
}

// Lead puts messages before everything that waits, first session.started. They are held back until Speak.
func (d *Queue) Lead(messages ...protocol.ServerMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var front []Entry
	for _, m := range messages {
		text, err := protocol.EncodeServer(0, m)
		if err != nil {
			return err
		}
		e := Entry{Text: text, kind: lead}
		front = append(front, e)
		d.count(e, 1)
	}
	d.entries, d.head = append(front, d.entries[d.head:]...), 0
	if n := len(d.replays); d.away && n > 0 {
		d.replays[n-1].started = d.seq + 1
	}
	d.silent = true
	return nil
}

// Speak releases the messages of Lead to the attachment gen. It ignores an older attachment.
func (d *Queue) Speak(gen int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen == d.gen && !d.away {
		d.silent = false
		d.run()
	}
}

// Speaks reports whether the attachment may have received anything.
func (d *Queue) Speaks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.silent
}

// Attach starts writing to the attachment gen.
func (d *Queue) Attach(gen int) {
	if d.held.budget != nil {
		d.held.budget.join(d)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gen, d.away, d.back, d.busy = gen, false, false, false
	if p := d.held.probe; p != nil {
		*p = probe{acked: p.acked}
	}
	d.charge()
	d.run()
}

// GoOnAfter continues with the seq after last. A client with a lower seq gets a snapshot.
func (d *Queue) GoOnAfter(last int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq, d.held.lost = last, last
}

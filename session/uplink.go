package session

import (
	"slices"
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/internal/audit"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// uplink is the queue to the model. It drops the oldest audio, but no commands. A writer runs while it is not empty.
type uplink struct {
	// Fixed after begin.
	write func() // sends until the queue is empty; nil in tests that take
	// unsent gets the records of commands that will never be sent; may be nil. It must not block or call the uplink.
	unsent func(*audit.Record)

	writer sync.WaitGroup // the writers; none is added once closed is set

	mu           sync.Mutex // guards the following fields
	maxAudio     int        // bytes of audio
	maxFrame     int        // of audio joined to one frame
	entries      []upEntry
	waiting      int   // commands in entries
	commandBytes int   // bytes of commands in entries
	audio        int   // bytes of audio in entries
	dropped      int64 // bytes of audio dropped
	burst        int32 // bytes of audio that may come at once in addition to maxAudio
	busy         bool  // a sender runs: the writer, or the holder of a claim
	held         bool  // nothing is sent, for lack of a connection
	inFront      bool  // commands are inserted at front
	closed       bool
	front        int
}

type upEntry struct {
	frame *audio.Frame
	again bool // the audio was sent before, to another connection or process; it does not count for the bound
	cmd   transport.Command
	// record is the audit record that sending cmd makes true; nil without one.
	record *audit.Record
}

// The limits of queued commands. A model that accepts none for that long counts as lost.
const (
	maxCommands     = 512
	maxCommandBytes = 8 << 20
)

const keptEntries = 16

// begin must be called first.
func (u *uplink) begin(maxAudio, maxFrame int, write func()) {
	u.maxAudio, u.maxFrame, u.write = maxAudio, maxFrame, write
}

// claim reports whether the queue is empty and no sender runs. The caller must then call release.
func (u *uplink) claim() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy || u.held || u.closed || len(u.entries) > 0 {
		return false
	}
	u.busy = true
	return true
}

func (u *uplink) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	u.start()
}

// start starts the writer if something is queued and no sender runs. The caller must hold mu.
func (u *uplink) start() {
	if u.busy || u.held || u.closed || len(u.entries) == 0 || u.write == nil {
		return
	}
	u.busy = true
	u.writer.Go(u.write)
}

// allowBurst lets that much audio come at once, because it was recorded during a network outage.
func (u *uplink) allowBurst(bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.burst = int32(bytes) // at most maxBurst
}

// pushAudio queues a copy of pcm. again: another process has sent it before.
func (u *uplink) pushAudio(pcm []byte, again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	if n := len(u.entries); n == 0 || u.entries[n-1].again != again || !u.entries[n-1].frame.Extend(pcm, u.maxFrame) {
		u.entries = append(u.entries, upEntry{frame: audio.NewFrame(pcm), again: again})
	}
	if !again {
		u.audio += len(pcm)
	}
	for u.audio > u.maxAudio+int(u.burst) {
		u.dropOldest()
	}
	u.start()
}

// dropOldest drops the oldest frame of audio, which must exist. The caller must hold mu.
func (u *uplink) dropOldest() {
	for i, e := range u.entries {
		if e.frame != nil && !e.again {
			u.audio -= len(e.frame.PCM)
			u.dropped += int64(len(e.frame.PCM))
			e.frame.Free()
			u.entries = append(u.entries[:i], u.entries[i+1:]...)
			return
		}
	}
	u.audio = 0
}

// pushCommand reports false if the model has accepted no command for too long. record may be nil.
func (u *uplink) pushCommand(cmd transport.Command, record *audit.Record) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		u.drop([]upEntry{{record: record}})
		return true
	}
	at := len(u.entries)
	if u.inFront {
		at = u.front
		u.front++
	}
	u.entries = slices.Insert(u.entries, at, upEntry{cmd: cmd, record: record})
	u.waiting++
	u.commandBytes += commandSize(cmd)
	u.start()
	return u.waiting <= maxCommands && u.commandBytes <= maxCommandBytes
}

// drop frees entries that will never be sent.
func (u *uplink) drop(entries []upEntry) {
	for _, e := range entries {
		if e.frame != nil {
			e.frame.Free()
		}
		if e.record != nil && u.unsent != nil {
			u.unsent(e.record)
		}
	}
}

// commandSize returns the bytes of text and data in a command.
func commandSize(cmd transport.Command) int {
	switch cmd := cmd.(type) {
	case transport.UserText:
		return len(cmd.Text)
	case transport.ToolResult:
		return len(cmd.Output)
	case transport.Respond:
		return len(cmd.Instructions)
	case transport.Reconfigure:
		n := len(cmd.Instructions)
		for _, tool := range cmd.Tools {
			n += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
		}
		return n
	case transport.AddItem:
		switch item := cmd.Item.(type) {
		case transport.PastUser:
			return len(item.Text)
		case transport.PastAssistant:
			return len(item.Text)
		case transport.PastNote:
			return len(item.Text)
		case transport.PastTool:
			return len(item.Args) + len(item.Output)
		}
	case transport.Image:
		return len(cmd.Data)
	}
	return 0
}

// take moves the whole queue into batch. If it reports false, the writer must end.
func (u *uplink) take(batch []upEntry) ([]upEntry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held {
		u.busy = false
		return batch[:0], false
	}
	batch = append(batch[:0], u.entries...)
	u.busy = len(batch) > 0
	clear(u.entries)
	u.entries = u.entries[:0]
	if cap(u.entries) > keptEntries {
		u.entries = nil // the backlog is over: release its memory
	}
	u.audio, u.waiting, u.commandBytes = 0, 0, 0
	return batch, u.busy
}

// hold stops sending and drops the queued commands, which were for the connection that is given up.
func (u *uplink) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held = true
	kept := u.entries[:0]
	for _, e := range u.entries {
		if e.frame != nil {
			kept = append(kept, e)
		} else {
			u.drop([]upEntry{e})
		}
	}
	clear(u.entries[len(kept):])
	u.entries, u.waiting, u.commandBytes = kept, 0, 0
}

// The caller must have called hold, closed the connection and locked out claims.
func (u *uplink) waitStopped() {
	u.writer.Wait()
	u.mu.Lock()
	u.busy = false // a writer with a failed send leaves it set
	u.mu.Unlock()
}

func (u *uplink) beginFront() {
	u.mu.Lock()
	u.inFront, u.front = true, 0
	u.mu.Unlock()
}

// pushFront queues entries ahead of all but the commands pushed since beginFront.
func (u *uplink) pushFront(entries []upEntry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		u.drop(entries)
		return
	}
	u.entries = slices.Insert(u.entries, u.front, entries...)
}

// resume ends hold: the queue is sent to the new connection.
func (u *uplink) resume() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held, u.inFront = false, false
	u.start()
}

// queued returns the bytes of queued audio.
func (u *uplink) queued() (bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.entries {
		if e.frame != nil {
			bytes += len(e.frame.PCM)
		}
	}
	return bytes
}

func (u *uplink) resample(r *audio.Resampler, maxAudio, maxFrame int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.maxAudio, u.maxFrame, u.audio = maxAudio, maxFrame, 0
	for i, e := range u.entries {
		if e.frame == nil {
			continue
		}
		u.entries[i].frame = audio.NewFrame(r.Process(nil, e.frame.PCM))
		if !e.again {
			u.audio += len(u.entries[i].frame.PCM)
		}
		e.frame.Free()
	}
}

// close drops the queue. No new writer can start; wait waits for a running one.
func (u *uplink) close() {
	u.mu.Lock()
	u.closed = true
	u.drop(u.entries)
	u.entries, u.audio = nil, 0
	u.mu.Unlock()
}

func (u *uplink) wait() { u.writer.Wait() }

func (u *uplink) droppedBytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dropped
}

const modelStalled = 15 * time.Second

// writeModel sends the uplink's entries to the model; it runs while something is queued.
func (s *session) writeModel() {
	l := s.model.link()
	stuck := time.AfterFunc(modelStalled, l.stalled)
	defer stuck.Stop()
	var batch []upEntry
	var in transport.AudioIn
	for {
		var ok bool
		if batch, ok = s.up.take(batch); !ok {
			return
		}
		for i, e := range batch {
			batch[i] = upEntry{}
			stuck.Reset(modelStalled)
			sent, err := l.sendEntry(e, &in)
			if err != nil {
				s.up.drop(append(batch[i+1:], upEntry{record: e.record})) // sendEntry has freed its frame
				l.lost("send", err)
				return // no writer runs after that
			}
			switch {
			case e.record == nil:
			case sent:
				s.audit(*e.record)
			default:
				s.audit(undelivered(e.record))
			}
		}
	}
}

// sendEntry sends one entry. in is reused for audio. It reports false for a command of another link.
func (l *link) sendEntry(e upEntry, in *transport.AudioIn) (sent bool, err error) {
	if e.frame == nil {
		cmd, ours := l.theirs(e.cmd)
		if !ours {
			return false, nil
		}
		return true, l.conn.Send(noDeadline, cmd)
	}
	in.PCM = e.frame.PCM
	err = l.conn.Send(noDeadline, in)
	l.s.model.lookback.sent(e.frame.PCM, e.again)
	e.frame.Free()
	return true, err
}

func (l *link) stalled() {
	if l.s.opts.Policy.Relink && orchestrator.Replaceable(l.info().Capabilities) {
		l.lost("send", errStalled)
		return
	}
	l.s.end(causeStalled)
}

package session

import (
	"sync"

	"voicegw/audit"
	"voicegw/transport"
)

// uplink is the queue towards the model. Audio in it is bounded and dropped from
// the old end (policy dropOldest); commands keep their place among the audio and
// are never dropped. What is queued is sent by a writer, a goroutine that there is only
// meanwhile.
type uplink struct {
	// Fixed after newUplink.
	maxAudio int    // bytes of audio
	maxFrame int    // bytes of audio that are put together to one frame
	write    func() // the writer: it takes until there is nothing; nil: the test takes
	// unsent is told the records of commands that are never sent; nil for nobody. It must not
	// wait, nor call the uplink.
	unsent func(*audit.Record)

	writer sync.WaitGroup // it gets no more once closed is set

	mu      sync.Mutex // guards the following fields
	entries []upEntry
	waiting int   // commands in entries
	words   int   // bytes of commands in entries
	audio   int   // bytes of audio in entries
	dropped int64 // bytes of audio dropped
	busy    bool  // somebody is sending: the writer, or who has claimed
	closed  bool
}

// upEntry is one of both.
type upEntry struct {
	frame *frame
	cmd   transport.Command
	// record is the audit's, which is true once cmd is sent; nil for none.
	record *audit.Record
}

// maxCommands is how many commands may wait, and maxWords how many bytes of them: a model that
// takes none for so long is lost.
const (
	maxCommands = 512
	maxWords    = 8 << 20
)

func newUplink(maxAudio, maxFrame int, write func()) *uplink {
	return &uplink{maxAudio: maxAudio, maxFrame: maxFrame, write: write}
}

// claim says that the caller may send to the model itself, because nothing is
// queued and nobody else is sending. It must then release.
func (u *uplink) claim() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy || u.closed || len(u.entries) > 0 {
		return false
	}
	u.busy = true
	return true
}

// release ends a claim.
func (u *uplink) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	u.start()
}

// start starts the writer, if there is something to send and nobody sends. mu is held.
func (u *uplink) start() {
	if u.busy || u.closed || len(u.entries) == 0 || u.write == nil {
		return
	}
	u.busy = true
	u.writer.Go(u.write)
}

// pushAudio queues a copy of pcm.
func (u *uplink) pushAudio(pcm []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	if n := len(u.entries); n == 0 || !u.entries[n-1].frame.extend(pcm, u.maxFrame) {
		u.entries = append(u.entries, upEntry{frame: newFrame(pcm)})
	}
	u.audio += len(pcm)
	for u.audio > u.maxAudio {
		u.dropOldest()
	}
	u.start()
}

// dropOldest drops the oldest frame of audio. mu is held, and audio is queued.
func (u *uplink) dropOldest() {
	for i, e := range u.entries {
		if e.frame != nil {
			u.audio -= len(e.frame.pcm)
			u.dropped += int64(len(e.frame.pcm))
			e.frame.free()
			u.entries = append(u.entries[:i], u.entries[i+1:]...)
			return
		}
	}
	u.audio = 0
}

// pushCommand queues a command, with the record that it makes true once it is sent; nil
// for none. It reports false when the model has not taken any for so long that it must be
// given up.
func (u *uplink) pushCommand(cmd transport.Command, record *audit.Record) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		u.lose([]upEntry{{record: record}})
		return true
	}
	u.entries = append(u.entries, upEntry{cmd: cmd, record: record})
	u.waiting++
	u.words += wordsOf(cmd)
	u.start()
	return u.waiting <= maxCommands && u.words <= maxWords
}

// lose says of entries that they are never sent.
func (u *uplink) lose(entries []upEntry) {
	for _, e := range entries {
		if e.record != nil && u.unsent != nil {
			u.unsent(e.record)
		}
	}
}

// wordsOf is how many bytes a command holds that come from elsewhere.
func wordsOf(cmd transport.Command) int {
	switch cmd := cmd.(type) {
	case transport.UserText:
		return len(cmd.Text)
	case transport.ToolResult:
		return len(cmd.Output)
	case transport.Respond:
		return len(cmd.Instructions)
	}
	return 0
}

// take moves all that is queued into batch, whose old content is overwritten, for the
// writer to send. It reports false, and the writer must end, when that is nothing.
func (u *uplink) take(batch []upEntry) ([]upEntry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	batch = append(batch[:0], u.entries...)
	u.busy = len(batch) > 0
	clear(u.entries)
	u.entries = u.entries[:0]
	if cap(u.entries) > keepEntries {
		u.entries = nil // a backlog is over: give its memory back
	}
	u.audio, u.waiting, u.words = 0, 0, 0
	return batch, u.busy
}

// close drops what is queued. There will be no new writer; wait waits for one that is
// sending.
func (u *uplink) close() {
	u.mu.Lock()
	u.closed = true
	for _, e := range u.entries {
		if e.frame != nil {
			e.frame.free()
		}
	}
	u.lose(u.entries)
	u.entries, u.audio = nil, 0
	u.mu.Unlock()
}

func (u *uplink) wait() { u.writer.Wait() }

func (u *uplink) droppedBytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dropped
}

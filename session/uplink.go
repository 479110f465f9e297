package session

import (
	"sync"

	"voicegw/transport"
)

// uplink is the queue towards the model. Audio in it is bounded and dropped from
// the old end (policy dropOldest); commands keep their place among the audio and
// are never dropped.
type uplink struct {
	// Fixed after newUplink.
	maxAudio int           // bytes of audio
	ready    chan struct{} // to writeModel: there is something; capacity 1, never closed

	mu      sync.Mutex // guards the following fields
	entries []upEntry
	waiting int   // commands in entries
	audio   int   // bytes of audio in entries
	dropped int64 // bytes of audio dropped
	busy    bool  // somebody is sending
	closed  bool
}

// upEntry is one of both.
type upEntry struct {
	frame *frame
	cmd   transport.Command
}

// maxCommands is how many commands may wait: a model that takes none for so long
// is lost.
const maxCommands = 512

func newUplink(maxAudio int) *uplink {
	return &uplink{maxAudio: maxAudio, ready: make(chan struct{}, 1)}
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

// release ends a claim, or the sending of what take returned.
func (u *uplink) release() {
	u.mu.Lock()
	u.busy = false
	more := len(u.entries) > 0
	u.mu.Unlock()
	if more {
		u.signal()
	}
}

// pushAudio queues a copy of pcm.
func (u *uplink) pushAudio(pcm []byte) {
	f := newFrame(pcm)
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		f.free()
		return
	}
	u.entries = append(u.entries, upEntry{frame: f})
	u.audio += len(pcm)
	for u.audio > u.maxAudio {
		u.dropOldest()
	}
	u.mu.Unlock()
	u.signal()
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

// pushCommand queues a command. It reports false when the model has not taken any
// for so long that it must be given up.
func (u *uplink) pushCommand(cmd transport.Command) bool {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return true
	}
	u.entries = append(u.entries, upEntry{cmd: cmd})
	u.waiting++
	ok := u.waiting <= maxCommands
	u.mu.Unlock()
	u.signal()
	return ok
}

// take moves all that is queued into batch, whose old content is overwritten; if it
// is anything, the caller sends it and must then release. It reports false once
// the queue is closed.
func (u *uplink) take(batch []upEntry) ([]upEntry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy {
		return batch[:0], !u.closed
	}
	batch = append(batch[:0], u.entries...)
	u.busy = len(batch) > 0
	clear(u.entries)
	u.entries = u.entries[:0]
	u.audio, u.waiting = 0, 0
	return batch, !u.closed
}

// close drops what is queued and wakes the writer.
func (u *uplink) close() {
	u.mu.Lock()
	u.closed = true
	for _, e := range u.entries {
		if e.frame != nil {
			e.frame.free()
		}
	}
	u.entries, u.audio = nil, 0
	u.mu.Unlock()
	u.signal()
}

func (u *uplink) droppedBytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dropped
}

func (u *uplink) signal() {
	select {
	case u.ready <- struct{}{}:
	default:
	}
}

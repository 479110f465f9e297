package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/internal/conversation"
)

const (
	// checkpointLife is how long a checkpoint is kept after its last write.
	checkpointLife = 30 * time.Minute
	// MaxCheckpoint bounds a stored checkpoint in bytes.
	MaxCheckpoint = 64 << 10
)

// Checkpoint is the state another node needs to continue a voice session.
type Checkpoint struct {
	SessionID string `json:"session_id"`
	// Epoch is the epoch of the owner that wrote it.
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"`
	// Turn is the user's last turn, Seq the highest seq sent to the client.
	Turn int   `json:"turn"`
	Seq  int64 `json:"seq"`
	// Handle resumes the conversation at the provider; anyone who can read the store can use it. HandleFresh means that
	// the provider remembers everything up to now.
	Handle      string `json:"handle,omitempty"`
	HandleFresh bool   `json:"handle_fresh,omitempty"`
	// History is the transcript, oldest first; Earlier summarises the conversation before it.
	History []conversation.Entry `json:"history,omitempty"`
	Earlier string               `json:"earlier,omitempty"`
	// Dropped counts the oldest entries left out for lack of room.
	Dropped int `json:"dropped,omitempty"`
	// State is the rest of the session's state, in its own JSON format.
	State json.RawMessage `json:"state,omitempty"`
}

// encodeCheckpoint encodes a checkpoint in at most MaxCheckpoint bytes. It drops the oldest history entries and, if
// needed, the newest one's tool results.
func encodeCheckpoint(c Checkpoint) ([]byte, error) {
	data, err := encodeVersioned(c)
	if err != nil || len(data) <= MaxCheckpoint {
		return data, err
	}
	all := c.History
	c.History, c.Dropped = nil, c.Dropped+len(all)
	if data, err = encodeVersioned(c); err != nil {
		return nil, err
	}
	const perEntry = 16 // a comma, and the digits by which Dropped may change
	room := MaxCheckpoint - len(data) - len(`"history":[],`) - perEntry
	if room < 0 {
		return nil, fmt.Errorf("%w: a checkpoint of %d bytes without its history, of at most %d", ErrTooBig, len(data), MaxCheckpoint)
	}
	for _, e := range slices.Backward(all) {
		size := sizeOf(e)
		if size > room && len(c.History) == 0 {
			e.Extra, e.Calls = nil, slices.Clone(e.Calls)
			for i := range e.Calls {
				e.Calls[i].Args, e.Calls[i].Envelope, e.Calls[i].Extra = nil, nil, nil
			}
			size = sizeOf(e)
		}
		if size > room {
			break
		}
		room -= size + perEntry
		c.History = append(c.History, e)
		c.Dropped--
	}
	slices.Reverse(c.History)
	return encodeVersioned(c)
}

func sizeOf(e conversation.Entry) int {
	data, err := encode(e)
	if err != nil {
		return MaxCheckpoint
	}
	return len(data)
}

func decodeCheckpoint(data []byte) (Checkpoint, error) {
	if len(data) > MaxCheckpoint {
		return Checkpoint{}, fmt.Errorf("%w: a checkpoint of %d bytes", ErrCorrupt, len(data))
	}
	return decodeAs(data, decodeVersioned, "a checkpoint without a session or an epoch", func(c Checkpoint) bool {
		return c.SessionID != "" && c.Epoch != 0
	})
}

// Checkpoints stores the newest checkpoint of each voice session for 30 minutes.
type Checkpoints struct {
	// Immutable.
	bucket    *bucket
	directory *Directory
	queue     *paced
}

func newCheckpoints(b *bucket, directory *Directory) *Checkpoints {
	// Checkpoints have no watchers; the marker must last as long as the directory lists the session as over.
	b.noteLife = overLife
	c := &Checkpoints{bucket: b, directory: directory}
	c.queue = newPaced(c.write, b.store.start, b.store.done, b.store.log)
	return c
}

// Note schedules a checkpoint to be written: at most one a second for each session, the newest one. It never blocks. The
// checkpoint's slices must not change afterwards. While the store is unavailable the newest one waits. A session that
// another node has taken is fenced, as by [Owned.Update].
func (c *Checkpoints) Note(of Checkpoint) { c.queue.note(of.SessionID, &of) }

// Save writes a checkpoint now, instead of a waiting one, or a newer one noted in between. It is durable when Save
// returns nil. ErrFenced means another node has taken the session. The other errors wrap ErrUnavailable or ErrTooBig.
func (c *Checkpoints) Save(ctx context.Context, of Checkpoint) error {
	return c.queue.now(ctx, of.SessionID, &of)
}

// Flush writes a session's noted checkpoint, or a newer one, and waits. It is durable when Flush returns nil. The errors
// are Save's.
func (c *Checkpoints) Flush(ctx context.Context, session string) error {
	return c.queue.flush(ctx, session)
}

// Remove schedules the removal of an ended session's checkpoint, like Note.
func (c *Checkpoints) Remove(session string) { c.queue.note(session, nil) }

// Load returns a session's newest checkpoint. ErrUnknown means none or expired. The other errors wrap ErrUnavailable,
// ErrVersion or ErrCorrupt.
func (c *Checkpoints) Load(ctx context.Context, session string) (Checkpoint, error) {
	is, _, err := read(ctx, c.bucket, keyOf(session), decodeCheckpoint)
	if err == nil && is.SessionID != session {
		return Checkpoint{}, fmt.Errorf("%w: the checkpoint belongs to another session", ErrCorrupt)
	}
	return is, err
}

// write writes a checkpoint over revision known, or removes it if of is nil.
func (c *Checkpoints) write(ctx context.Context, session string, of *Checkpoint, known uint64) (revision uint64, err error) {
	key := keyOf(session)
	if of == nil {
		if known != 0 {
			_, err = c.bucket.remove(ctx, key, known)
		}
		if errors.Is(err, ErrChanged) || errors.Is(err, errNone) {
			err = nil // another node continues the session
		}
		return 0, err
	}
	data, err := encodeCheckpoint(*of)
	if err != nil {
		return known, err
	}
	w := &write{data: data, ttl: checkpointLife}
	h, err := c.bucket.set(ctx, key, w, known, func(h held) (*write, error) {
		// An unreadable checkpoint is useless.
		is, err := decodeCheckpoint(h.data)
		if h.exists() && (errors.Is(err, ErrVersion) || err == nil && is.Epoch > of.Epoch) {
			return nil, ErrFenced
		}
		return w, nil
	})
	switch {
	case errors.Is(err, ErrFenced):
		c.directory.doubt(key)
		return 0, err // returning the other owner's revision would let the next write replace it
	case err != nil:
		return known, err
	}
	return h.revision, nil
}

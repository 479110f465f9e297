package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"voicegw/store/witness"
)

const (
	// mostAgents bounds how many agents are edited, mostAgentBytes a document.
	mostAgents     = 10_000
	mostAgentBytes = 512 << 10
	// agentsNow and agentsWas begin the keys of the edits that apply, and of what they have replaced.
	agentsNow = "now."
	agentsWas = "was."
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// AgentEdit is an agent's document as somebody has written it.
type AgentEdit struct {
	ID string `json:"id"`
	// Document is JSON; its form is that of package agent.
	Document json.RawMessage `json:"document"`
	// At is when it was written, in UTC, and By the ID of the principal that wrote it (auth.Principal); By may be empty.
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Revision is set by the store.
	Revision uint64 `json:"-"`
}

// storedAgent is an AgentEdit in the bucket.
type storedAgent struct {
	V int `json:"v"`
	AgentEdit
}

// Agents are the edited agents, for all nodes. List answers from a copy in memory that follows the other
// nodes' writes within milliseconds; while the cluster cannot be reached the copy stays as it is. This
// node's own writes are visible at once. Its methods may be used concurrently.
type Agents struct {
	copies[AgentEdit] // by keys

	// generation counts the changes of the copy. It is changed under mu.
	generation atomic.Uint64
}

func (s *Store) openAgents(ctx context.Context) (*Agents, error) {
	bucket, err := s.openBucket(ctx, witness.Agents, "voicegw: agents that were edited, and what the edits have replaced")
	if err != nil {
		return nil, err
	}
	a := &Agents{}
	a.decode, a.unreadable = decodeAgentNow, "store_agent_unreadable"
	a.changed = func(string, copied[AgentEdit]) { a.generation.Add(1) }
	a.open(mirror{bucket: bucket, under: agentsNow, what: "agents"})
	return a, nil
}

// decodeAgentNow reads a message about an edit that applies.
func decodeAgentNow(key string, m message) (AgentEdit, error) {
	e, err := decodeAgent(m.data)
	if err == nil && key != agentsNow+e.ID {
		err = fmt.Errorf("%w: an agent under the key of another one", ErrCorrupt)
	}
	e.Revision = m.seq
	return e, err
}

// decodeAgent reads a record of the bucket.
func decodeAgent(data []byte) (AgentEdit, error) {
	var e storedAgent
	if err := decodeVersioned(data, &e); err != nil {
		return AgentEdit{}, err
	}
	if !agentName.MatchString(e.ID) || len(e.Document) == 0 || e.Document[0] != '{' || len(e.Document) > mostAgentBytes {
		return AgentEdit{}, fmt.Errorf("%w: an agent without a valid id, or without a document", ErrCorrupt)
	}
	return e.AgentEdit, nil
}

func encodeAgent(e AgentEdit) ([]byte, error) {
	if len(e.Document) > mostAgentBytes {
		return nil, fmt.Errorf("%w: a document of %d bytes, at most %d are kept", ErrTooBig, len(e.Document), mostAgentBytes)
	}
	e.At = e.At.UTC()
	data, err := encode(storedAgent{V: recordVersion, AgentEdit: e})
	if err != nil {
		return nil, err
	}
	_, err = decodeAgent(data)
	return data, err
}

// Generation changes whenever List would answer otherwise.
func (a *Agents) Generation() uint64 { return a.generation.Load() }

// List returns all edits, sorted by id, and their generation, from memory.
func (a *Agents) List() ([]AgentEdit, uint64) {
	a.mu.Lock()
	list := make([]AgentEdit, 0, len(a.all))
	for _, e := range a.all {
		if !e.none {
			list = append(list, e.value)
		}
	}
	generation := a.generation.Load()
	a.mu.Unlock()
	slices.SortFunc(list, func(x, y AgentEdit) int { return cmp.Compare(x.ID, y.ID) })
	return list, generation
}

// Save writes an edit over the one of that revision, 0 for an agent that is not edited yet, on all nodes,
// and returns its revision. The errors wrap ErrChanged (it has another revision), ErrFull, ErrTooBig or
// ErrUnavailable.
func (a *Agents) Save(ctx context.Context, e AgentEdit, known uint64) (uint64, error) {
	data, err := encodeAgent(e)
	if err != nil {
		return 0, err
	}
	key := agentsNow + e.ID
	if known != 0 {
		e.Revision, err = a.bucket.replace(ctx, key, data, known, longestTTL)
	} else {
		if a.full() {
			return 0, fmt.Errorf("%w: %d agents are edited", ErrFull, mostAgents)
		}
		var h held
		h, err = a.bucket.create(ctx, key, data, longestTTL)
		e.Revision = h.revision
	}
	if errors.Is(err, errConflict) {
		err = ErrChanged
	}
	if err != nil {
		return 0, err
	}
	a.see(key, copied[AgentEdit]{value: e, revision: e.Revision})
	return e.Revision, nil
}

// Remove ends the edit of that revision, on all nodes, and returns the revision of its end. The errors
// wrap ErrChanged or ErrUnavailable.
func (a *Agents) Remove(ctx context.Context, id string, known uint64) (uint64, error) {
	key := agentsNow + id
	ctx, cancel := a.bucket.store.bounded(ctx)
	defer cancel()
	for {
		revision, err := a.bucket.remove(ctx, key, known)
		if !errors.Is(err, errConflict) {
			if err == nil {
				a.see(key, copied[AgentEdit]{revision: revision, none: true})
			}
			return revision, err
		}
		h, err := a.bucket.get(ctx, key)
		switch {
		case errors.Is(err, errNone), err == nil && h.revision != known:
			return 0, ErrChanged
		case err != nil:
			return 0, err
		}
		if err := a.bucket.store.pause(ctx); err != nil { // the conflicting value cannot be read yet
			return 0, err
		}
	}
}

// Removed returns the revision at which the edit of an agent ended, as the store has it now; ErrUnknown if
// there is an edit, or nothing is known of its end. The error may wrap ErrUnavailable.
func (a *Agents) Removed(ctx context.Context, id string) (uint64, error) {
	h, err := a.bucket.get(ctx, agentsNow+id)
	switch {
	case errors.Is(err, errNone) && h.removed:
		return h.revision, nil
	case err == nil, errors.Is(err, errNone):
		return 0, ErrUnknown
	}
	return 0, err
}

// Follow waits until List tells of everything that was written up to a revision, by whatever node. The
// error wraps ErrUnavailable or is the context's.
func (a *Agents) Follow(ctx context.Context, revision uint64) error {
	ctx, cancel := a.bucket.store.bounded(ctx)
	defer cancel()
	for {
		a.mu.Lock()
		is, moved := a.followed, a.moved
		a.mu.Unlock()
		if is >= revision {
			return nil
		}
		select {
		case <-moved:
		case <-a.bucket.store.done:
			return errClosed
		case <-ctx.Done():
			return classed(ctx, fmt.Errorf("store: following the agents: %w", ctx.Err()))
		}
	}
}

// Keep remembers a version of an agent that an edit is about to replace, for life, for sessions that
// began with it. The error wraps ErrTooBig or ErrUnavailable.
func (a *Agents) Keep(ctx context.Context, e AgentEdit, version string, life time.Duration) error {
	data, err := encodeAgent(e)
	if err != nil {
		return err
	}
	key := agentsWas + e.ID + "." + keyOf(version)
	h, err := a.bucket.create(ctx, key, data, life)
	if errors.Is(err, errConflict) { // it is kept already, and longer from now on
		_, err = a.bucket.replace(ctx, key, data, h.revision, life)
		if errors.Is(err, ErrChanged) {
			err = nil // another node has just done the same
		}
	}
	return err
}

// Kept returns a version of an agent that an edit has replaced. The error is ErrUnknown, or wraps
// ErrUnavailable or ErrCorrupt.
func (a *Agents) Kept(ctx context.Context, id, version string) (AgentEdit, error) {
	if !agentName.MatchString(id) {
		return AgentEdit{}, ErrUnknown
	}
	h, err := a.bucket.get(ctx, agentsWas+id+"."+keyOf(version))
	if err != nil {
		return AgentEdit{}, err
	}
	return decodeAgent(h.data)
}

func (a *Agents) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all) >= mostAgents
}

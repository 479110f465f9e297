package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

const (
	// mostAgents bounds the edited agents, mostAgentBytes a document.
	mostAgents     = 10_000
	mostAgentBytes = 512 << 10
	// agentsNow and agentsWas begin the keys of current edits and of replaced versions.
	agentsNow = "now."
	agentsWas = "was."
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// AgentEdit is an edited agent document.
type AgentEdit struct {
	ID string `json:"id"`
	// Document is JSON in the form of package agent.
	Document json.RawMessage `json:"document"`
	// At is the time of the edit in UTC, and By its author (auth.Principal.ID); By may be empty.
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Revision is set by the store.
	Revision uint64 `json:"-"`
}

// Agents stores the edited agents. List reads an in-memory copy that follows other nodes' writes within milliseconds,
// unless the cluster is unreachable; this node's writes are visible at once.
type Agents struct {
	copies[AgentEdit] // by key
}

func newAgents(b *bucket) *Agents {
	a := &Agents{copies[AgentEdit]{under: agentsNow, what: "agents", decode: decodeAgentNow, unreadable: "store_agent_unreadable"}}
	a.open(b)
	return a
}

func decodeAgentNow(key string, m held) (AgentEdit, error) {
	e, err := decodeAgent(m.data)
	if err == nil && key != agentsNow+e.ID {
		err = fmt.Errorf("%w: the record belongs to another agent", ErrCorrupt)
	}
	e.Revision = m.revision
	return e, err
}

func decodeAgent(data []byte) (AgentEdit, error) {
	return decodeAs(data, decodeVersioned, "an agent without a valid id, or without a document", func(e AgentEdit) bool {
		return agentName.MatchString(e.ID) && len(e.Document) > 0 && e.Document[0] == '{' && len(e.Document) <= mostAgentBytes
	})
}

func encodeAgent(e AgentEdit) ([]byte, error) {
	if len(e.Document) > mostAgentBytes {
		return nil, fmt.Errorf("%w: a document of %d bytes, at most %d are kept", ErrTooBig, len(e.Document), mostAgentBytes)
	}
	e.At = e.At.UTC()
	data, err := encodeVersioned(e)
	if err != nil {
		return nil, err
	}
	_, err = decodeAgent(data)
	return data, err
}

// Generation changes whenever List's result changes.
func (a *Agents) Generation() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes
}

// List returns all edits from memory, sorted by ID, and their generation.
func (a *Agents) List() ([]AgentEdit, uint64) {
	a.mu.Lock()
	list := make([]AgentEdit, 0, len(a.all))
	for _, e := range a.all {
		if !e.none {
			list = append(list, e.value)
		}
	}
	generation := a.changes
	a.mu.Unlock()
	slices.SortFunc(list, func(x, y AgentEdit) int { return cmp.Compare(x.ID, y.ID) })
	return list, generation
}

// Save replaces the edit with revision known, 0 for none, and returns the new revision. The errors wrap ErrChanged
// (another revision), ErrFull, ErrTooBig or ErrUnavailable.
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

// Remove removes the edit with revision known and returns the revision of the removal. The errors wrap ErrChanged or
// ErrUnavailable.
func (a *Agents) Remove(ctx context.Context, id string, known uint64) (uint64, error) {
	key := agentsNow + id
	revision, err := a.bucket.remove(ctx, key, known)
	switch {
	case errors.Is(err, errNone):
		return 0, ErrChanged
	case err == nil:
		a.see(key, copied[AgentEdit]{revision: revision, none: true})
	}
	return revision, err
}

// Removed returns the revision at which an agent's edit was removed; ErrUnknown if there is an edit or no record of a
// removal. It reads the store.
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

// Follow waits until List includes all writes, by any node, up to a revision. The error wraps ErrUnavailable or is the
// context's.
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
		if err := await(ctx, a.bucket.store, moved, "following the agents"); err != nil {
			return err
		}
	}
}

// Keep stores a version that is about to be replaced, for life, for sessions that use it. The error wraps ErrTooBig or
// ErrUnavailable.
func (a *Agents) Keep(ctx context.Context, e AgentEdit, version string, life time.Duration) error {
	data, err := encodeAgent(e)
	if err != nil {
		return err
	}
	// A version that is already stored gets a longer life.
	w := &write{data: data, ttl: life}
	_, err = a.bucket.set(ctx, agentsWas+e.ID+"."+keyOf(version), w, 0, func(held) (*write, error) { return w, nil })
	return err
}

// Kept returns a replaced version. The error is ErrUnknown, or wraps ErrUnavailable or ErrCorrupt.
func (a *Agents) Kept(ctx context.Context, id, version string) (AgentEdit, error) {
	if !agentName.MatchString(id) {
		return AgentEdit{}, ErrUnknown
	}
	e, _, err := read(ctx, a.bucket, agentsWas+id+"."+keyOf(version), decodeAgent)
	return e, err
}

func (a *Agents) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all) >= mostAgents
}

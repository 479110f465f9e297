package session

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"voicegw/store"
)

// shelf is the directory and the checkpoints of several nodes, in memory. Each node uses it as a Cluster. The stored
// data is JSON.
type shelf struct {
	mu      sync.Mutex // guards the following fields
	records map[string]store.SessionRecord
	kept    map[string][]byte // checkpoints
	owners  map[string]*shelfPlace
	dead    map[string]bool // nodes
	late    bool            // checkpoints wait until they are saved
	away    chan struct{}   // heal closes it; nil while the shelf is reachable, otherwise no writes
	taking  func()          // called during a takeover; may be nil
}

func newShelf() *shelf {
	return &shelf{records: map[string]store.SessionRecord{}, kept: map[string][]byte{}, owners: map[string]*shelfPlace{}, dead: map[string]bool{}}
}

// node returns the shelf as one node uses it.
func (f *shelf) node(id string) Cluster { return shelfNode{f, id} }

// kill stops a node abruptly: none of its later actions reaches the shelf.
func (f *shelf) kill(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead[id] = true
}

// leave makes the shelf unreachable until heal.
func (f *shelf) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = make(chan struct{})
}

// heal writes the delayed data.
func (f *shelf) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.away)
	f.away = nil
	for _, p := range f.owners {
		if p.changed {
			p.changed = false
			p.write()
		}
	}
}

func (f *shelf) record(id string) store.SessionRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[id]
}

// checkpoint returns the newest checkpoint of a session.
func (f *shelf) checkpoint(t *testing.T, id string) (c store.Checkpoint, r savedState) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := json.Unmarshal(f.kept[id], &c); err != nil {
		t.Fatalf("the checkpoint of %s: %v", id, err)
	}
	if err := json.Unmarshal(c.State, &r); err != nil {
		t.Fatal(err)
	}
	return c, r
}

type shelfNode struct {
	*shelf
	id string
}

func (n shelfNode) Enter(r store.SessionRecord) Place {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Node, r.Epoch, r.State = n.id, 1, store.SessionLive
	p := n.own(r)
	p.changed = true
	p.save()
	return p
}

// own makes n the owner of a session. The caller must hold mu.
func (n shelfNode) own(r store.SessionRecord) *shelfPlace {
	p := &shelfPlace{n: n, id: r.ID, epoch: r.Epoch, record: r}
	if old := n.owners[r.ID]; old != nil {
		for _, f := range old.lost {
			go f()
		}
		old.over = true
	}
	n.owners[r.ID] = p
	return p
}

func (n shelfNode) Carry(context.Context, Visitor, Client) bool { return false }

func (n shelfNode) Take(_ context.Context, v Visitor) (*Taken, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.records[v.Start.Resume.SessionID]
	switch {
	case !ok || r.State == store.SessionOver:
		return nil, ErrNoSession
	case v.Opens(r) != nil:
		return nil, v.Opens(r)
	case r.Node == n.id && r.State != store.SessionMoving:
		return nil, ErrNoSession
	case r.State != store.SessionMoving && !n.dead[r.Node]:
		return nil, ErrElsewhere
	}
	if n.taking != nil {
		n.taking()
	}
	return n.take(r)
}

// take makes n the owner of a session that no node runs. The caller must hold mu.
func (n shelfNode) take(r store.SessionRecord) (*Taken, error) {
	taken := &Taken{Record: r}
	taken.Record.Node, taken.Record.Epoch = n.id, r.Epoch+1
	taken.Record.Lost = r.Lost || r.State != store.SessionMoving
	live := taken.Record
	live.State = store.SessionLive
	taken.Place = n.own(live)
	n.records[r.ID] = live
	if data := n.kept[r.ID]; data != nil {
		if err := json.Unmarshal(data, &taken.Checkpoint); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

func (n shelfNode) Lost(context.Context) (lost []Lost, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away != nil {
		return nil, store.ErrUnavailable
	}
	for _, r := range n.records {
		if r.State == store.SessionMoving || n.dead[r.Node] || r.Node == n.id {
			lost = append(lost, Lost{Record: r, Ended: r.Node == n.id && r.State != store.SessionMoving})
		}
	}
	return lost, nil
}

func (n shelfNode) Adopt(_ context.Context, found store.SessionRecord) (*Taken, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r, ok := n.records[found.ID]; {
	case !ok:
		return nil, ErrNoSession
	case r.Epoch != found.Epoch:
		return nil, ErrElsewhere
	default:
		return n.take(r)
	}
}

// shelfPlace is a session's place on the shelf. The shelf's mutex guards lost and over.
type shelfPlace struct {
	n     shelfNode
	id    string
	epoch uint64
	lost  []func()
	over  bool

	record  store.SessionRecord
	changed bool              // record is not written yet
	noted   *store.Checkpoint // not written yet
}

// write writes the record. The caller must hold the shelf's mutex.
func (p *shelfPlace) write() {
	if p.mine() {
		r := p.record
		r.TokenHashes = slices.Clone(r.TokenHashes)
		p.n.records[p.id] = r
	}
}

// save is write for a changed record, unless the shelf is unreachable.
func (p *shelfPlace) save() {
	if p.n.away == nil {
		p.changed = false
		p.write()
	}
}

func (p *shelfPlace) Written() <-chan struct{} {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.changed {
		return p.n.away
	}
	return written
}

// mine reports whether the place may still write. The caller must hold the shelf's mutex.
func (p *shelfPlace) mine() bool { return !p.over && !p.n.dead[p.n.id] }

func (p *shelfPlace) Update(change func(*store.SessionRecord)) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.record.TokenHashes = slices.Clone(p.record.TokenHashes)
	change(&p.record)
	p.changed = true
	p.save()
}

func (p *shelfPlace) Note(c store.Checkpoint) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.noted = &c
	if !p.n.late && p.n.away == nil {
		p.keep(c)
	}
}

func (p *shelfPlace) Keep(ctx context.Context) error {
	p.n.mu.Lock()
	away := p.n.away
	p.n.mu.Unlock()
	if away != nil {
		select {
		case <-away:
		case <-ctx.Done():
			return store.ErrUnavailable
		}
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if !p.mine() {
		return store.ErrUnavailable
	}
	if p.noted != nil {
		p.keep(*p.noted)
	}
	return nil
}

func (p *shelfPlace) keep(c store.Checkpoint) {
	p.noted = nil
	if !p.mine() {
		return
	}
	c.SessionID, c.Epoch = p.id, p.epoch
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	p.n.kept[p.id] = data
}

func (p *shelfPlace) Give(_ context.Context, c store.Checkpoint) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if !p.mine() {
		return store.ErrUnavailable
	}
	p.keep(c)
	p.write()
	r := p.n.records[p.id]
	r.State = store.SessionMoving
	p.n.records[p.id] = r
	p.over = true
	return nil
}

func (p *shelfPlace) Return(context.Context) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if !p.mine() {
		return store.ErrUnavailable
	}
	r := p.n.records[p.id]
	r.State = store.SessionMoving
	p.n.records[p.id] = r
	p.over = true
	return nil
}

func (p *shelfPlace) Sure() bool {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return !p.over
}

func (p *shelfPlace) WhenLost(f func()) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.lost = append(p.lost, f)
}

func (p *shelfPlace) End() {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if r := p.n.records[p.id]; r.Epoch == p.epoch {
		delete(p.n.records, p.id)
		delete(p.n.kept, p.id)
	}
}

func (p *shelfPlace) Leave() {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.mine() {
		delete(p.n.records, p.id)
		delete(p.n.kept, p.id)
	}
	p.over = true
}

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/store/witness"
)

// SessionState is where a voice session stands.
type SessionState string

// The states. A newer version may write others.
const (
	// SessionLive has a client, SessionDetached waits for its client to come back.
	SessionLive     SessionState = "live"
	SessionDetached SessionState = "detached"
	// SessionMoving was given up by its node, with a checkpoint, for another node to take.
	SessionMoving SessionState = "moving"
	// SessionOver cannot be resumed.
	SessionOver SessionState = "over"
)

const (
	// sessionAfter is how long a record outlives the longest time that its session may last.
	sessionAfter = time.Hour
	// sessionMost is that longest time where the record does not say it.
	sessionMost = 24 * time.Hour
	// overLife is how long a session that is over stays in the directory.
	overLife = 10 * time.Minute
	// mostSessionBytes bounds a record. Its writer is this program, but what a client sends
	// stands in it.
	mostSessionBytes = 32 << 10
)

// SessionRecord is what every node may know of a voice session.
type SessionRecord struct {
	// ID is the session's id; the record's key is its SHA-256.
	ID string `json:"id"`
	// Node is the node that runs the session. Epoch counts the nodes that have run it, from 1.
	Node  string       `json:"node"`
	Epoch uint64       `json:"epoch"`
	State SessionState `json:"state"`
	// Lost means that the node before has died with the session, and that no node has gone on with it since.
	Lost bool `json:"lost,omitempty"`
	// User is the user's identity, Conversation the id of the conversation that the session goes
	// on with; it may be empty.
	User         string `json:"user,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	Agent        string `json:"agent,omitempty"`
	// StartedAt is when the session began, EndsAt when its longest time is over. A zero EndsAt
	// means 24 hours after the record is written.
	StartedAt time.Time `json:"started_at"`
	EndsAt    time.Time `json:"ends_at,omitzero"`
	// EndedAt is when it was recorded that the session is over; zero before.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// TokenHashes are the SHA-256, in hexadecimal, of the tokens that resume the session. The
	// tokens themselves are never stored. OldTokenHash is that of the token before them, which is
	// valid until OldTokenUntil.
	TokenHashes   []string  `json:"token_hashes,omitempty"`
	OldTokenHash  string    `json:"old_token_hash,omitempty"`
	OldTokenUntil time.Time `json:"old_token_until,omitzero"`
	// Origin is the only origin whose pages may resume it; empty for any client.
	Origin string `json:"origin,omitempty"`
	// ToolsVersion is the version of the registry that the session's node has declared.
	ToolsVersion string `json:"tools_version,omitempty"`
	// Versions are the versions of tools that the session has drawn, by the tools' ids; nil if no tool has several.
	Versions map[string]string `json:"versions,omitempty"`
	// AgentVersion is the version of the agent with which the session began; empty for one without a
	// document.
	AgentVersion string `json:"agent_version,omitempty"`
	// InputRate and OutputRate are those of the client's audio, in Hz. Manual says that the client
	// reports when its user speaks. Voice is what was asked of the model, Inspect that the client may
	// look inside, ClientID the name that the client has given its user, and TimeZone the IANA name of the user's
	// time zone; each may be empty.
	InputRate  int    `json:"input_rate,omitempty"`
	OutputRate int    `json:"output_rate,omitempty"`
	Voice      string `json:"voice,omitempty"`
	ClientID   string `json:"client_id,omitempty"`
	TimeZone   string `json:"time_zone,omitempty"`
	Manual     bool   `json:"manual,omitempty"`
	Inspect    bool   `json:"inspect,omitempty"`
	// Vouched says that a trusted caller has named the user, Scopes what it has granted.
	Vouched bool     `json:"vouched,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
	// Principal is the ID of the principal that let the client in (auth.Principal), Entry the kind of credentials
	// that the client has shown for it. Both are empty where nothing was asked of it.
	Principal string `json:"principal,omitempty"`
	Entry     string `json:"entry,omitempty"`
	// Mark tells apart different credentials that have had the ID Principal, and PrincipalExpires is
	// when those end that were shown. Either may be empty.
	Mark             string    `json:"mark,omitempty"`
	PrincipalExpires time.Time `json:"principal_expires,omitzero"`

	// Unknown are the fields of a newer version, by their names. They stay when this version
	// writes the record. Nil without such fields.
	Unknown map[string]json.RawMessage `json:"-"`
}

// storedSession is a SessionRecord in the bucket.
type storedSession struct {
	V int `json:"v"`
	SessionRecord
}

// sessionFields are the names of the fields that this version knows.
var sessionFields = fieldsOf(storedSession{V: 1, SessionRecord: SessionRecord{
	ID: "x", Node: "x", State: "x", Lost: true, User: "x", Conversation: "x", Provider: "x", Model: "x", Agent: "x",
	EndsAt: time.Unix(1, 0), EndedAt: time.Unix(1, 0), TokenHashes: []string{"x"}, OldTokenHash: "x", OldTokenUntil: time.Unix(1, 0), Origin: "x", ToolsVersion: "x", Versions: map[string]string{"x": "x"}, AgentVersion: "x",
	InputRate: 1, OutputRate: 1, Manual: true, Voice: "x", Inspect: true, ClientID: "x", TimeZone: "x", Vouched: true, Scopes: []string{"x"}, Principal: "x", Entry: "x", Mark: "x", PrincipalExpires: time.Unix(1, 0),
}})

// fieldsOf returns the names of the fields of a record that has no empty field.
func fieldsOf(record any) []string {
	data, err := json.Marshal(record)
	var fields map[string]json.RawMessage
	if err = errors.Join(err, json.Unmarshal(data, &fields)); err != nil {
		panic(err) // record is a constant of this package
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	return names
}

// encodeSession writes a record with the fields that it does not know.
func encodeSession(r SessionRecord) ([]byte, error) {
	data, err := encode(storedSession{V: recordVersion, SessionRecord: r})
	if err != nil || len(r.Unknown) == 0 {
		return data, err
	}
	all := map[string]json.RawMessage{}
	if err := decode(data, &all); err != nil {
		return nil, err
	}
	for name, value := range r.Unknown {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	return encode(all)
}

// decodeSession reads a record of the bucket.
func decodeSession(data []byte) (SessionRecord, error) {
	if len(data) > mostSessionBytes {
		return SessionRecord{}, fmt.Errorf("%w: a session of %d bytes", ErrCorrupt, len(data))
	}
	var r storedSession
	if err := decodeVersioned(data, &r); err != nil {
		return SessionRecord{}, err
	}
	if !whole(r.SessionRecord) {
		return SessionRecord{}, fmt.Errorf("%w: %s", ErrCorrupt, notWhole)
	}
	if err := decode(data, &r.Unknown); err != nil {
		return SessionRecord{}, err
	}
	for name := range r.Unknown {
		// Field names are compared as encoding/json does.
		if slices.ContainsFunc(sessionFields, func(known string) bool { return strings.EqualFold(known, name) }) {
			delete(r.Unknown, name)
		}
	}
	if len(r.Unknown) == 0 {
		r.Unknown = nil
	}
	return r.SessionRecord, nil
}

// Directory says which node runs which voice session. Each session has one owner at a time: an
// owner writes its record, and a node that takes the session counts the epoch up, which fences the
// owner of before. Its methods may be used concurrently, and need [Nodes.Join].
type Directory struct {
	// Fixed after openDirectory.
	bucket *bucket
	nodes  *Nodes

	mu  sync.Mutex // guards the following field
	own map[string]*Owned
}

func (s *Store) openDirectory(ctx context.Context) (*Directory, error) {
	b, err := s.openBucket(ctx, witness.Sessions, "voicegw: which node runs which voice session")
	return &Directory{bucket: b, nodes: s.nodes, own: map[string]*Owned{}}, err
}

// errNoNode says that Join is missing.
var errNoNode = errors.New("store: this process is not a node: it has not joined")

// Enter records a session that begins on this node; Node, Epoch and a missing State are set here.
// It is durable when Enter returns. ErrUsed: there is a session of that id. The other errors wrap
// ErrUnavailable or ErrTooBig, or say what is missing; after ErrUnavailable Enter can be called again.
func (d *Directory) Enter(ctx context.Context, r SessionRecord) (*Owned, error) {
	if r.Node = d.nodes.own(); r.Node == "" {
		return nil, errNoNode
	}
	if r.ID == "" {
		return nil, errors.New("store: a session needs an id")
	}
	r.Epoch, r.Unknown = 1, nil
	r.State = cmp.Or(r.State, SessionLive)
	data, err := d.encode(r)
	if err != nil {
		return nil, err
	}
	absences, _ := d.bucket.store.member.Load().absent()
	h, err := d.bucket.create(ctx, keyOf(r.ID), data, sessionLife(r, time.Now()))
	if errors.Is(err, errConflict) && d.entered(r, h.data) {
		h.revision, err = d.bucket.replace(ctx, keyOf(r.ID), data, h.revision, sessionLife(r, time.Now()))
	}
	if errors.Is(err, errConflict) || errors.Is(err, ErrChanged) {
		return nil, fmt.Errorf("%w: a session of that id", ErrUsed)
	} else if err != nil {
		return nil, err
	}
	return d.hold(r, h.revision, absences), nil
}

// entered reports whether a record is what an earlier call of Enter has written for r, of which this node
// got no acknowledgement: nobody else writes at its first epoch.
func (d *Directory) entered(r SessionRecord, data []byte) bool {
	is, err := decodeSession(data)
	d.mu.Lock()
	defer d.mu.Unlock()
	return err == nil && is.ID == r.ID && is.Node == r.Node && is.Epoch == r.Epoch && is.State != SessionOver && d.own[keyOf(r.ID)] == nil
}

// notWhole says why a record is not written, or not believed.
const notWhole = "a session without an id, a node, an epoch or a state"

// whole reports whether a record has what every record must have.
func whole(r SessionRecord) bool { return r.ID != "" && r.Node != "" && r.Epoch != 0 && r.State != "" }

func (d *Directory) encode(r SessionRecord) ([]byte, error) {
	if !whole(r) {
		return nil, errors.New("store: not written: " + notWhole)
	}
	data, err := encodeSession(r)
	if err == nil && len(data) > mostSessionBytes {
		err = fmt.Errorf("%w: a session's record of %d bytes, of at most %d", ErrTooBig, len(data), mostSessionBytes)
	}
	return data, err
}

// sessionLife is how long a record is kept.
func sessionLife(r SessionRecord, now time.Time) time.Duration {
	switch {
	case r.State == SessionOver:
		return overLife
	case r.EndsAt.IsZero():
		return sessionMost + sessionAfter
	}
	return max(r.EndsAt.Sub(now), 0) + sessionAfter
}

// Find returns a session's record. ErrUnknown: there is no such session, or it is over for more than ten
// minutes. The other errors wrap ErrUnavailable, ErrVersion or ErrCorrupt.
func (d *Directory) Find(ctx context.Context, id string) (SessionRecord, error) {
	r, _, err := d.find(ctx, keyOf(id))
	if err == nil && r.ID != id {
		return SessionRecord{}, fmt.Errorf("%w: a session under the key of another one", ErrCorrupt)
	}
	return r, err
}

func (d *Directory) find(ctx context.Context, key string) (SessionRecord, held, error) {
	h, err := d.bucket.get(ctx, key)
	if err != nil {
		return SessionRecord{}, h, err
	}
	r, err := decodeSession(h.data)
	return r, h, err
}

// List returns the sessions of all nodes that are not over, by the time of their start. A session
// whose node is gone is listed until its record ends: [Nodes.List] says which nodes are there. A
// record that cannot be read is logged and left out. In a cluster of NATS servers the list may lack what
// was written a moment ago. The error wraps ErrUnavailable.
func (d *Directory) List(ctx context.Context) ([]SessionRecord, error) {
	var all []SessionRecord
	err := d.bucket.each(ctx, "reading the sessions", func(_ string, data []byte) {
		switch r, err := decodeSession(data); {
		case err != nil:
			d.bucket.store.log.Warn("store_session_unreadable", "error", err)
		case r.State != SessionOver:
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b SessionRecord) int {
		if by := a.StartedAt.Compare(b.StartedAt); by != 0 {
			return by
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, err
}

// Take makes this node the owner of a session that another node, or this one, has run. found is
// the record as Find returned it: of all who take a session at one epoch exactly one succeeds, and
// the others, and the owner of before, are fenced. The record keeps what its owner has written
// since it was found, is SessionLive, and has the next epoch; it is Lost if it was, or if its owner of
// before has not given the session up. Whether that owner is gone is for the caller to know.
//
// ErrFenced: another node took it first. ErrUnknown: it is over. The other errors wrap
// ErrUnavailable, ErrVersion or ErrCorrupt; after ErrUnavailable it may be taken or not, and Find
// tells.
func (d *Directory) Take(ctx context.Context, found SessionRecord) (*Owned, error) {
	node := d.nodes.own()
	if node == "" {
		return nil, errNoNode
	}
	ctx, cancel := d.bucket.store.bounded(ctx)
	defer cancel()
	key, mark := keyOf(found.ID), newMark()
	absences, _ := d.bucket.store.member.Load().absent()
	for {
		r, h, err := d.find(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case r.ID == found.ID && r.Epoch == found.Epoch+1 && r.Node == node && h.mark == mark:
			// It is this caller's own write, whose acknowledgement was lost.
			return d.hold(r, h.revision, absences), d.bucket.claimHeld(ctx, key, h)
		case r.State == SessionOver:
			return nil, fmt.Errorf("%w: the session is over", ErrUnknown)
		case r.ID != found.ID || r.Epoch != found.Epoch:
			return nil, ErrFenced
		}
		before := r.Node
		r.Lost = r.Lost || r.State != SessionMoving
		r.Node, r.Epoch, r.State = node, r.Epoch+1, SessionLive
		data, err := d.encode(r)
		if err != nil {
			return nil, err
		}
		revision, err := d.bucket.put(ctx, key, data, mark, h.revision, sessionLife(r, time.Now()))
		if err == nil {
			o := d.hold(r, revision, absences)
			d.nodes.taken(before, key)
			return o, nil
		} else if !errors.Is(err, errConflict) {
			return nil, err
		}
		if err := d.bucket.store.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// hold makes the handle of a session that this node owns now. One that this process had of the
// same session is fenced.
func (d *Directory) hold(r SessionRecord, revision uint64, absences uint64) *Owned {
	o := &Owned{directory: d, key: keyOf(r.ID), record: r, revision: revision, checked: absences}
	d.mu.Lock()
	old := d.own[o.key]
	d.own[o.key] = o
	d.mu.Unlock()
	if old != nil {
		old.fence()
	}
	return o
}

// doubt has a session checked that somebody may have taken.
func (d *Directory) doubt(key string) {
	d.mu.Lock()
	o := d.own[key]
	d.mu.Unlock()
	if o != nil {
		o.doubt()
		d.bucket.store.member.Load().poke()
	}
}

// forget drops a handle that is lost or over.
func (d *Directory) forget(o *Owned) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own[o.key] == o {
		delete(d.own, o.key)
	}
}

// check reads the records of the sessions that are in doubt, and of those that were not read since
// the node's last absence, and fences those that somebody has taken.
func (d *Directory) check(ctx context.Context, absences uint64) {
	d.mu.Lock()
	var all []*Owned
	for _, o := range d.own {
		if !o.known(absences) {
			all = append(all, o)
		}
	}
	d.mu.Unlock()
	for _, o := range all {
		switch r, _, err := d.find(ctx, o.key); {
		case err == nil && o.is(r):
			o.confirm(absences)
		case err == nil, errors.Is(err, ErrUnknown), errors.Is(err, ErrVersion):
			o.fence()
		case ctx.Err() != nil:
			return
		default: // it stays in doubt
			d.bucket.store.log.Warn("store_session_not_checked", "error", err)
		}
	}
}

// Owned is a session that this node runs. Its methods may be used concurrently.
type Owned struct {
	// Fixed after hold.
	directory *Directory
	key       string

	writing sync.Mutex // held for a write to the store

	mu       sync.Mutex // guards the following fields
	record   SessionRecord
	revision uint64
	checked  uint64 // the node's absences when the record was last known to be this node's
	doubtful bool   // somebody may have taken it
	over     bool
	lost     bool     // another node has taken it
	whenLost []func() // to call then; nil once it is lost
}

// Record returns the session's record as it was last written.
func (o *Owned) Record() SessionRecord {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record
}

// WhenLost calls f, on a goroutine of its own, once another node has taken the session, as soon as
// this process knows it: within milliseconds while both reach the store, otherwise when this
// node reaches it again. If it is lost already, f is called at once. A session that was ended with
// End is never lost.
func (o *Owned) WhenLost(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost {
		go f()
		return
	}
	o.whenLost = append(o.whenLost, f)
}

// Sure says that no other node runs the session: this node is not fenced, and has read the
// session's record since it was last. A session that is not sure must not begin anything that has
// effects. It reads nothing from the store.
func (o *Owned) Sure() bool {
	absences, fenced := o.directory.bucket.store.member.Load().absent()
	return !fenced && o.known(absences)
}

// known says whether the record was read since the node's last absence and is not in doubt.
func (o *Owned) known(absences uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.checked == absences && !o.doubtful && !o.over
}

func (o *Owned) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubtful = true
}

func (o *Owned) confirm(absences uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checked, o.doubtful = absences, false
}

// is says whether a record from the store is this owner's.
func (o *Owned) is(r SessionRecord) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return r.ID == o.record.ID && r.Epoch == o.record.Epoch && r.Node == o.record.Node
}

// fence tells the owner that the session is lost.
func (o *Owned) fence() {
	o.mu.Lock()
	var told []func()
	if !o.over {
		told, o.whenLost, o.lost = o.whenLost, nil, true
	}
	o.over = true
	o.mu.Unlock()
	o.directory.forget(o)
	for _, f := range told {
		go f()
	}
}

// Update changes the session's record: change gets a copy, and must not keep it. ID, Node, Epoch
// and StartedAt stay. The record is durable when Update returns. ErrFenced: another node has taken
// the session. The other errors wrap ErrUnavailable or ErrTooBig, and then what was written is not
// known; another Update tells.
func (o *Owned) Update(ctx context.Context, change func(*SessionRecord)) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	next, revision, over := o.record, o.revision, o.over
	o.mu.Unlock()
	if over {
		return ErrFenced
	}
	was := next
	next.TokenHashes = slices.Clone(next.TokenHashes)
	change(&next)
	next.ID, next.Node, next.Epoch, next.StartedAt, next.Unknown = was.ID, was.Node, was.Epoch, was.StartedAt, was.Unknown
	data, err := o.directory.encode(next)
	if err != nil {
		return err
	}
	revision, err = o.write(ctx, data, revision, sessionLife(next, time.Now()))
	if errors.Is(err, ErrFenced) {
		o.fence()
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record, o.revision = next, revision
	return nil
}

// write replaces the record while it is of this epoch and node. Nobody else writes it then, so
// another revision is an earlier write whose acknowledgement was lost.
func (o *Owned) write(ctx context.Context, data []byte, revision uint64, life time.Duration) (uint64, error) {
	b := o.directory.bucket
	for {
		next, err := b.replace(ctx, o.key, data, revision, life)
		if !errors.Is(err, ErrChanged) {
			return next, err
		}
		r, h, err := o.directory.find(ctx, o.key)
		switch {
		case errors.Is(err, ErrUnknown), errors.Is(err, ErrVersion), err == nil && !o.is(r):
			return 0, ErrFenced
		case err != nil:
			return 0, err
		}
		revision = h.revision
	}
}

// End records that the session is over. ErrFenced: another node has taken it. After any other
// error End can be called again, or the record ends by itself.
func (o *Owned) End(ctx context.Context) error {
	err := o.Update(ctx, func(r *SessionRecord) {
		r.State, r.TokenHashes, r.OldTokenHash, r.EndedAt = SessionOver, nil, "", time.Now().UTC()
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.directory.forget(o)
	return nil
}

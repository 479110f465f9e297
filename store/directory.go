package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// SessionState is the state of a voice session.
type SessionState string

// The states. A newer version may write others.
const (
	// SessionLive has a client; SessionDetached waits for its client.
	SessionLive     SessionState = "live"
	SessionDetached SessionState = "detached"
	// SessionMoving was released by its node, with a checkpoint, for another node to take.
	SessionMoving SessionState = "moving"
	// SessionOver can't be resumed.
	SessionOver SessionState = "over"
)

const (
	// sessionAfter is how long a record outlives its session's maximum duration.
	sessionAfter = time.Hour
	// sessionMost is that duration for records without one.
	sessionMost = 24 * time.Hour
	// overLife is how long an ended session stays in the directory.
	overLife = 10 * time.Minute
	// mostSessionBytes bounds a record, which includes client input.
	mostSessionBytes = 32 << 10
)

// SessionRecord describes a voice session for all nodes.
type SessionRecord struct {
	// ID is the session's ID; the record's key is its SHA-256.
	ID string `json:"id"`
	// Node runs the session. Epoch counts the nodes that have run it, from 1.
	Node  string       `json:"node"`
	Epoch uint64       `json:"epoch"`
	State SessionState `json:"state"`
	// Lost means that the previous node died and no node has continued the session.
	Lost bool `json:"lost,omitempty"`
	// User is the user's identity, Conversation the conversation's ID; it may be empty.
	User         string `json:"user,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	Agent        string `json:"agent,omitempty"`
	// EndsAt is when the session reaches its maximum duration. Zero means 24 hours after the write.
	StartedAt time.Time `json:"started_at"`
	EndsAt    time.Time `json:"ends_at,omitzero"`
	// EndedAt is when the session ended; zero before.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// TokenHashes are the hexadecimal SHA-256 of the resume tokens, which are never stored. OldTokenHash is the previous
	// token's; empty once the client has received the newest.
	TokenHashes  []string `json:"token_hashes,omitempty"`
	OldTokenHash string   `json:"old_token_hash,omitempty"`
	// Origin is the only origin whose pages may resume it; empty for any client.
	Origin string `json:"origin,omitempty"`
	// ToolsVersion is the node's registry version.
	ToolsVersion string `json:"tools_version,omitempty"`
	// Versions are the tool versions drawn for the session, by tool ID; nil if no tool has several.
	Versions map[string]string `json:"versions,omitempty"`
	// AgentVersion is the version of the agent at the session's start; empty for one without a document.
	AgentVersion string `json:"agent_version,omitempty"`
	// InputRate and OutputRate are the client's audio rates in Hz. Manual means that the client marks the user's speech.
	// Voice is the requested voice, Inspect permits the client to inspect the session, ClientID is the client's name for
	// its user, TimeZone the user's IANA time zone; each may be empty.
	InputRate  int    `json:"input_rate,omitempty"`
	OutputRate int    `json:"output_rate,omitempty"`
	Voice      string `json:"voice,omitempty"`
	ClientID   string `json:"client_id,omitempty"`
	TimeZone   string `json:"time_zone,omitempty"`
	Manual     bool   `json:"manual,omitempty"`
	Inspect    bool   `json:"inspect,omitempty"`
	// Vouched means that a trusted caller named the user; Scopes are granted by that caller.
	Vouched bool     `json:"vouched,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
	// Principal is the ID of the principal that admitted the client (auth.Principal), Entry the kind of credentials.
	// Both are empty if none were required.
	Principal string `json:"principal,omitempty"`
	Entry     string `json:"entry,omitempty"`
	// Mark distinguishes different credentials of Principal's ID, and PrincipalExpires is when they end. Either may be
	// empty.
	Mark             string    `json:"mark,omitempty"`
	PrincipalExpires time.Time `json:"principal_expires,omitzero"`

	// Unknown are fields of a newer version, kept when this version writes the record. May be nil.
	Unknown map[string]json.RawMessage `json:"-"`
}

var sessionFields = func() []string {
	names := []string{"v"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[SessionRecord]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

func encodeSession(r SessionRecord) ([]byte, error) {
	data, err := encodeVersioned(r)
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

func decodeSession(data []byte) (SessionRecord, error) {
	if len(data) > mostSessionBytes {
		return SessionRecord{}, fmt.Errorf("%w: a session of %d bytes", ErrCorrupt, len(data))
	}
	r, err := decodeAs(data, decodeVersioned, notWhole, whole)
	if err != nil {
		return SessionRecord{}, err
	}
	if err := decode(data, &r.Unknown); err != nil {
		return SessionRecord{}, err
	}
	for name := range r.Unknown {
		// Names are compared like encoding/json does.
		if slices.ContainsFunc(sessionFields, func(known string) bool { return strings.EqualFold(known, name) }) {
			delete(r.Unknown, name)
		}
	}
	if len(r.Unknown) == 0 {
		r.Unknown = nil
	}
	return r, nil
}

// Directory records which node runs which voice session. A session has one owner at a time: taking it increments the
// epoch, which fences the previous owner. Its methods may be used concurrently, and need [Nodes.Join].
type Directory struct {
	// Immutable.
	bucket *bucket
	nodes  *Nodes

	mu  sync.Mutex // guards the following field
	own map[string]*Owned
}

var errNoNode = errors.New("store: this process is not a node; call Nodes.Join first")

// Enter records a new session of this node durably, setting Node, Epoch and a missing State. ErrUsed means that the ID
// exists. The other errors wrap ErrUnavailable or ErrTooBig, or name a missing field; after ErrUnavailable the caller
// can try again.
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
	w := &write{data: data, ttl: sessionLife(r, time.Now())}
	h, err := d.bucket.set(ctx, keyOf(r.ID), w, 0, func(h held) (*write, error) {
		if h.exists() && !d.entered(r, h.data) {
			return nil, fmt.Errorf("%w: the session id exists", ErrUsed)
		}
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	return d.hold(r, h.revision, absences), nil
}

// entered reports whether data is r as written by an earlier Enter whose acknowledgement was lost: only this node writes
// at its first epoch.
func (d *Directory) entered(r SessionRecord, data []byte) bool {
	is, err := decodeSession(data)
	d.mu.Lock()
	defer d.mu.Unlock()
	return err == nil && is.ID == r.ID && is.Node == r.Node && is.Epoch == r.Epoch && is.State != SessionOver && d.own[keyOf(r.ID)] == nil
}

const notWhole = "a session without an id, a node, an epoch or a state"

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

func sessionLife(r SessionRecord, now time.Time) time.Duration {
	switch {
	case r.State == SessionOver:
		return overLife
	case r.EndsAt.IsZero():
		return sessionMost + sessionAfter
	}
	return max(r.EndsAt.Sub(now), 0) + sessionAfter
}

// Find returns a session's record. ErrUnknown means none, or ended more than ten minutes ago. The other errors wrap
// ErrUnavailable, ErrVersion or ErrCorrupt.
func (d *Directory) Find(ctx context.Context, id string) (SessionRecord, error) {
	r, _, err := read(ctx, d.bucket, keyOf(id), decodeSession)
	if err == nil && r.ID != id {
		return SessionRecord{}, fmt.Errorf("%w: the record belongs to another session", ErrCorrupt)
	}
	return r, err
}

// List returns the running sessions of all nodes by start time. A dead node's sessions are listed until their records
// expire; see [Nodes.List]. Unreadable records are logged and left out. In a NATS cluster the newest writes may be
// missing.
func (d *Directory) List(ctx context.Context) ([]SessionRecord, error) {
	all, err := records(ctx, d.bucket, "reading the sessions", "store_session_unreadable", decodeSession)
	all = slices.DeleteFunc(all, func(r SessionRecord) bool { return r.State == SessionOver })
	slices.SortFunc(all, func(a, b SessionRecord) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// Take makes this node the owner of a session of another node, or an earlier one of this. found is Find's result: of all
// callers at one epoch exactly one succeeds; the others and the previous owner are fenced. The record keeps later
// changes by its owner, becomes SessionLive and gets the next epoch; it is Lost if it was, or if the previous owner had
// not released it. The caller must know that that owner is gone.
//
// ErrFenced: another node took it first. ErrUnknown: it has ended. The other errors wrap ErrUnavailable, ErrVersion or
// ErrCorrupt; after ErrUnavailable use Find to see whether it was taken.
func (d *Directory) Take(ctx context.Context, found SessionRecord) (*Owned, error) {
	node := d.nodes.own()
	if node == "" {
		return nil, errNoNode
	}
	absences, _ := d.bucket.store.member.Load().absent()
	var r SessionRecord
	var before string
	h, err := d.bucket.change(ctx, keyOf(found.ID), func(h held) (w *write, err error) {
		if !h.exists() {
			return nil, errNone
		}
		r, err = decodeSession(h.data)
		switch {
		case err != nil:
			return nil, err
		case r.State == SessionOver:
			return nil, fmt.Errorf("%w: the session is over", ErrUnknown)
		case r.ID != found.ID || r.Epoch != found.Epoch:
			return nil, ErrFenced
		}
		before = r.Node
		r.Lost = r.Lost || r.State != SessionMoving
		r.Node, r.Epoch, r.State = node, r.Epoch+1, SessionLive
		data, err := d.encode(r)
		return &write{data: data, ttl: sessionLife(r, time.Now())}, err
	})
	if err != nil {
		return nil, err
	}
	o := d.hold(r, h.revision, absences)
	d.nodes.taken(before, o.key)
	return o, nil
}

// hold returns the handle of a session that this node owns, and fences an earlier handle of this process.
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

// doubt schedules a check of a session that another node may have taken.
func (d *Directory) doubt(key string) {
	d.mu.Lock()
	o := d.own[key]
	d.mu.Unlock()
	if o != nil {
		o.doubt()
		poke(d.bucket.store.member.Load().wake)
	}
}

func (d *Directory) forget(o *Owned) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own[o.key] == o {
		delete(d.own, o.key)
	}
}

// check reads the sessions in doubt, and those not read since the node's last absence, and fences those taken by others.
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
		switch r, _, err := read(ctx, d.bucket, o.key, decodeSession); {
		case err == nil && o.is(r):
			o.confirm(absences)
		case err == nil, errors.Is(err, ErrUnknown), errors.Is(err, ErrVersion):
			o.fence()
		case ctx.Err() != nil:
			return
		default: // still in doubt
			d.bucket.store.log.Warn("store_session_not_checked", "error", err)
		}
	}
}

// Owned is a session of this node.
type Owned struct {
	// Immutable.
	directory *Directory
	key       string

	writing sync.Mutex // held during writes to the store

	mu       sync.Mutex // guards the following fields
	record   SessionRecord
	revision uint64
	checked  uint64 // the node's absences when the record was last confirmed
	doubtful bool   // another node may have taken it
	over     bool
	lost     bool     // another node has taken it
	whenLost []func() // callbacks; nil once lost
}

// Record returns the last written record.
func (o *Owned) Record() SessionRecord {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record
}

// WhenLost calls f once, on a new goroutine, when another node has taken the session: within milliseconds while both
// reach the store, otherwise when this node reaches it again, or at once if already lost. A session ended with End is
// never lost.
func (o *Owned) WhenLost(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost {
		go f()
		return
	}
	o.whenLost = append(o.whenLost, f)
}

// Sure reports whether no other node can be running the session: this node isn't fenced and has read the record since it
// last was. Otherwise the session must not start side effects. It doesn't access the store.
func (o *Owned) Sure() bool {
	absences, fenced := o.directory.bucket.store.member.Load().absent()
	return !fenced && o.known(absences)
}

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

func (o *Owned) is(r SessionRecord) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return r.ID == o.record.ID && r.Epoch == o.record.Epoch && r.Node == o.record.Node
}

// fence marks the session as lost and calls the callbacks.
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

// Update changes the record durably; change gets a copy it must not keep. ID, Node, Epoch and StartedAt stay. ErrFenced
// means that another node has taken the session. The other errors wrap ErrUnavailable or ErrTooBig; then the outcome is
// unknown until another Update.
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
	// Only this process writes the record while it has this epoch and node, so another revision is an earlier write
	// whose acknowledgement was lost.
	w := &write{data: data, ttl: sessionLife(next, time.Now())}
	h, err := o.directory.bucket.set(ctx, o.key, w, revision, func(h held) (*write, error) {
		r, err := decodeSession(h.data)
		if !h.exists() || errors.Is(err, ErrVersion) || err == nil && !o.is(r) {
			return nil, ErrFenced
		}
		return w, err
	})
	if errors.Is(err, ErrFenced) {
		o.fence()
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record, o.revision = next, h.revision
	return nil
}

// End records the session's end. ErrFenced means that another node has taken it. After other errors End can be repeated,
// or the record expires.
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

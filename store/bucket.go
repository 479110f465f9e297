package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

const (
	// markHeader identifies a write, so that a writer that had to repeat it recognises its own value.
	markHeader = "Voicegw-Write"
	// opHeader and opPurge mark removed keys of a key-value bucket (ADR-8 of NATS, "JetStream based Key-Value Stores").
	opHeader = "KV-Operation"
	opPurge  = "PURGE"
	// ttlHeader is a message's time to live, such as "3600s" (ADR-43 of NATS, "JetStream Per-Message TTL").
	ttlHeader = "Nats-TTL"
	// removedLife is how long the marker of a removed key stays by default, long enough for a watcher that lost its
	// connection. After a longer absence a watcher rereads everything.
	removedLife = time.Hour
	// longestTTL bounds a record's life: the server adds it to Unix time in nanoseconds.
	longestTTL = 100 * 365 * 24 * time.Hour
)

// bucket is a key-value bucket in NATS's format. It differs from the client library in three points: an updated value
// keeps its own TTL (the library's Update drops it), values are read from the leader (a follower may be behind), and a
// write whose acknowledgement was lost is recognised.
type bucket struct {
	// Immutable.
	store  *Store
	part   witness.Bucket // 0 for the nodes: no record outlives its writer, so the witness ignores them
	stream jetstream.Stream
	name   string
	before string // of each key in its subject
	// noteLife is how long the marker of a removed key stays.
	noteLife time.Duration
}

type held struct {
	data     []byte
	revision uint64
	removed  bool // the key was removed and only the marker is left
	mark     string
	note     string    // noteHeader
	end      time.Time // when it expires
	until    time.Time // when the claim on it ends
}

// newMark identifies a write. A step repeated after a conflict keeps its mark, because the conflicting value may be its
// own.
func newMark() string { return rand.Text() }

// openBucket opens a bucket with a total size limit, beyond which the oldest values are removed. Zero means no limit.
func (s *Store) openBucket(ctx context.Context, part witness.Bucket, about string, most int64) (*bucket, error) {
	stream := streamName(part)
	b := &bucket{store: s, part: part, name: strings.TrimPrefix(stream, "KV_"), noteLife: removedLife}
	b.before = "$KV." + b.name + "."
	config := jetstream.StreamConfig{
		Name:              stream,
		Description:       "voicegw: " + about,
		Subjects:          []string{b.before + ">"},
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew,
		AllowMsgTTL:       true,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       false,
	}
	if most > 0 {
		config.MaxBytes, config.Discard = most, jetstream.DiscardOld
	}
	var err error
	b.stream, err = s.openStream(ctx, part, config)
	return b, err
}

// openStream creates a part's stream, or updates an existing one's configuration. part is zero for the nodes, which the
// embedded server keeps in memory, because this process is their only writer.
func (s *Store) openStream(ctx context.Context, part witness.Bucket, config jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	config.Replicas, config.Storage = s.o.Replicas, jetstream.FileStorage
	if s.o.Memory || part == 0 && s.embedded != nil {
		config.Storage = jetstream.MemoryStorage
	}
	err = s.within(ctx, openWait, "making the stream "+config.Name, func(ctx context.Context) error {
		var err error
		stream, err = s.js.CreateOrUpdateStream(ctx, config)
		return err
	})
	if part != 0 {
		s.parts[part] = stream
	}
	return stream, err
}

// keyOf hashes a text to a valid key of fixed length that reveals nothing about it.
func keyOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (h held) exists() bool { return h.revision != 0 && !h.removed }

// get reads a key from the leader. Others may write before the caller acts on it. errNone means no value; held then has
// the revision that a write must expect.
func (b *bucket) get(ctx context.Context, key string) (held, error) {
	var h held
	err := b.store.within(ctx, b.store.o.Wait, "reading "+b.name, func(ctx context.Context) error {
		m, err := b.stream.GetLastMsgForSubject(ctx, b.before+key)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			h = held{}
			return nil
		} else if err != nil {
			return err
		}
		h = heldOf(m.Header, m.Data, m.Sequence, m.Time)
		return nil
	})
	if err == nil && !h.exists() {
		err = errNone
	}
	return h, err
}

// read returns a decoded record, with the value it was decoded from.
func read[T any](ctx context.Context, b *bucket, key string, decode func([]byte) (T, error)) (record T, h held, err error) {
	if h, err = b.get(ctx, key); err == nil {
		record, err = decode(h.data)
	}
	return record, h, err
}

// write is one write of a key.
type write struct {
	data []byte
	// note is kept in a header, for readers of headers only; empty for none.
	note string
	ttl  time.Duration // from now, in whole seconds, at least one
	// remove removes the key instead.
	remove bool
}

// set writes over revision expected, 0 for none. If the key has another revision, again decides with its value, which
// may not exist: it returns the next write, nil to leave the value, or set's error. set returns the key's value when
// that is stored and claimed, or the value that again left.
func (b *bucket) set(ctx context.Context, key string, w *write, expected uint64,
	again func(held) (*write, error)) (held, error) {
	ctx, cancel := b.store.bounded(ctx)
	defer cancel()
	mark := newMark()
	for {
		revision, err := b.put(ctx, key, w, mark, expected)
		if !errors.Is(err, errConflict) {
			return held{data: w.data, revision: revision, removed: w.remove, mark: mark}, err
		}
		h, err := b.get(ctx, key)
		switch {
		case err != nil && !errors.Is(err, errNone):
			return held{}, err
		case h.mark == mark && h.removed:
			return h, nil
		case h.mark == mark: // the caller's own write, whose acknowledgement was lost
			return h, b.claim(ctx, key, h.data, h.revision, h.until)
		case h.revision == expected: // the conflicting value can't be read yet
			if err := b.store.pause(ctx); err != nil {
				return held{}, err
			}
			continue
		}
		if w, err = again(h); w == nil || err != nil {
			return h, err
		}
		expected = h.revision
	}
}

// change writes what decide makes of the key's value, like set.
func (b *bucket) change(ctx context.Context, key string, decide func(held) (*write, error)) (held, error) {
	ctx, cancel := b.store.bounded(ctx)
	defer cancel()
	h, err := b.get(ctx, key)
	if err != nil && !errors.Is(err, errNone) {
		return held{}, err
	}
	w, err := decide(h)
	if w == nil || err != nil {
		return h, err
	}
	return b.set(ctx, key, w, h.revision, decide)
}

func removal(h held) (*write, error) {
	if !h.exists() {
		return nil, nil
	}
	return &write{remove: true}, nil
}

// create writes a key without a value; errConflict, with the value in held, if there is one.
func (b *bucket) create(ctx context.Context, key string, data []byte, ttl time.Duration) (held, error) {
	w := &write{data: data, ttl: ttl}
	return b.set(ctx, key, w, 0, func(h held) (*write, error) {
		if h.exists() {
			return nil, errConflict
		}
		return w, nil
	})
}

// overwrite writes over the expected revision and returns the new one. ErrChanged if the key has another revision,
// missing if it has no value.
func (b *bucket) overwrite(ctx context.Context, key string, w *write, expected uint64, missing error) (uint64, error) {
	h, err := b.set(ctx, key, w, expected, func(h held) (*write, error) {
		if !h.exists() {
			return nil, missing
		}
		return nil, ErrChanged
	})
	if err != nil {
		return 0, err
	}
	return h.revision, nil
}

// replace overwrites a value; ErrChanged if the key has another revision or no value.
func (b *bucket) replace(ctx context.Context, key string, data []byte, expected uint64, ttl time.Duration) (uint64, error) {
	return b.overwrite(ctx, key, &write{data: data, ttl: ttl}, expected, ErrChanged)
}

// remove removes a key with the expected revision; ErrChanged if it has another one, errNone if it has no value.
func (b *bucket) remove(ctx context.Context, key string, expected uint64) (uint64, error) {
	return b.overwrite(ctx, key, &write{remove: true}, expected, errNone)
}

// put writes with the expected revision, 0 for none. It returns when the value is stored and claimed; errConflict if the
// revision is another one, which may be put's own after an attempt whose acknowledgement was lost.
func (b *bucket) put(ctx context.Context, key string, w *write, mark string, expected uint64) (revision uint64, err error) {
	what, ttl, header := "writing "+b.name, w.ttl, nats.Header{markHeader: {mark}}
	if most := b.store.most(); len(w.data) > most {
		return 0, fmt.Errorf("%w: %d bytes for %s, the maximum is %d", ErrTooBig, len(w.data), b.name, most)
	}
	if w.note != "" {
		header.Set(noteHeader, w.note)
	}
	if w.remove {
		what, ttl = "removing from "+b.name, b.noteLife
		header[opHeader], header[jetstream.MsgRollup] = []string{opPurge}, []string{jetstream.MsgRollupSubject}
		if err := b.leave(ctx, key, expected); err != nil {
			return 0, err
		}
	}
	before := time.Now()
	err = b.store.within(ctx, b.store.o.Wait, what, func(ctx context.Context) error {
		m := &nats.Msg{Subject: b.before + key, Data: w.data, Header: maps.Clone(header)}
		ack, err := b.store.js.PublishMsg(ctx, m,
			jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithMsgTTL(wholeSeconds(ttl)))
		if err == nil {
			revision = ack.Sequence
		}
		return err
	})
	if err == nil && !w.remove {
		err = b.claim(ctx, key, w.data, revision, until(before, ttl))
	}
	return revision, err
}

func wholeSeconds(ttl time.Duration) time.Duration {
	ttl = min(max(ttl, time.Second), longestTTL)
	return (ttl + time.Second - 1).Truncate(time.Second)
}

// each calls f for every record whose key begins with under, which ends with a dot or is empty, in no particular order.
func (b *bucket) each(ctx context.Context, what, under string, f func(key string, data []byte)) error {
	var all []message
	err := b.store.within(ctx, b.store.o.Wait, what, func(ctx context.Context) error {
		all = all[:0]
		reading, err := b.store.follow(ctx, b.stream.CachedInfo().Config.Name,
			jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: b.before + under + ">"})
		if err != nil {
			return err
		}
		defer reading.close()
		for left := reading.pending; left > 0; left-- {
			m, err := reading.next(ctx)
			if err != nil {
				return err
			}
			all = append(all, m)
			left = min(left, m.pending+1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range all {
		if !m.removed {
			f(strings.TrimPrefix(m.subject, b.before), m.data)
		}
	}
	return nil
}

// records returns a bucket's records. Unreadable ones are logged and left out.
func records[T any](ctx context.Context, b *bucket, what, unreadable string,
	decode func([]byte) (T, error)) (all []T, err error) {
	err = b.each(ctx, what, "", func(_ string, data []byte) {
		if record, err := decode(data); err == nil {
			all = append(all, record)
		} else {
			b.store.log.Warn(unreadable, "error", err)
		}
	})
	return all, err
}

// encode encodes a record as JSON; embedded JSON keeps its bytes, except for white space between values.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("store: encode a record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode decodes a record. Unknown fields come from newer versions and are ignored.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// recordVersion is the format of versioned records, in the field "v". Adding a field doesn't change it, because older
// versions ignore or keep it. A new number stops older versions from using the record.
const recordVersion = 1

// encodeVersioned is encode for a record that has a version and at least one field.
func encodeVersioned(v any) ([]byte, error) {
	data, err := encode(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"v":%d,%s`, recordVersion, data[1:]), nil
}

func decodeVersioned(data []byte, v any) error {
	var head struct {
		V int `json:"v"`
	}
	switch err := decode(data, &head); {
	case err != nil:
		return err
	case head.V > recordVersion:
		return fmt.Errorf("%w (its form is %d, the newest known is %d)", ErrVersion, head.V, recordVersion)
	case head.V < 1:
		return fmt.Errorf("%w: a record without a version", ErrCorrupt)
	}
	return decode(data, v)
}

// decodeAs decodes a record with decode or decodeVersioned. wrong describes an invalid one.
func decodeAs[T any](data []byte, decode func([]byte, any) error, wrong string, valid func(T) bool) (T, error) {
	var record, none T
	if err := decode(data, &record); err != nil {
		return none, err
	}
	if !valid(record) {
		return none, fmt.Errorf("%w: %s", ErrCorrupt, wrong)
	}
	return record, nil
}

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

const (
	// earlier is the maximum time by which a claim ends before its record: their clocks are read at different moments.
	earlier = 30 * time.Second
	// scanners is the number of concurrent requests when reading a stream.
	scanners = 16
	// scanWait bounds reading all guarded buckets.
	scanWait = 5 * time.Minute
	// idName is a file in the server's folder that marks data with a witness: if only the witness is missing, it was
	// removed.
	idName = "voicegw-witness"
)

// ErrDamaged is wrapped by Open if the data has lost acknowledged records; see [DamageError].
var ErrDamaged = errors.New("store: the data is damaged")

// DamageError describes damage to the data. Nothing was opened.
type DamageError struct {
	// Where is the data folder.
	Where string
	// Verdict has the findings.
	Verdict witness.Verdict
	// Code is the value of Options.AcceptDamage that accepts exactly this damage.
	Code string
}

// Error describes the damage and its consequence.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s: %s. Side effects may have been forgotten and could be repeated", ErrDamaged, e.Where, e.Verdict)
}

// Is reports whether target is ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// Damage is the damage accepted with Options.AcceptDamage.
type Damage struct {
	Verdict witness.Verdict
	// InDoubt counts the ledger entries that count as started and unfinished.
	InDoubt int
	// Until is when the last of them expires. All means that the lost entries are unknown, so every key missing from the
	// ledger is in doubt until then.
	Until time.Time
	All   bool
}

// until returns when the claim on a record ends, given its write time and life.
func until(written time.Time, ttl time.Duration) time.Time {
	ttl = wholeSeconds(ttl)
	return written.Add(ttl - min(ttl/4, earlier))
}

func sumOf(data []byte) witness.Sum {
	sum := sha256.Sum256(data)
	return witness.Sum(sum[:16])
}

// witnessKey parses a bucket's key; ok is false for one not made by this package.
func witnessKey(key string) (k witness.Key, ok bool) {
	n, err := hex.Decode(k[:], []byte(key[:min(len(key), 2*len(k))]))
	return k, err == nil && n == len(k) && len(key) == 2*len(k)
}

// claim records that a write is acknowledged, before its caller learns of it.
func (b *bucket) claim(ctx context.Context, key string, data []byte, revision uint64, end time.Time) error {
	s := b.store
	if s.journal == nil || b.part == 0 {
		return nil
	}
	if !b.part.Guarded() {
		s.journal.Saw(b.part, revision)
		return s.inPlace(b.part)
	}
	return b.add(ctx, witness.Claim{Revision: revision, Sum: sumOf(data), Until: end}, key)
}

// leave records that a key is about to be removed. Otherwise a process killed in between would leave a claim on a
// removed record.
func (b *bucket) leave(ctx context.Context, key string, revision uint64) error {
	if b.store.journal == nil || !b.part.Guarded() {
		return nil
	}
	return b.add(ctx, witness.Claim{Revision: revision, Until: time.Now().Add(longestClaim), Going: true}, key)
}

// longestClaim is how long the note of a removal lasts, as long as any claim. (A rewritten journal drops both.)
const longestClaim = longestTTL

func (b *bucket) add(ctx context.Context, c witness.Claim, key string) error {
	k, ok := witnessKey(key)
	if !ok {
		return fmt.Errorf("store: %.80q cannot be a key of %s", key, b.name)
	}
	c.Bucket, c.Key = b.part, k
	ctx, cancel := b.store.bounded(ctx)
	defer cancel()
	if err := b.store.journal.Add(ctx, c); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return b.store.inPlace(b.part)
}

func (s *Store) guarded() []*bucket {
	return []*bucket{s.ledger.bucket, s.confirm.bucket, s.blocks.bucket, s.tickets.bucket}
}

// compare compares the streams with the acknowledged writes, refuses damage unless the operator accepts it, and starts
// the witness's next generation.
func (s *Store) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scanWait)
	defer cancel()
	known, err := s.readWitness()
	if err != nil {
		return err
	}
	held, claims, err := s.holdings(ctx, known.Claims)
	if err != nil {
		return err
	}
	now := time.Now()
	if now.Before(known.Latest) {
		now = known.Latest // the clock was set back
	}
	verdict := witness.Judge(known.Known, held, now)
	if err := s.tell(ctx, known, verdict); err != nil {
		return err
	}
	doubt := known.Doubt
	if verdict.Refused() {
		if s.o.AcceptDamage == "" || s.o.AcceptDamage != known.Code {
			return &DamageError{Where: s.where(), Verdict: verdict, Code: known.Code}
		}
		if s.accepted, err = s.accept(ctx, verdict, now); err != nil {
			return fmt.Errorf("accepting the damage: %w", err)
		}
		if s.accepted.All {
			doubt = s.accepted.Until
		}
		if held, claims, err = s.holdings(ctx, nil); err != nil {
			return err
		}
	}
	base := witness.Base{ID: known.ID, Claims: claims, Streams: map[witness.Bucket]witness.Stream{}}
	if doubt.After(now) {
		base.Doubt = doubt
	}
	for b, h := range held {
		base.Streams[b] = witness.Stream{Created: h.Created, Last: h.Last}
	}
	if known.Absent && len(claims) > 0 {
		s.log.Info("store_witness", "found", "created a witness for data of an older version")
	}
	if s.journal, err = witness.Begin(s.o.Dir, known, base, s.o.Sync == SyncAlways); err != nil {
		return err
	}
	return s.writeID()
}

// tell logs the findings and repairs those that are not refused.
func (s *Store) tell(ctx context.Context, known witness.Contents, verdict witness.Verdict) error {
	for _, note := range known.Notes {
		s.log.Warn("store_witness", "found", note)
	}
	for _, f := range verdict.Findings {
		s.log.Warn("store_damaged", "found", f.String(), "refused", f.Refused)
		if f.Kind == witness.Replaced && !f.Refused {
			if err := s.restate(ctx, s.parts[f.Bucket]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) readWitness() (witness.Contents, error) {
	known, err := witness.Read(s.o.Dir)
	if err != nil {
		return known, fmt.Errorf("store: %w", err)
	}
	id, err := os.ReadFile(s.idFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return known, fmt.Errorf("store: read the witness's marker: %w", err)
	}
	if known.Absent && err == nil {
		known.Absent, known.Broken = false, fmt.Sprintf("its files in %s are missing", s.o.Dir)
	}
	if known.ID != (witness.Key{}) && string(id) != hex.EncodeToString(known.ID[:]) {
		known.Notes = append(known.Notes, s.idFile()+" is missing or damaged; recreating it")
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %x %s", id, known.ID, known.Code))
	known.Code = hex.EncodeToString(sum[:4])
	return known, nil
}

func (s *Store) idFile() string { return filepath.Join(s.o.Dir, natsFolder, idName) }

func (s *Store) writeID() error {
	id := s.journal.ID()
	text := hex.EncodeToString(id[:])
	if old, err := os.ReadFile(s.idFile()); err == nil && string(old) == text {
		return nil
	}
	if err := os.WriteFile(s.idFile(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("store: write the witness's marker: %w", err)
	}
	return nil
}

// holdings reads the streams' contents and determines the required claims.
func (s *Store) holdings(ctx context.Context, claimed []witness.Claim) (map[witness.Bucket]witness.Held, []witness.Claim, error) {
	all := map[witness.Bucket]witness.Held{}
	for part, stream := range s.parts {
		info, err := stream.Info(ctx)
		if err != nil {
			return nil, nil, err
		}
		all[part] = heldOf(info)
	}
	var claims []witness.Claim
	for _, b := range s.guarded() {
		info, err := b.stream.Info(ctx)
		if err != nil {
			return nil, nil, err
		}
		h := heldOf(info)
		scan := &scan{bucket: b, records: map[witness.Key]witness.Record{}}
		if err := scan.all(ctx, info.State, claimed); err != nil {
			return nil, nil, err
		}
		h.Records = scan.records
		all[b.part] = h
		claims = append(claims, scan.claims...)
	}
	return all, claims, nil
}

func heldOf(info *jetstream.StreamInfo) witness.Held {
	h := witness.Held{Created: info.Created, Last: info.State.LastSeq}
	if info.State.Lost != nil {
		h.Lost = len(info.State.Lost.Msgs)
	}
	return h
}

type scan struct {
	// Immutable.
	bucket *bucket
	keep   bool // also read the values

	mu      sync.Mutex // guards the following fields
	records map[witness.Key]witness.Record
	claims  []witness.Claim
	kept    []salvaged // only with keep
	err     error
}

// all reads the stream's records in several ranges concurrently. Claimed records not found are then requested by key,
// because for an unreadable message the server answers as at the end of the stream.
func (s *scan) all(ctx context.Context, state jetstream.StreamState, claims []witness.Claim) error {
	if state.Msgs > 0 {
		part := (state.LastSeq-state.FirstSeq)/scanners + 1
		s.each(scanners, func(i int) error {
			from := state.FirstSeq + uint64(i)*part
			return s.span(ctx, from, min(from+part-1, state.LastSeq))
		})
	}
	var missing []witness.Claim
	for _, c := range claims {
		if _, ok := s.records[c.Key]; !ok && c.Bucket == s.bucket.part && !c.Going && time.Now().Before(c.Until) {
			missing = append(missing, c)
		}
	}
	s.each(scanners, func(i int) error {
		for ; i < len(missing); i += scanners {
			m, err := s.bucket.stream.GetLastMsgForSubject(ctx, s.bucket.before+hex.EncodeToString(missing[i].Key[:]))
			if err == nil {
				s.take(m)
			} else if !permanent(err) {
				return err
			}
		}
		return nil
	})
	return s.err
}

func (s *scan) each(n int, f func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				s.mu.Lock()
				s.err = errors.Join(s.err, err)
				s.mu.Unlock()
			}
		})
	}
	all.Wait()
}

func (s *scan) span(ctx context.Context, from, to uint64) error {
	for from <= to {
		m, err := s.bucket.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(s.bucket.before+">"))
		switch {
		case err != nil && permanent(err):
			return nil
		case err != nil:
			return err
		case m.Sequence > to:
			return nil
		}
		s.take(m)
		from = m.Sequence + 1
	}
	return nil
}

func permanent(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrMsgNotFound) || errors.As(err, &api)
}

func (s *scan) take(m *jetstream.RawStreamMsg) {
	key, ok := witnessKey(strings.TrimPrefix(m.Subject, s.bucket.before))
	if !ok {
		return
	}
	h := heldFrom(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key] = witness.Record{Revision: h.revision, Sum: sumOf(h.data)}
	if !h.removed {
		s.claims = append(s.claims, witness.Claim{Bucket: s.bucket.part, Key: key, Revision: h.revision, Sum: sumOf(h.data),
			Until: h.until})
		if s.keep {
			s.kept = append(s.kept, salvaged{key: hex.EncodeToString(key[:]), mark: h.mark, data: h.data, end: h.end})
		}
	}
}

func heldFrom(m *jetstream.RawStreamMsg) held {
	h := held{data: m.Data, revision: m.Sequence, removed: m.Header.Get(opHeader) != "", mark: m.Header.Get(markHeader),
		note: m.Header.Get(noteHeader)}
	life := lifeOf(m.Header)
	h.until, h.end = until(m.Time, life), m.Time.Add(life)
	return h
}

func lifeOf(h nats.Header) time.Duration {
	life, err := time.ParseDuration(h.Get(ttlHeader))
	if err != nil {
		return longestTTL // unreadable TTL
	}
	return life
}

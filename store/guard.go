package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

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
	return []*bucket{s.Ledger.bucket, s.Confirmations.bucket, s.Blocks.bucket, s.Tickets.bucket}
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
		if s.Accepted, err = s.accept(ctx, verdict, now); err != nil {
			return fmt.Errorf("accepting the damage: %w", err)
		}
		if s.Accepted.All {
			doubt = s.Accepted.Until
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
	text := hex.EncodeToString(s.journal.ID[:])
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
	guarded := map[witness.Bucket]*bucket{}
	for _, b := range s.guarded() {
		guarded[b.part] = b
	}
	all := map[witness.Bucket]witness.Held{}
	var claims []witness.Claim
	for part, stream := range s.parts {
		info, err := stream.Info(ctx)
		if err != nil {
			return nil, nil, err
		}
		h := witness.Held{Created: info.Created, Last: info.State.LastSeq}
		if info.State.Lost != nil {
			h.Lost = len(info.State.Lost.Msgs)
		}
		if b := guarded[part]; b != nil {
			scan := &scan{bucket: b, records: map[witness.Key]witness.Record{}}
			if err := scan.all(ctx, info.State, claimed); err != nil {
				return nil, nil, err
			}
			h.Records = scan.records
			claims = append(claims, scan.claims...)
		}
		all[part] = h
	}
	return all, claims, nil
}

type scan struct {
	// Immutable.
	bucket *bucket
	keep   bool // also read the values

	mu      sync.Mutex // guards the following fields
	records map[witness.Key]witness.Record
	claims  []witness.Claim
	kept    []salvaged // only with keep
}

// all reads the stream's records in several ranges concurrently. Claimed records not found are then requested by key,
// because for an unreadable message the server answers as at the end of the stream.
func (s *scan) all(ctx context.Context, state jetstream.StreamState, claims []witness.Claim) error {
	if state.Msgs > 0 {
		part := (state.LastSeq-state.FirstSeq)/scanners + 1
		err := each(scanners, func(i int) error {
			from := state.FirstSeq + uint64(i)*part
			return s.span(ctx, from, min(from+part-1, state.LastSeq))
		})
		if err != nil {
			return err
		}
	}
	var missing []witness.Claim
	for _, c := range claims {
		if _, ok := s.records[c.Key]; !ok && c.Bucket == s.bucket.part && !c.Going && time.Now().Before(c.Until) {
			missing = append(missing, c)
		}
	}
	return each(scanners, func(i int) error {
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
}

func each(n int, f func(i int) error) error {
	var all errgroup.Group
	for i := range n {
		all.Go(func() error { return f(i) })
	}
	return all.Wait()
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
	h := heldOf(m.Header, m.Data, m.Sequence, m.Time)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key] = witness.Record{Revision: h.revision, Sum: sumOf(h.data)}
	if !h.removed {
		s.claims = append(s.claims, witness.Claim{Bucket: s.bucket.part, Key: key, Revision: h.revision, Sum: sumOf(h.data),
			Until: h.until})
		if s.keep {
			s.kept = append(s.kept, salvaged{hex.EncodeToString(key[:]), h})
		}
	}
}

// heldOf converts a message to a bucket's value.
func heldOf(header nats.Header, data []byte, revision uint64, at time.Time) held {
	life, err := time.ParseDuration(header.Get(ttlHeader))
	if err != nil {
		life = longestTTL // unreadable TTL
	}
	return held{data: data, revision: revision, removed: header.Get(opHeader) != "", mark: header.Get(markHeader),
		note: header.Get(noteHeader), until: until(at, life), end: at.Add(life)}
}

// accept continues with damaged data at the operator's request: lost ledger entries count as started and unfinished, and
// the loss gives no user access. It changes only the streams and may be repeated after an interruption.
//   - ledger: lost entries are recorded as in doubt until they expire. If the lost entries are unknown, every missing
//     key is in doubt for one ledger life.
//   - confirmations, tickets: lost and outdated records are removed, so users are asked again. If they are unknown, all are removed.
//   - blocks: a lost user stays blocked until the block's end, by the hash of the name. If unknown, only the log warns
//     that a block may be missing.
func (s *Store) accept(ctx context.Context, v witness.Verdict, now time.Time) (*Damage, error) {
	d := &Damage{Verdict: v, All: v.Blind()}
	for _, b := range s.guarded() {
		lost := v.Doubtful(b.part)
		asks := b.part == witness.Confirmations || b.part == witness.Tickets
		switch {
		case d.All && asks:
			if err := b.remake(ctx, nil); err != nil {
				return nil, err
			}
			continue
		case !v.Refuses(b.part):
			continue
		}
		whole, err := b.salvage(ctx, lost)
		if err != nil {
			return nil, err
		}
		for _, c := range lost {
			record, err := lostRecord(c, now)
			if err != nil {
				return nil, err
			}
			if record.data == nil {
				continue
			}
			whole = append(whole, record)
			if b.part == witness.Ledger {
				d.InDoubt++
				d.Until = latest(d.Until, record.end)
			}
		}
		if err := b.remake(ctx, whole); err != nil {
			return nil, err
		}
	}
	if d.All {
		d.Until = latest(d.Until, now.Add(s.o.LedgerLife))
	}
	s.log.Warn("store_damage_accepted", "found", v.String(), "in_doubt", d.InDoubt, "all_in_doubt", d.All, "until", d.Until)
	return d, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

type salvaged struct {
	key string
	held
}

func (b *bucket) salvage(ctx context.Context, lost []witness.Claim) ([]salvaged, error) {
	info, err := b.stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	scan := &scan{bucket: b, records: map[witness.Key]witness.Record{}, keep: true}
	if err := scan.all(ctx, info.State, nil); err != nil {
		return nil, err
	}
	skip := map[string]bool{}
	for _, c := range lost {
		skip[hex.EncodeToString(c.Key[:])] = true
	}
	return slices.DeleteFunc(scan.kept, func(r salvaged) bool { return skip[r.key] }), nil
}

// remake rebuilds the bucket's stream with these records, because the server refuses to overwrite unreadable messages.
func (b *bucket) remake(ctx context.Context, records []salvaged) error {
	js := b.store.js
	info, err := b.stream.Info(ctx)
	if err != nil {
		return err
	}
	if err := js.DeleteStream(ctx, info.Config.Name); err != nil {
		return fmt.Errorf("removing the stream %s: %w", info.Config.Name, err)
	}
	if b.stream, err = js.CreateStream(ctx, info.Config); err != nil {
		return fmt.Errorf("recreating the stream %s: %w", info.Config.Name, err)
	}
	for _, r := range records {
		left := time.Until(r.end)
		if left <= 0 {
			continue
		}
		m := &nats.Msg{Subject: b.before + r.key, Data: r.data, Header: nats.Header{markHeader: {cmp.Or(r.mark, newMark())}}}
		one, cancel := context.WithTimeout(ctx, openWait)
		_, err := js.PublishMsg(one, m, jetstream.WithMsgTTL(wholeSeconds(left)))
		cancel()
		if err != nil {
			return fmt.Errorf("writing a record of %s again: %w", b.name, err)
		}
	}
	return nil
}

// lostRecord returns the replacement of a lost record; nil data removes it.
func lostRecord(c witness.Claim, now time.Time) (salvaged, error) {
	r := salvaged{hex.EncodeToString(c.Key[:]), held{end: c.Until.Add(earlier)}}
	var err error
	switch c.Bucket {
	case witness.Ledger:
		r.data, err = encode(Entry{State: Pending, At: now.UTC(), LeaseUntil: now.UTC()})
	case witness.Blocks:
		r.data, err = encode(block{Lost: true, Until: r.end.UTC()})
	}
	return r, err
}

// restate rewrites a stream's configuration file: the server recovers the stream from a damaged file but doesn't repair
// the file.
func (s *Store) restate(ctx context.Context, stream jetstream.Stream) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata["voicegw_remade"] = info.Created.UTC().Format(time.RFC3339Nano)
	_, err = s.js.UpdateStream(ctx, config)
	return err
}

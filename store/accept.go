package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

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
	key, mark string
	data      []byte
	end       time.Time
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
	r := salvaged{key: hex.EncodeToString(c.Key[:]), end: c.Until.Add(earlier)}
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

// Accepted returns the damage that Open accepted, or nil.
func (s *Store) Accepted() *Damage { return s.accepted }

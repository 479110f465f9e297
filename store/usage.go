package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"voicegw/internal/cost"
	"voicegw/store/witness"
)

const (
	// usageLife is how long a day's usage is kept after it was last written.
	usageLife = 100 * 24 * time.Hour
	// usageBytes bounds all usage together: beyond it, the records that were written longest ago
	// are removed. memoryUsage is the same for a Store in memory.
	usageBytes  = 256 << 20
	memoryUsage = 16 << 20
	// mostUsageDays bounds how many days one reading may have.
	mostUsageDays = 100
)

// UsageRecord is what one process has counted of one day's usage by one user with one key. Only that
// process writes it, and what it counts only grows: so records are summed, and nobody waits for
// anybody.
type UsageRecord struct {
	// Day is a day in UTC, such as 2026-11-25.
	Day string `json:"day"`
	// Writer is the process.
	Writer string `json:"writer"`
	// User and Key identify the user and the API key; either may be empty.
	User string `json:"user,omitempty"`
	Key  string `json:"key,omitempty"`
	cost.Sum
}

// storedUsage is a UsageRecord in the bucket.
type storedUsage struct {
	V int `json:"v"`
	UsageRecord
}

// Usage keeps what users and keys have used, by days. Its methods may be used concurrently.
type Usage struct {
	// Fixed after openUsage.
	bucket *bucket
}

func (s *Store) openUsage(ctx context.Context) (*Usage, error) {
	most := int64(usageBytes)
	if s.o.Memory {
		most = memoryUsage
	}
	b, err := s.openBounded(ctx, witness.Usage, "voicegw: what users and keys have used, by day and process", most)
	return &Usage{bucket: b}, err
}

// decodeUsage reads a record of the bucket.
func decodeUsage(data []byte) (UsageRecord, error) {
	var r storedUsage
	if err := decodeVersioned(data, &r); err != nil {
		return UsageRecord{}, err
	}
	if _, err := time.Parse(time.DateOnly, r.Day); err != nil || r.Writer == "" || r.Micros < 0 || r.VoiceMS < 0 {
		return UsageRecord{}, fmt.Errorf("%w: a usage without a day or a writer, or below zero", ErrCorrupt)
	}
	return r.UsageRecord, nil
}

// Save writes a record over the one of that revision, which its last Save has returned; zero for the
// first one. The revision that it returns is for the next Save. A record that is there although the
// caller does not know it, because an acknowledgement was lost, is the caller's own, older one, and
// is overwritten. The errors wrap ErrUnavailable, or say what is wrong with the record.
func (u *Usage) Save(ctx context.Context, r UsageRecord, known uint64) (uint64, error) {
	data, err := encode(storedUsage{V: recordVersion, UsageRecord: r})
	if err != nil {
		return 0, err
	}
	if _, err := decodeUsage(data); err != nil {
		return 0, err
	}
	ctx, cancel := u.bucket.store.bounded(ctx)
	defer cancel()
	key := r.Day + "." + keyOf(r.Writer+"\x00"+r.User+"\x00"+r.Key)
	for {
		revision, err := u.bucket.put(ctx, key, data, newMark(), known, usageLife)
		if !errors.Is(err, errConflict) {
			return revision, err
		}
		h, err := u.bucket.get(ctx, key)
		if err != nil && !errors.Is(err, errNone) {
			return 0, err
		}
		if h.revision == known {
			if err := u.bucket.store.pause(ctx); err != nil {
				return 0, err
			}
		}
		known = h.revision
	}
}

// Days calls f with every record of the days from the first to the last, in no particular order.
// Records that cannot be read are left out and counted. In a cluster of NATS servers what was written a
// moment ago may be missing. The error wraps ErrUnavailable, or says what is wrong with the days; there may
// be at most 100.
func (u *Usage) Days(ctx context.Context, first, last time.Time, f func(UsageRecord)) (unreadable int, err error) {
	first, last = first.UTC().Truncate(24*time.Hour), last.UTC().Truncate(24*time.Hour)
	if days := int(last.Sub(first)/(24*time.Hour)) + 1; days < 1 || days > mostUsageDays {
		return 0, fmt.Errorf("store: usage of %d days: ask for 1 to %d", days, mostUsageDays)
	}
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		err := u.bucket.eachUnder(ctx, "reading the usage", day.Format(time.DateOnly)+".", func(_ string, data []byte) {
			r, err := decodeUsage(data)
			if err != nil {
				unreadable++
				return
			}
			f(r)
		})
		if err != nil {
			return unreadable, err
		}
	}
	return unreadable, nil
}

// subject is where processes tell each other what they count.
func (u *Usage) subject() string { return u.bucket.store.o.Prefix + ".usage" }

// Tell sends what this process counts to all others that share the store, without writing it down
// and without waiting. It is lost if the connection is.
func (u *Usage) Tell(data []byte) error {
	s := u.bucket.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	if err := s.conn.Publish(u.subject(), data); err != nil {
		return fmt.Errorf("store: telling the usage: %w", classed(context.Background(), err))
	}
	return nil
}

// Hear calls f with what any process tells, this one included, one after another on a goroutine of
// the store, until stop is called or the Store is closed. f must not keep data.
func (u *Usage) Hear(f func(data []byte)) (stop func(), err error) {
	s := u.bucket.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, errClosed
	}
	sub, err := s.conn.Subscribe(u.subject(), func(m *nats.Msg) { f(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("store: hearing the usage: %w", err)
	}
	return func() {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			s.log.Debug("store_usage_unsubscribe", "error", err)
		}
	}, nil
}

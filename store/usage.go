package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"voicegw/internal/cost"
)

const (
	// usageLife is how long a day's usage is kept after its last write.
	usageLife = 100 * 24 * time.Hour
	// mostUsageDays bounds the days of one query.
	mostUsageDays = 100
)

// UsageRecord is the usage of one user with one key on one day, counted by one process. Only that process writes it and
// its values only grow, so records can be summed without coordination.
type UsageRecord struct {
	// Day is a UTC day such as 2026-11-25.
	Day string `json:"day"`
	// Writer is the process's ID.
	Writer string `json:"writer"`
	// User and Key are the IDs of the user and the API key; either may be empty.
	User string `json:"user,omitempty"`
	Key  string `json:"key,omitempty"`
	cost.Sum
}

// Usage stores usage by day.
type Usage struct {
	// Immutable.
	bucket *bucket
}

func decodeUsage(data []byte) (UsageRecord, error) {
	return decodeAs(data, decodeVersioned, "a usage without a day or a writer, or below zero", func(r UsageRecord) bool {
		_, err := time.Parse(time.DateOnly, r.Day)
		return err == nil && r.Writer != "" && r.Micros >= 0 && r.VoiceMS >= 0
	})
}

// Save writes a record over revision known, zero for the first write, and returns the revision for the next Save. An
// unknown existing record is the caller's own, older one, whose acknowledgement was lost, and is overwritten. The errors
// wrap ErrUnavailable or describe an invalid record.
func (u *Usage) Save(ctx context.Context, r UsageRecord, known uint64) (uint64, error) {
	data, err := encodeVersioned(r)
	if err != nil {
		return 0, err
	}
	if _, err := decodeUsage(data); err != nil {
		return 0, err
	}
	w := &write{data: data, ttl: usageLife}
	key := r.Day + "." + keyOf(r.Writer+"\x00"+r.User+"\x00"+r.Key)
	h, err := u.bucket.set(ctx, key, w, known, func(held) (*write, error) { return w, nil })
	return h.revision, err
}

// Days calls f with every record from first to last, at most 100 days, in no particular order. Unreadable records are
// left out and counted. In a NATS cluster the newest writes may be missing. The error wraps ErrUnavailable or describes
// an invalid range.
func (u *Usage) Days(ctx context.Context, first, last time.Time, f func(UsageRecord)) (unreadable int, err error) {
	first, last = first.UTC().Truncate(24*time.Hour), last.UTC().Truncate(24*time.Hour)
	if days := int(last.Sub(first)/(24*time.Hour)) + 1; days < 1 || days > mostUsageDays {
		return 0, fmt.Errorf("store: usage of %d days: ask for 1 to %d", days, mostUsageDays)
	}
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		err := u.bucket.each(ctx, "reading the usage", day.Format(time.DateOnly)+".", func(_ string, data []byte) {
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

const usageSubject = prefix + ".usage"

// Tell broadcasts this process's usage to all processes that share the store, without storing it or waiting. It may be
// lost.
func (u *Usage) Tell(data []byte) error {
	s := u.bucket.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	if err := s.conn.Publish(usageSubject, data); err != nil {
		return fmt.Errorf("store: broadcast the usage: %w", classed(context.Background(), err))
	}
	return nil
}

// Hear calls f with each broadcast, including this process's own, sequentially on a goroutine of the store, until stop
// is called or the Store is closed. f must not keep data.
func (u *Usage) Hear(f func(data []byte)) (stop func(), err error) {
	s := u.bucket.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, errClosed
	}
	sub, err := s.conn.Subscribe(usageSubject, func(m *nats.Msg) { f(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("store: subscribe to usage broadcasts: %w", err)
	}
	return func() {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			s.log.Debug("store_usage_unsubscribe", "error", err)
		}
	}, nil
}

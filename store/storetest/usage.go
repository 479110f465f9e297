package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"voicegw/store"
)

// Usage is an in-memory meter.Store that several meters share. It may be used concurrently.
type Usage struct {
	mu         sync.Mutex
	records    map[string]store.UsageRecord
	writes     map[string][]time.Time
	ears       map[int]func([]byte)
	last       int
	told       [][]byte // not delivered yet
	delivering bool
	down, deaf bool
}

// NewUsage returns an empty Usage.
func NewUsage() *Usage {
	return &Usage{records: map[string]store.UsageRecord{}, writes: map[string][]time.Time{}, ears: map[int]func([]byte){}}
}

// ErrDown is the error of a Usage that is down.
var ErrDown = errors.New("the store is down")

// Down makes every call fail, or stops that.
func (u *Usage) Down(down bool) { u.set(func() { u.down = down }) }

// Deaf drops all broadcasts, or stops that.
func (u *Usage) Deaf(deaf bool) { u.set(func() { u.deaf = deaf }) }

func (u *Usage) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

// Stored returns a record and the times it was written.
func (u *Usage) Stored(day, writer, user, key string) (store.UsageRecord, []time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := day + writer + user + key
	return u.records[k], slices.Clone(u.writes[k])
}

// Save implements meter.Store.
func (u *Usage) Save(_ context.Context, r store.UsageRecord, known uint64) (uint64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down {
		return 0, ErrDown
	}
	k := r.Day + r.Writer + r.User + r.Key
	u.records[k] = r
	u.writes[k] = append(u.writes[k], time.Now())
	return known + 1, nil
}

// Days implements meter.Store.
func (u *Usage) Days(_ context.Context, first, last time.Time, f func(store.UsageRecord)) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down {
		return 0, ErrDown
	}
	for _, r := range u.records {
		if r.Day >= first.UTC().Format(time.DateOnly) && r.Day <= last.UTC().Format(time.DateOnly) {
			f(r)
		}
	}
	return 0, nil
}

// Tell delivers in order, like the store, on a separate goroutine.
func (u *Usage) Tell(data []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.deaf {
		return nil
	}
	u.told = append(u.told, data)
	if !u.delivering {
		u.delivering = true
		go u.deliver()
	}
	return nil
}

func (u *Usage) deliver() {
	for {
		u.mu.Lock()
		if len(u.told) == 0 {
			u.delivering = false
			u.mu.Unlock()
			return
		}
		data, ears := u.told[0], slices.Collect(maps.Values(u.ears))
		u.told = u.told[1:]
		u.mu.Unlock()
		for _, f := range ears {
			f(data)
		}
	}
}

// Hear implements meter.Store.
func (u *Usage) Hear(f func([]byte)) (func(), error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	id := u.last
	u.ears[id] = f
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ears, id)
	}, nil
}

// Package metertest has a store for meters, in memory.
package metertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"voicegw/store"
)

// Hub is a store in memory that several meters share; it implements meter.Store. It may be used
// concurrently.
type Hub struct {
	mu         sync.Mutex
	records    map[string]store.UsageRecord
	writes     map[string][]time.Time
	ears       map[int]func([]byte)
	last       int
	told       [][]byte // not delivered yet
	delivering bool
	down, deaf bool
}

// New returns an empty Hub.
func New() *Hub {
	return &Hub{records: map[string]store.UsageRecord{}, writes: map[string][]time.Time{}, ears: map[int]func([]byte){}}
}

// ErrDown is the error of a Hub that is away.
var ErrDown = errors.New("the store is away")

// Down lets every call fail from now on, or not any more. Deaf lets nothing be heard that is told.
func (h *Hub) Down(down bool) { h.set(func() { h.down = down }) }

// Deaf lets nothing be heard that is told from now on, or not any more.
func (h *Hub) Deaf(deaf bool) { h.set(func() { h.deaf = deaf }) }

func (h *Hub) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// Stored returns a record, and when it was written.
func (h *Hub) Stored(day, writer, user, key string) (store.UsageRecord, []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := day + writer + user + key
	return h.records[k], slices.Clone(h.writes[k])
}

// Save implements meter.Store.
func (h *Hub) Save(_ context.Context, r store.UsageRecord, known uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return 0, ErrDown
	}
	k := r.Day + r.Writer + r.User + r.Key
	h.records[k] = r
	h.writes[k] = append(h.writes[k], time.Now())
	return known + 1, nil
}

// Days implements meter.Store.
func (h *Hub) Days(_ context.Context, first, last time.Time, f func(store.UsageRecord)) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return 0, ErrDown
	}
	for _, r := range h.records {
		if r.Day >= first.UTC().Format(time.DateOnly) && r.Day <= last.UTC().Format(time.DateOnly) {
			f(r)
		}
	}
	return 0, nil
}

// Tell delivers in order, as the store does, and on a goroutine of its own.
func (h *Hub) Tell(data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deaf {
		return nil
	}
	h.told = append(h.told, data)
	if !h.delivering {
		h.delivering = true
		go h.deliver()
	}
	return nil
}

func (h *Hub) deliver() {
	for {
		h.mu.Lock()
		if len(h.told) == 0 {
			h.delivering = false
			h.mu.Unlock()
			return
		}
		data, ears := h.told[0], slices.Collect(maps.Values(h.ears))
		h.told = h.told[1:]
		h.mu.Unlock()
		for _, f := range ears {
			f(data)
		}
	}
}

// Hear implements meter.Store.
func (h *Hub) Hear(f func([]byte)) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	id := h.last
	h.ears[id] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.ears, id)
	}, nil
}

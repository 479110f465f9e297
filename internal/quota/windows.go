package quota

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"
)

const mostBegun = 1 << 17

// Windows limits the events of each key within a sliding window; safe for concurrent use. Beyond its bounded memory the
// least recently used keys are forgotten.
type Windows[K comparable] struct {
	mu   sync.Mutex // guards the following fields
	keys map[K]*list.Element
	used list.List // of *begun[K], least recently used first
	size int       // events of all keys
	most int       // the limit of size; zero means mostBegun
}

type begun[K comparable] struct {
	key K
	at  []time.Time // oldest first
}

// Begin counts an event if the key has fewer than most (positive) within the window; at identifies it for Undo.
func (w *Windows[K]) Begin(key K, most int, window time.Duration) (at time.Time, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if wait := w.wait(key, most, window, now); wait > 0 {
		return time.Time{}, wait
	}
	e := w.keys[key]
	if e == nil {
		if w.keys == nil {
			w.keys = make(map[K]*list.Element)
		}
		e = w.used.PushBack(&begun[K]{key: key})
		w.keys[key] = e
	}
	w.used.MoveToBack(e)
	b := e.Value.(*begun[K])
	w.size -= len(b.at)
	b.at = append(b.at, now)
	b.at = slices.Delete(b.at, 0, max(len(b.at)-most, 0)) // older ones don't affect any result
	w.size += len(b.at)
	w.forget()
	return now, 0
}

// Wait returns the time until Begin would succeed, without counting.
func (w *Windows[K]) Wait(key K, most int, window time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wait(key, most, window, time.Now())
}

// Undo removes an event counted by Begin.
func (w *Windows[K]) Undo(key K, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.keys[key]
	if e == nil {
		return // already forgotten
	}
	b := e.Value.(*begun[K])
	if i := slices.IndexFunc(b.at, at.Equal); i >= 0 {
		b.at = slices.Delete(b.at, i, i+1)
		w.size--
	}
	if len(b.at) == 0 {
		w.remove(e)
	}
}

// wait returns the time until the key may begin. The caller must hold mu.
func (w *Windows[K]) wait(key K, most int, window time.Duration, now time.Time) time.Duration {
	e := w.keys[key]
	if e == nil {
		return 0
	}
	at := e.Value.(*begun[K]).at
	if len(at) < most {
		return 0
	}
	return max(at[len(at)-most].Add(window).Sub(now), 0)
}

// forget bounds the remembered events. The caller must hold mu.
func (w *Windows[K]) forget() {
	for w.size > cmp.Or(w.most, mostBegun) && w.used.Len() > 1 {
		w.remove(w.used.Front())
	}
}

// remove forgets a key. The caller must hold mu.
func (w *Windows[K]) remove(e *list.Element) {
	b := w.used.Remove(e).(*begun[K])
	w.size -= len(b.at)
	delete(w.keys, b.key)
}

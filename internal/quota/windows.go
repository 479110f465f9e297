package quota

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

// mostBegun bounds the beginnings that Windows remembers of all keys together.
const mostBegun = 1 << 17

// Windows counts what each key begins, exactly: at most so many within each window of time, which slides
// along. The zero Windows is ready. It may be used concurrently.
//
// Its memory is bounded: when it holds too many beginnings, the keys that have begun something longest ago
// are forgotten first, which gives them their whole allowance back.
type Windows[K comparable] struct {
	mu   sync.Mutex // guards the following fields
	keys map[K]*list.Element
	used list.List // of *begun[K]: the key that has begun something longest ago first
	size int       // beginnings of all keys
	most int       // how many are remembered; zero means mostBegun
}

// begun are the last beginnings of a key.
type begun[K comparable] struct {
	key K
	at  []time.Time // oldest first
}

// Begin counts one beginning of the key, if it has fewer than most within the window until now. Then wait is
// 0, and at names the beginning for Undo. Otherwise wait is how long until the key may begin, and nothing is
// counted. most must be positive.
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
	b.at = slices.Delete(b.at, 0, max(len(b.at)-most, 0)) // no answer depends on older ones
	w.size += len(b.at)
	w.forget()
	return now, 0
}

// Wait returns how long until the key may begin, and counts nothing; zero if it may now.
func (w *Windows[K]) Wait(key K, most int, window time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wait(key, most, window, time.Now())
}

// Undo takes back a beginning that Begin has counted at that time.
func (w *Windows[K]) Undo(key K, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.keys[key]
	if e == nil {
		return // forgotten meanwhile
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

// wait returns how long until the key may begin. The caller must hold mu.
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

// forget bounds what is remembered. The caller must hold mu.
func (w *Windows[K]) forget() {
	most := w.most
	if most == 0 {
		most = mostBegun
	}
	for w.size > most && w.used.Len() > 1 {
		w.remove(w.used.Front())
	}
}

// remove forgets a key. The caller must hold mu.
func (w *Windows[K]) remove(e *list.Element) {
	b := w.used.Remove(e).(*begun[K])
	w.size -= len(b.at)
	delete(w.keys, b.key)
}

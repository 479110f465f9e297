package registry

import "sync"

// kept keeps what many sessions have in common, by what it is made of. When it has as much as it may, it begins
// anew: sessions keep theirs. The zero value is empty.
type kept[T any] struct {
	mu  sync.Mutex // guards all
	all map[string]T
}

// get returns what is kept under a key; the zero value if nothing is.
func (k *kept[T]) get(key string) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// put keeps a value. No more than most values are kept.
func (k *kept[T]) put(key string, v T, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= most {
		k.all = map[string]T{}
	}
	k.all[key] = v
}

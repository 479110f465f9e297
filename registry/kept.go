package registry

import "sync"

// kept is a cache of values shared by sessions. When full, it is cleared; sessions keep their values. The zero value
// is empty.
type kept[T any] struct {
	mu  sync.Mutex // guards all
	all map[string]T
}

func (k *kept[T]) get(key string) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// put stores a value; the cache holds at most most values.
func (k *kept[T]) put(key string, v T, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= most {
		k.all = map[string]T{}
	}
	k.all[key] = v
}

package voice

import "sync"

// maxKept bounds a Cache, in bytes of PCM.
const maxKept = 64 << 20

// Cache speaks and caches, because many conversations have the same lines. It is safe for concurrent use. The zero
// value is empty.
type Cache struct {
	mu    sync.Mutex // guards the following fields
	kept  map[cacheKey]Utterance
	bytes int
}

type cacheKey struct {
	text string
	opts Options
}

// Speak synthesises text. The result is shared and read-only.
func (c *Cache) Speak(text string, opts Options) Utterance {
	key := cacheKey{text, opts}
	c.mu.Lock()
	u, ok := c.kept[key]
	c.mu.Unlock()
	if !ok {
		u = New(opts).Speak(text)
		c.keep(key, u)
	}
	return u
}

// keep forgets everything if the new utterance would be too much.
func (c *Cache) keep(key cacheKey, u Utterance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || c.bytes+len(u.PCM) > maxKept {
		c.kept, c.bytes = map[cacheKey]Utterance{}, 0
	}
	c.kept[key] = u
	c.bytes += len(u.PCM)
}

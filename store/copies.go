package store

import (
	"strings"
	"sync"
	"time"
)

// copied is a record in memory, or a tombstone that stops an older message that arrives late from restoring the record.
type copied[T any] struct {
	value    T
	revision uint64
	none     bool
	at       time.Time // when this was learned
}

// copies is an in-memory copy of a bucket: a mirror adds other nodes' writes, and this node's own are added at once.
type copies[T any] struct {
	// Immutable after open.
	bucket *bucket
	mirror *mirror
	// decode decodes a message. Unreadable records count as missing and are logged.
	decode     func(key string, m message) (T, error)
	unreadable string
	// changed is called on each change, under mu.
	changed func(key string, is copied[T])

	mu  sync.Mutex // guards the following fields
	all map[string]copied[T]
	// followed is the last revision the mirror has copied. moved is closed when it rises.
	followed uint64
	moved    chan struct{}
}

func (c *copies[T]) open(m mirror) {
	m.take, m.dropUnseen = c.take, c.dropUnseen
	c.bucket, c.mirror = m.bucket, m.bucket.store.newMirror(m)
	c.all, c.moved = map[string]copied[T]{}, make(chan struct{})
}

func (c *copies[T]) put(key string, is copied[T]) {
	is.at = time.Now()
	c.all[key] = is
	c.changed(key, is)
}

func (c *copies[T]) drop(key string) {
	delete(c.all, key)
	c.changed(key, copied[T]{none: true})
}

// see adds a value that this node wrote or read, unless the copy is newer.
func (c *copies[T]) see(key string, is copied[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is.revision > c.followed && is.revision >= c.all[key].revision {
		c.put(key, is)
	}
}

func (c *copies[T]) take(key string, m message) {
	is := copied[T]{revision: m.seq, none: m.header.Get(opHeader) != ""}
	if !is.none {
		var err error
		if is.value, err = c.decode(key, m); err != nil {
			c.bucket.store.log.Warn(c.unreadable, "key", strings.TrimPrefix(key, c.mirror.under), "error", err)
			is.none = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.seq > c.followed {
		c.followed = m.seq
		close(c.moved)
		c.moved = make(chan struct{})
	}
	was, known := c.all[key]
	switch {
	case is.revision < was.revision:
	case is.none:
		if known {
			c.drop(key)
		}
	case is.revision == was.revision && !was.none: // already copied
	default:
		c.put(key, is)
	}
}

func (c *copies[T]) dropUnseen(seen map[string]bool, last uint64, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, is := range c.all {
		if !seen[key] && is.revision <= last && is.at.Before(since) {
			c.drop(key)
		}
	}
}

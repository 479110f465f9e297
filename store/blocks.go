package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/internal/user"
)

// lostUser begins the name of a user known only by hash, in List and Unblock.
const lostUser = "lost:"

// Block is a blocked user with the end of the block.
type Block struct {
	User  string
	Until time.Time
}

// Blocks stores the blocked users. Blocked and List read an in-memory copy that follows other nodes' writes within
// milliseconds, unless the cluster is unreachable; this node's writes are visible at once.
type Blocks struct {
	copies[block]     // by key
	most          int // immutable

	// odd are the keys of blocks recorded under a non-normal form of the identity. mu guards it.
	odd map[string]struct{}
}

type block struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
	// Lost means that damage destroyed the record and only the user's hash is known; the user stays blocked.
	Lost bool `json:"lost,omitempty"`
}

func newBlocks(from *bucket) *Blocks {
	b := &Blocks{most: from.store.o.MostBlocks, odd: make(map[string]struct{})}
	b.decode = func(key string, m held) (block, error) { return decodeBlock(key, m.data) }
	b.what, b.unreadable, b.changed = "blocks", "store_block_unreadable", b.index
	b.open(from)
	return b
}

// Block blocks user until the given time, on all nodes. It is durable when it returns. A longer block stays. The errors
// wrap ErrUser, ErrFull or ErrUnavailable.
func (b *Blocks) Block(ctx context.Context, user string, until time.Time) error {
	user, ok := identity(user)
	if !ok {
		return ErrUser
	}
	now := time.Now()
	if !until.After(now) {
		return nil // already over
	}
	key, value := keyOf(user), block{User: user, Until: until.UTC()}
	if b.full(key, now) {
		return fmt.Errorf("%w: %d users are blocked", ErrFull, b.most)
	}
	data, err := encode(value)
	if err != nil {
		return err
	}
	w := &write{data: data, ttl: until.Sub(now)}
	h, err := b.bucket.set(ctx, key, w, 0, func(h held) (*write, error) {
		// An unreadable record blocks no user and is overwritten.
		if old, err := decodeBlock(key, h.data); h.exists() && err == nil && !until.After(old.Until) {
			value = old
			return nil, nil
		}
		return w, nil
	})
	if err != nil {
		return err
	}
	b.see(key, copied[block]{value: value, revision: h.revision})
	return nil
}

// full reports whether there is no room for a new block of key. Nodes writing concurrently may each find room.
func (b *Blocks) full(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.all[key]; ok || len(b.all) < b.most {
		return false
	}
	for key, is := range b.all {
		if is.none || !now.Before(is.value.Until) {
			b.drop(key)
		}
	}
	return len(b.all) >= b.most
}

// Blocked returns the end of a user's block, from memory.
func (b *Blocks) Blocked(user string) (time.Time, bool) {
	user, ok := identity(user)
	if !ok {
		return time.Time{}, false
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	var until time.Time
	for _, key := range b.keysOf(user) {
		if is := b.all[key]; !is.none && is.value.Until.After(until) {
			until = is.value.Until
		}
	}
	if !now.Before(until) {
		return time.Time{}, false
	}
	return until, true
}

// keysOf returns the keys under which a user may be blocked: the identity's, and those of other forms of it. mu is held.
func (b *Blocks) keysOf(user string) []string {
	keys := []string{keyOf(user)}
	for key := range b.odd {
		if is, known := b.all[key]; known && !is.none {
			if normal, ok := identity(is.value.User); ok && normal == user {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// index updates odd. mu is held.
func (b *Blocks) index(key string, is copied[block]) {
	if normal, ok := identity(is.value.User); !is.none && ok && normal != is.value.User {
		b.odd[key] = struct{}{}
		return
	}
	delete(b.odd, key)
}

func identity(text string) (normal string, ok bool) {
	who, err := user.Stored(text)
	return who.String(), err == nil
}

// Unblock removes a user's block on all nodes. Of concurrent callers only one gets true.
func (b *Blocks) Unblock(ctx context.Context, user string) (bool, error) {
	user, ok := identity(user)
	if !ok {
		return false, nil
	}
	ctx, cancel := b.bucket.store.bounded(ctx)
	defer cancel()
	b.mu.Lock()
	keys := b.keysOf(user)
	if key, lost := strings.CutPrefix(user, lostUser); lost {
		if _, hash := witnessKey(key); hash {
			keys = append(keys, key)
		}
	}
	b.mu.Unlock()
	was := false
	for _, key := range keys {
		one, err := b.unblock(ctx, key)
		if err != nil {
			return was, err
		}
		was = was || one
	}
	return was, nil
}

func (b *Blocks) unblock(ctx context.Context, key string) (bool, error) {
	var was block // unreadable records count as ended
	removed, err := b.bucket.change(ctx, key, func(h held) (*write, error) {
		was, _ = decodeBlock(key, h.data)
		return removal(h)
	})
	if err != nil || !removed.removed {
		return false, err
	}
	b.see(key, copied[block]{revision: removed.revision, none: true})
	return time.Now().Before(was.Until), nil
}

// List returns the current blocks from memory, sorted by user.
func (b *Blocks) List() []Block {
	now := time.Now()
	b.mu.Lock()
	list := make([]Block, 0, len(b.all))
	for _, is := range b.all {
		if !is.none && now.Before(is.value.Until) {
			list = append(list, Block{User: is.value.User, Until: is.value.Until})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y Block) int { return strings.Compare(x.User, y.User) })
	return list
}

func decodeBlock(key string, data []byte) (block, error) {
	var value block
	if err := decode(data, &value); err != nil {
		return block{}, err
	}
	if value.Lost && !value.Until.IsZero() {
		value.User = lostUser + key
		return value, nil
	}
	if value.User == "" || len(value.User) > user.MaxBytes || value.Until.IsZero() {
		return block{}, fmt.Errorf("%w: a block without a user or an end", ErrCorrupt)
	}
	if keyOf(value.User) != key {
		return block{}, fmt.Errorf("%w: the block belongs to another user", ErrCorrupt)
	}
	return value, nil
}

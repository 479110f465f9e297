package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/user"
	"voicegw/store/witness"
)

// lostUser begins the name of a user of whom only the hash is known; List and Unblock use
// that name.
const lostUser = "lost:"

// Block says that a user is shut out, and until when.
type Block struct {
	User  string
	Until time.Time
}

// Blocks records which users are shut out, for all nodes. Blocked and List answer from a
// copy in memory that follows the other nodes' writes within milliseconds; while the cluster
// cannot be reached the copy stays as it is. This node's own writes are visible at once.
// Its methods may be used concurrently.
type Blocks struct {
	// Fixed after openBlocks.
	bucket *bucket
	mirror *mirror
	most   int

	mu    sync.Mutex // guards the following fields
	users map[string]blocked
	// odd are the keys of blocks that were recorded under a form of their user's identity
	// other than the normal one.
	odd map[string]struct{}
	// followed is the last revision that the watch has copied into users.
	followed uint64
}

// block is the form of a block in the bucket.
type block struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
	// Lost says that damage destroyed the record and only the hash of the user is known.
	// The user stays shut out by that hash.
	Lost bool `json:"lost,omitempty"`
}

// blocked is a block in memory, or the note that a key had no block at a revision, so that
// an older message that arrives later cannot restore the block.
type blocked struct {
	block
	revision uint64
	none     bool
	at       time.Time // when this was learned
}

func (s *Store) openBlocks(ctx context.Context) (*Blocks, error) {
	bucket, err := s.openBucket(ctx, witness.Blocks, "voicegw: users that are shut out, and until when")
	if err != nil {
		return nil, err
	}
	b := &Blocks{bucket: bucket, most: s.o.MostBlocks, users: make(map[string]blocked), odd: make(map[string]struct{})}
	b.mirror = s.newMirror(mirror{bucket: bucket, what: "blocks", take: b.take, dropUnseen: b.dropUnseen})
	return b, nil
}

// Block shuts user out until then, on all nodes, and is durable when it returns. A
// block that lasts longer stays as it is. The errors wrap ErrUser,
// ErrFull or ErrUnavailable.
func (b *Blocks) Block(ctx context.Context, user string, until time.Time) error {
	user, ok := identity(user)
	if !ok {
		return ErrUser
	}
	now := time.Now()
	if !until.After(now) {
		return nil // it would end before it begins
	}
	key, value := keyOf(user), block{User: user, Until: until.UTC()}
	if b.full(key, now) {
		return fmt.Errorf("%w: %d users are blocked", ErrFull, b.most)
	}
	data, err := encode(value)
	if err != nil {
		return err
	}
	ctx, cancel := b.bucket.store.bounded(ctx)
	defer cancel()
	h, err := b.bucket.create(ctx, key, data, until.Sub(now))
	for errors.Is(err, errConflict) {
		var old block
		if old, err = decodeBlock(key, h.data); err == nil && !until.After(old.Until) {
			b.see(key, blocked{block: old, revision: h.revision})
			return nil
		}
		// A record that cannot be read blocks nobody and is overwritten.
		if h, err = b.replace(ctx, key, data, h.revision, until.Sub(now)); errors.Is(err, errNone) {
			h, err = b.bucket.create(ctx, key, data, until.Sub(now))
		}
	}
	if err != nil {
		return err
	}
	b.see(key, blocked{block: value, revision: h.revision})
	return nil
}

// replace overwrites a revision. errConflict if the revision is another one by now; held is
// that one.
func (b *Blocks) replace(ctx context.Context, key string, data []byte, expected uint64, ttl time.Duration) (held, error) {
	revision, err := b.bucket.put(ctx, key, data, newMark(), expected, ttl)
	if !errors.Is(err, errConflict) {
		return held{data: data, revision: revision}, err
	}
	if err := b.bucket.store.pause(ctx); err != nil {
		return held{}, err
	}
	if h, err := b.bucket.get(ctx, key); err != nil {
		return held{}, err
	} else {
		return h, errConflict
	}
}

// full says whether there is no room for a new block of key. Nodes that write at the same
// moment may each find room.
func (b *Blocks) full(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.users[key]; ok || len(b.users) < b.most {
		return false
	}
	b.forgetEnded(now)
	return len(b.users) >= b.most
}

// forgetEnded makes room. mu is held.
func (b *Blocks) forgetEnded(now time.Time) {
	for key, is := range b.users {
		if is.none || !now.Before(is.Until) {
			b.drop(key)
		}
	}
}

// Blocked returns until when user is shut out, from memory. It never fails.
func (b *Blocks) Blocked(_ context.Context, user string) (time.Time, bool, error) {
	user, ok := identity(user)
	if !ok {
		return time.Time{}, false, nil
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	var until time.Time
	for _, key := range b.keysOf(user) {
		if is := b.users[key]; !is.none && is.Until.After(until) {
			until = is.Until
		}
	}
	if !now.Before(until) {
		return time.Time{}, false, nil
	}
	return until, true, nil
}

// keysOf returns the keys under which a user may be blocked: the key of the identity, and
// those of blocks that were recorded under another form of it. mu is held.
func (b *Blocks) keysOf(user string) []string {
	keys := []string{keyOf(user)}
	for key := range b.odd {
		if is, known := b.users[key]; known && !is.none {
			if normal, ok := identity(is.User); ok && normal == user {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// hold puts the state of a key into the copy. mu is held.
func (b *Blocks) hold(key string, is blocked) {
	b.users[key] = is
	if normal, ok := identity(is.User); !is.none && ok && normal != is.User {
		b.odd[key] = struct{}{}
		return
	}
	delete(b.odd, key)
}

// drop takes a key out of the copy. mu is held.
func (b *Blocks) drop(key string) {
	delete(b.users, key)
	delete(b.odd, key)
}

// identity is a user's identity in its normal form; ok is false for an invalid one.
func identity(text string) (normal string, ok bool) {
	who, err := user.Stored(text)
	return who.String(), err == nil
}

// Unblock ends a user's block on all nodes, and reports whether there was one. If several
// callers do so at the same time, one of them gets true. The error wraps ErrUnavailable.
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

// unblock ends the block under one key.
func (b *Blocks) unblock(ctx context.Context, key string) (bool, error) {
	for {
		h, err := b.bucket.get(ctx, key)
		if errors.Is(err, errNone) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		revision, err := b.bucket.remove(ctx, key, h.revision)
		if errors.Is(err, errConflict) {
			// Somebody changed it since; the new block must end too.
			if err = b.bucket.store.pause(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return false, err
		}
		b.see(key, blocked{revision: revision, none: true})
		was, err := decodeBlock(key, h.data)
		return err == nil && time.Now().Before(was.Until), nil
	}
}

// List returns the blocks that have not ended, sorted by user, from memory. It never
// fails.
func (b *Blocks) List(context.Context) ([]Block, error) {
	now := time.Now()
	b.mu.Lock()
	list := make([]Block, 0, len(b.users))
	for _, is := range b.users {
		if !is.none && now.Before(is.Until) {
			list = append(list, Block{User: is.User, Until: is.Until})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y Block) int { return strings.Compare(x.User, y.User) })
	return list, nil
}

// see puts a value that this node wrote or read into the copy, unless the copy is newer:
// the watch has then passed that revision already.
func (b *Blocks) see(key string, is blocked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if is.revision > b.followed && is.revision >= b.users[key].revision {
		is.at = time.Now()
		b.hold(key, is)
	}
}

// decodeBlock reads a block of the bucket, which stands under key.
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
		return block{}, fmt.Errorf("%w: a block under the key of another user", ErrCorrupt)
	}
	return value, nil
}

// take puts one message into the copy.
func (b *Blocks) take(key string, m message) {
	is := blocked{revision: m.seq, none: true}
	if m.header.Get(opHeader) == "" {
		if value, err := decodeBlock(key, m.data); err == nil {
			is.block, is.none = value, false
		} else {
			b.bucket.store.log.Warn("store_block_unreadable", "key", key, "error", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followed = max(b.followed, m.seq)
	switch {
	case is.revision < b.users[key].revision:
	case is.none:
		b.drop(key)
	default:
		is.at = time.Now()
		b.hold(key, is)
	}
}

// dropUnseen forgets keys that a whole reading has not seen; it began when last was the last
// message of the stream. Keys that were written after that stay, and so do those that changed
// after since.
func (b *Blocks) dropUnseen(seen map[string]bool, last uint64, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, is := range b.users {
		if !seen[key] && is.revision <= last && is.at.Before(since) {
			b.drop(key)
		}
	}
}

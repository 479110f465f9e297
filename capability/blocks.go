package capability

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Blocks records which users are shut out, and until when.
type Blocks interface {
	// Block shuts user out until then. A block that lasts longer stays as it is. The
	// error wraps ErrUser or ErrFull, or says that it could not be recorded; then
	// nothing has changed.
	Block(ctx context.Context, user string, until time.Time) error
	// Blocked says until when user is shut out; ok is false for one who is not.
	Blocked(ctx context.Context, user string) (until time.Time, ok bool, err error)
	// Unblock ends a user's block and says whether there was one.
	Unblock(ctx context.Context, user string) (bool, error)
	// List returns the blocks that have not ended, sorted by user.
	List(ctx context.Context) ([]Block, error)
}

// Block is one user's block.
type Block struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
}

// MemoryBlocks is a Blocks in this process's memory.
type MemoryBlocks struct {
	// Fixed after NewMemoryBlocks.
	most int

	mu    sync.Mutex // guards the following field
	until map[string]time.Time
}

// NewMemoryBlocks returns a MemoryBlocks that records at most so many blocks; zero
// means 100,000.
func NewMemoryBlocks(most int) *MemoryBlocks {
	if most == 0 {
		most = 100_000
	}
	return &MemoryBlocks{most: most, until: make(map[string]time.Time)}
}

// Block records a block. What has ended makes room; a block that runs is never
// forgotten for another.
func (b *MemoryBlocks) Block(_ context.Context, user string, until time.Time) error {
	if user == "" || len(user) > maxUser {
		return ErrUser
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.until[user]; ok {
		if until.After(old) {
			b.until[user] = until
		}
		return nil
	}
	if len(b.until) >= b.most {
		b.forgetEnded()
	}
	if len(b.until) >= b.most {
		return fmt.Errorf("%w: %d users are blocked", ErrFull, b.most)
	}
	b.until[user] = until
	return nil
}

// forgetEnded makes room. mu is held.
func (b *MemoryBlocks) forgetEnded() {
	now := time.Now()
	for user, until := range b.until {
		if !now.Before(until) {
			delete(b.until, user)
		}
	}
}

// Blocked says until when user is shut out. It never fails.
func (b *MemoryBlocks) Blocked(_ context.Context, user string) (time.Time, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[user]
	if ok && !time.Now().Before(until) {
		delete(b.until, user)
		return time.Time{}, false, nil
	}
	return until, ok, nil
}

// Unblock ends a user's block. It never fails.
func (b *MemoryBlocks) Unblock(_ context.Context, user string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[user]
	delete(b.until, user)
	return ok && time.Now().Before(until), nil
}

// List returns the blocks that have not ended. It never fails.
func (b *MemoryBlocks) List(context.Context) ([]Block, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetEnded()
	list := make([]Block, 0, len(b.until))
	for user, until := range b.until {
		list = append(list, Block{User: user, Until: until})
	}
	slices.SortFunc(list, func(x, y Block) int { return strings.Compare(x.User, y.User) })
	return list, nil
}

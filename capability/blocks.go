package capability

import (
	"context"
	"time"
)

// Blocks records which users are shut out, and until when. Package store has one that
// outlives the process and is the same for all nodes.
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

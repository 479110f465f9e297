package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrUnavailable is wrapped by temporary errors: the store is stopped, unreachable, without a leader, out of room or
	// too slow. A write may nevertheless have been stored.
	ErrUnavailable = errors.New("store: unavailable")
	// ErrTooBig is wrapped if a value exceeds a limit. Nothing was written.
	ErrTooBig = errors.New("store: too big")
	// ErrUnknown means that the confirmation, ticket or conversation doesn't exist, or belongs to another session.
	ErrUnknown = errors.New("store: not found")
	// ErrUsed means that a confirmation was already answered, a ticket was used or replaced, or something that must be
	// new exists.
	ErrUsed = errors.New("store: already used")
	// ErrExpired means that a confirmation's answer, or a ticket, came too late.
	ErrExpired = errors.New("store: expired")
	// ErrOrigin means that a ticket is for another origin.
	ErrOrigin = errors.New("store: the ticket is for another origin")
	// ErrBusy means that another holder has the lease.
	ErrBusy = errors.New("store: busy")
	// ErrFull is wrapped if the maximum number of records is reached. Retrying later may help.
	ErrFull = errors.New("store: too many entries recorded")
	// ErrUser means that the user or the conversation's ID is empty or too long.
	ErrUser = errors.New("store: the user is empty or too long")
	// ErrVoiceActive means that a voice session of the conversation is running.
	ErrVoiceActive = errors.New("store: a voice session is already running")
	// ErrChanged means that a ledger entry or conversation was changed, released or removed since the caller read it.
	ErrChanged = errors.New("store: changed by another writer")
	// ErrFenced means that another node has taken the caller's session, checkpoint or lease. The caller must not write
	// it any more.
	ErrFenced = errors.New("store: taken by another node")
	// ErrVersion is wrapped if only a newer version of voicegw can read a record.
	ErrVersion = errors.New("store: the record needs a newer version of voicegw; update this node")
	errClosed  = errors.New("store: closed")
	// ErrInUse is wrapped by Open if another Store, in any process, has the folder open.
	ErrInUse = errors.New("store: the folder is in use")
	// ErrForeign is wrapped by Open if the data folder has streams of another program.
	ErrForeign = errors.New("store: the data folder has streams of another program")
	// ErrCorrupt is wrapped if a record can't have been written by this package.
	ErrCorrupt = errors.New("store: corrupt record")
)

// errConflict means that a compare-and-set found another revision. It doesn't leave the package.
var errConflict = errors.New("store: another revision")

var errNone = fmt.Errorf("%w: no such key", ErrUnknown)

// JetStream's error codes without names in the client library (nats-server v2.15, server/errors.json).
const (
	codeNoSuitablePeers       = 10005
	codeInsufficientResources = 10023
	codeStorageExceeded       = 10047
	codeNoReplicas            = 10074
	codeStreamStoreFailed     = 10077
)

// classed converts an error of the engine to one of this package: too big, another revision, or temporary. ctx is the
// caller's own: its cancellation isn't the store's failure.
func classed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return err
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			return errConflict
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			return fmt.Errorf("%w: %w", ErrTooBig, err)
		case codeNoSuitablePeers:
			return fmt.Errorf("%w: too few servers for the configured replicas; start more servers or configure fewer replicas: %w",
				ErrUnavailable, err)
		case codeNoReplicas:
			return fmt.Errorf("a single server keeps one replica; configure one replica, or the URLs of a cluster: %w", err)
		case codeInsufficientResources, codeStorageExceeded, codeStreamStoreFailed:
			return fmt.Errorf("%w: no room; free space or raise the limits: %w", ErrUnavailable, err)
		}
		// 409 and 429: a write of the same name is in progress, or too many are.
		if api.Code >= 500 || api.Code == 409 || api.Code == 429 {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %w", ErrTooBig, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrUnavailable is wrapped by errors that may pass by themselves: the store is stopped,
	// unreachable, without a leader, out of room or too slow. For a write it says only that
	// no acknowledgement came: the value may have been stored.
	ErrUnavailable = errors.New("store: unavailable")
	// ErrTooBig is wrapped by the refusal of a value over the limit, which the
	// message names. Nothing was written.
	ErrTooBig = errors.New("store: too big")
	// ErrUnknown says that there is no such confirmation, ticket or conversation, or
	// that the confirmation is another session's.
	ErrUnknown = errors.New("store: nothing has that name")
	// ErrUsed says that a confirmation was answered before, that a ticket was used or
	// replaced, or that something which must be new exists already.
	ErrUsed = errors.New("store: used already")
	// ErrExpired says that a confirmation's answer, or a ticket, came too late.
	ErrExpired = errors.New("store: expired")
	// ErrOrigin says that a ticket was made for another origin.
	ErrOrigin = errors.New("store: a ticket for another origin")
	// ErrBusy says that somebody else holds the lease.
	ErrBusy = errors.New("store: somebody else is at it")
	// ErrFull is wrapped where as many are recorded as may be. Trying again later may help.
	ErrFull = errors.New("store: as many are recorded as may be")
	// ErrUser says that the user is empty or too long, or the conversation's id is too long.
	ErrUser = errors.New("store: the user is empty or too long")
	// ErrVoiceActive says that a voice session of the conversation is running.
	ErrVoiceActive = errors.New("store: a voice session is running already")
	// ErrChanged says that an entry of the ledger or a conversation is no longer what the
	// caller holds: somebody finished, released or saved it, or its life is over.
	ErrChanged = errors.New("store: it was changed by somebody else")
	// ErrFenced says that somebody else has taken what the caller held: a session, its
	// checkpoint or a lease. The caller must not write it any more.
	ErrFenced = errors.New("store: somebody else has taken it")
	// ErrVersion is wrapped by the error for a record in a form that only a newer version of
	// this program can read.
	ErrVersion = errors.New("store: a record of a newer version of voicegw, which this version cannot read; update this node")
	// errClosed says that the Store was closed.
	errClosed = errors.New("store: closed")
	// ErrInUse is wrapped by Open's error for a folder that another Store, of this process or
	// of another one, has open.
	ErrInUse = errors.New("store: the folder is in use")
	// ErrForeign is wrapped by Open's error for a data folder that holds something among the
	// streams that this package did not make.
	ErrForeign = errors.New("store: something foreign lies in the data folder")
	// ErrCorrupt is wrapped by the error for a record that this package cannot have written.
	ErrCorrupt = errors.New("store: a stored record cannot be read")
)

// errConflict says that a compare-and-set found another revision than it expected.
// It does not leave the package.
var errConflict = errors.New("store: another revision")

// errNone says that a key has no value.
var errNone = fmt.Errorf("%w: no such key", ErrUnknown)

// JetStream's error codes that the client library has no name for
// (nats-server v2.15, server/errors.json).
const (
	codeNoSuitablePeers       = 10005
	codeInsufficientResources = 10023
	codeStorageExceeded       = 10047
	codeNoReplicas            = 10074
	codeStreamStoreFailed     = 10077
)

// classed turns an error of the engine into one of this package: the value is too big, the
// revision is another one, or the failure may pass by itself. ctx is the caller's own: its
// cancellation is not the store's failure.
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
			return fmt.Errorf("%w: too few servers for the replicas that were asked for; start them, or ask for fewer: %w", ErrUnavailable, err)
		case codeNoReplicas:
			return fmt.Errorf("the server is alone, so it keeps one replica; ask for one, or give the URLs of a cluster: %w", err)
		case codeInsufficientResources, codeStorageExceeded, codeStreamStoreFailed:
			return fmt.Errorf("%w: no room, free some or raise the limits: %w", ErrUnavailable, err)
		}
		// 409 and 429: a write of the same name is in progress, or too many writes are.
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

package wire

import "errors"

// ErrDropped is returned by Connect when a fault cut the connection before the
// handshake was answered.
var ErrDropped = errors.New("wire: connection dropped by a fault")

// The errors of Group.Inject.
var (
	// ErrNoConnection: no open connection has that address.
	ErrNoConnection = errors.New("wire: no connection has that address")
	// ErrTooMany: the maximum number of faults already waits for the connection.
	ErrTooMany = errors.New("wire: too many faults wait for the connection")
)

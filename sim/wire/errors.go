package wire

import "errors"

// The errors of Group.Inject.
var (
	// ErrNoConnection: no open connection has that address.
	ErrNoConnection = errors.New("wire: no connection has that address")
	// ErrTooMany: the maximum number of faults already waits for the connection.
	ErrTooMany = errors.New("wire: too many faults wait for the connection")
)

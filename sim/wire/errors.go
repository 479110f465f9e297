package wire

import "errors"

// ErrDropped is returned by Connect when a fault cut the connection before the
// handshake was answered.
var ErrDropped = errors.New("wire: connection dropped by a fault")

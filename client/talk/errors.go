package talk

import "errors"

// The errors of this package; the errors that wrap them say what happened.
var (
	// ErrOptions means that the options are invalid.
	ErrOptions = errors.New("wrong options")
	// ErrConnect means that there is no conversation: the gateway could not be reached, or it
	// refused.
	ErrConnect = errors.New("no conversation with the gateway")
	// ErrLost means that the connection broke during the conversation.
	ErrLost = errors.New("the conversation broke off")
	// ErrUnanswered means that a turn was not answered.
	ErrUnanswered = errors.New("not every turn was answered")
	// ErrProtocol means that the gateway violated the protocol.
	ErrProtocol = errors.New("the gateway broke the protocol")
)

package talk

import "errors"

// The errors of this package; what wraps them says what happened.
var (
	// ErrOptions says that the options make no conversation.
	ErrOptions = errors.New("wrong options")
	// ErrConnect says that there is no conversation: the gateway was not reached, or
	// it refused.
	ErrConnect = errors.New("no conversation with the gateway")
	// ErrLost says that the connection ended in the middle.
	ErrLost = errors.New("the conversation broke off")
	// ErrUnanswered says that a turn was not answered.
	ErrUnanswered = errors.New("not every turn was answered")
	// ErrProtocol says that the gateway did what the protocol forbids.
	ErrProtocol = errors.New("the gateway broke the protocol")
)

package chat

import "errors"

// The errors of Respond, returned before any message was emitted. The gateway has the words.
var (
	// ErrBusy: another message of the conversation is being answered.
	ErrBusy = errors.New("chat: the conversation is being answered already")
	// ErrUnknown: this user has no such conversation.
	ErrUnknown = errors.New("chat: there is no such conversation")
	// ErrMessage is wrapped by each error about an invalid request.
	ErrMessage = errors.New("chat: the request cannot be taken")
	// ErrReused: the id of the message was already used for another message.
	ErrReused = errors.New("chat: another message had this id")
	// ErrStore is wrapped if the conversation cannot be loaded or saved.
	ErrStore = errors.New("chat: the store does not answer")
	// ErrDraining: the process is ending and answers nothing more.
	ErrDraining = errors.New("chat: the gateway is shutting down")
)

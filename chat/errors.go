package chat

import "errors"

// What Respond returns before anything was told. The gateway has the words.
var (
	// ErrBusy: another message of the conversation is being answered.
	ErrBusy = errors.New("chat: the conversation is being answered already")
	// ErrUnknown: there is no such conversation of this user's.
	ErrUnknown = errors.New("chat: there is no such conversation")
	// ErrMessage is wrapped by what is wrong with a request.
	ErrMessage = errors.New("chat: the request cannot be taken")
	// ErrReused: the id of the message was used for another one.
	ErrReused = errors.New("chat: another message had this id")
	// ErrStore is wrapped where the conversation cannot be read or kept.
	ErrStore = errors.New("chat: the store does not answer")
)

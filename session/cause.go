package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"voicegw/orchestrator"
	"voicegw/protocol"
)

// Cause is why a session ended. Causes travel as the context's cause and meet the
// one table that turns them into a close code and into words.
type Cause struct {
	// Reason is the word for it on the wire and in the log.
	Reason string
	// Close is the WebSocket close code.
	Close websocket.StatusCode
	// Code is the code of the error message that precedes session.ended; empty
	// where nothing went wrong.
	Code string
	// Message says to the user's side what happened and what to do.
	Message string
	// Field is what the message is about, if anything.
	Field string
	// Until is when it will be over; zero where nobody knows.
	Until time.Time
}

// Error returns the reason.
func (c *Cause) Error() string { return c.Reason }

// retryable says whether the same may help later, for the error message.
func (c *Cause) retryable() bool {
	if r := protocol.RetryOf(c.Code); r != protocol.RetrySays {
		return r == protocol.RetryLater
	}
	return c != causeRefused // for the operator to look into
}

// The causes: the whole table. docs/protocol.md lists them, checked by a test.
var (
	causeHungUp = &Cause{Reason: "client_ended", Close: protocol.CloseDone}
	causeGone   = &Cause{Reason: "client_gone", Close: protocol.CloseDone}
	causeIdle   = &Cause{Reason: "idle", Close: protocol.CloseIdle}
	causeLength = &Cause{Reason: "length_limit", Close: protocol.CloseLength}

	causeTool = &Cause{Reason: "tool_ended", Close: protocol.CloseDone}

	causeShutdown = &Cause{Reason: "server_shutdown", Close: protocol.CloseServerLeaving}

	causeSlow = &Cause{Reason: "slow_client", Close: protocol.CloseSlowClient}

	causeTooBig = &Cause{Reason: "message_too_big", Close: protocol.CloseTooBig,
		Code: protocol.CodeInvalidMessage, Message: "The message was larger than this gateway takes (64 KiB unless it says otherwise)."}
	causeFlood = &Cause{Reason: "flooding", Close: protocol.CloseLimit,
		Code: protocol.CodeFlooding, Message: "There were more than 20 errors within 10 seconds, or 200 in all, or more frames than a client may send; the session ends."}

	// The causes of a client that finds no place.
	causeFull = &Cause{Reason: "full", Close: protocol.CloseTryLater,
		Code: protocol.CodeLimit, Message: "The gateway has as many sessions as it takes; try again in a moment."}
	causeTooMany = &Cause{Reason: "too_many_sessions", Close: protocol.CloseLimit,
		Code: protocol.CodeLimit, Message: "Too many sessions from your address; end one, or try again in a moment."}
	causeCrowded = &Cause{Reason: "crowded_out", Close: protocol.CloseTryLater,
		Code: protocol.CodeLimit, Message: "Too many connections wait for their session.start; connect again and send it at once."}

	// causeBlocked is that of a user who is shut out; blocked adds until when.
	causeBlocked = &Cause{Reason: "blocked", Close: protocol.CloseBlocked,
		Code: protocol.CodeBlocked, Message: "You are shut out for a while, as you were told; come back later."}

	causeStartTimeout = &Cause{Reason: "start_timeout", Close: protocol.CloseStartTimeout,
		Code: protocol.CodeStartTimeout, Message: "No session.start came in time: it must be the first message."}

	// The causes of a ticket.
	causeTicketMissing = &Cause{Reason: protocol.CodeTicketMissing, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketMissing, Message: "This gateway lets nobody in without a ticket; get one from the program that invites you, and send it in session.start."}
	causeTicketWrong = &Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketWrong, Message: "There is no such ticket; ask for a new one."}
	causeTicketsDiffer = &Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketWrong, Message: "The ticket in session.start is another one than that in the list of subprotocols; send one, or the same."}
	causeTicketOrigin = &Cause{Reason: protocol.CodeTicketOrigin, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketOrigin, Message: "The ticket was made for pages of another origin; use it there, or ask for one for this origin."}
	causeTicketUsed = &Cause{Reason: protocol.CodeTicketUsed, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketUsed, Message: "The ticket was used already, or a newer one has replaced it; ask for a new one."}
	causeTicketLate = &Cause{Reason: protocol.CodeTicketExpired, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketExpired, Message: "The ticket has expired; ask for a new one, and use it at once."}
	causeVoiceActive = &Cause{Reason: protocol.CodeVoiceActive, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeVoiceActive, Message: "Another voice session of this conversation is running; end that one first."}
	// causeVoiceLost is that of a session that cannot be known to be its conversation's only one.
	causeVoiceLost = &Cause{Reason: protocol.CodeVoiceLost, Close: protocol.CloseVoiceLost,
		Code: protocol.CodeVoiceLost, Message: "The gateway can no longer make sure that this is the only voice session of the conversation; start again with a new ticket."}
	// causeNotYours is of a conversation that is another user's.
	causeNotYours = &Cause{Reason: protocol.CodeUnknownConversation, Close: protocol.CloseUnknownTarget,
		Code: protocol.CodeUnknownConversation, Message: "There is no such conversation of yours; start without conversation_id, or with a new one."}
	causeStore = &Cause{Reason: protocol.CodeStoreUnavailable, Close: protocol.CloseInternal,
		Code: protocol.CodeStoreUnavailable, Message: "The gateway cannot look up who you are at the moment; try again soon."}

	causeUnavailable = &Cause{Reason: "provider_unavailable", Close: protocol.CloseProviderUnavailable,
		Code: protocol.CodeProviderUnavailable, Message: "The voice model cannot be reached at the moment; try again soon."}
	causeRefused = &Cause{Reason: "provider_refused", Close: protocol.CloseProviderUnavailable,
		Code: protocol.CodeProviderUnavailable, Message: "The voice model does not accept this gateway's request; its operator must look into it."}
	causeLost = &Cause{Reason: "provider_lost", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The connection to the voice model was lost; start again."}
	causeExpired = &Cause{Reason: "provider_expired", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The voice model's session reached its longest duration; start again."}
	causeStalled = &Cause{Reason: "provider_stalled", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The voice model has stopped taking in messages; start again."}

	causeInternal = &Cause{Reason: "internal", Close: protocol.CloseInternal,
		Code: protocol.CodeInternal, Message: "Something went wrong in the gateway; start again."}
)

// causes lists the table for its test.
func causes() []*Cause {
	return []*Cause{
		causeHungUp, causeGone, causeIdle, causeLength, causeTool, causeShutdown, causeSlow, causeTooBig, causeFlood, causeFull, causeTooMany, causeCrowded, causeBlocked,
		causeTicketMissing, causeTicketWrong, causeTicketsDiffer, causeTicketOrigin, causeTicketUsed, causeTicketLate,
		causeVoiceActive, causeVoiceLost, causeNotYours, causeStore,
		causeStartTimeout, causeUnavailable, causeRefused, causeLost, causeExpired, causeStalled, causeInternal,
	}
}

// refusal is a cause for a session that did not begin.
func refusal(close websocket.StatusCode, code, format string, args ...any) *Cause {
	return &Cause{Reason: code, Close: close, Code: code, Message: fmt.Sprintf(format, args...)}
}

// blocked is causeBlocked until then.
func blocked(until time.Time) *Cause {
	c := *causeBlocked
	c.Until = until
	return &c
}

// causeOf returns the Cause in err's tree, or causeInternal.
func causeOf(err error) *Cause {
	var c *Cause
	if errors.As(err, &c) {
		return c
	}
	return causeInternal
}

// endCause is the cause of an end that the orchestrator has decided.
func (s *session) endCause(r orchestrator.EndReason) *Cause {
	if until := s.blockedUntil.Load(); r == orchestrator.EndTool && until != nil {
		return blocked(*until)
	}
	return endCause(r)
}

// endCause maps the orchestrator's reasons to causes.
func endCause(r orchestrator.EndReason) *Cause {
	switch r {
	case orchestrator.EndHungUp:
		return causeHungUp
	case orchestrator.EndIdle:
		return causeIdle
	case orchestrator.EndLength:
		return causeLength
	case orchestrator.EndTool:
		return causeTool
	default:
		return causeInternal
	}
}

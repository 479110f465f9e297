package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"voicegw/orchestrator"
	"voicegw/protocol/closecode"
	"voicegw/protocol/errcode"
	"voicegw/transport"
)

// Cause is the reason why a session ended. Causes are passed as causes of contexts; one table
// turns them into close codes and words.
type Cause struct {
	// Reason is the cause's name on the wire and in the log.
	Reason string
	// Close is the WebSocket close code.
	Close websocket.StatusCode
	// Code is the code of the error message before session.ended; empty if there was no error.
	Code string
	// Message tells the user's side what happened and what to do.
	Message string
	// Field is the field of session.start that the message is about; may be empty.
	Field string
	// Until is when the cause will be over; zero if that is not known.
	Until time.Time
}

// Error returns the reason.
func (c *Cause) Error() string { return c.Reason }

// retryable reports whether trying again later may help; it goes into the error message.
func (c *Cause) retryable() bool {
	if r := errcode.RetryOf(c.Code); r != errcode.Says {
		return r == errcode.Later
	}
	return c.Reason != causeRefused.Reason // the operator must look into it
}

// The causes whose words are fixed; refusal makes those whose words vary. docs/protocol.md lists them; a test
// compares.
var (
	causeHungUp = &Cause{Reason: "client_ended", Close: closecode.Done}
	causeGone   = &Cause{Reason: "client_gone", Close: closecode.Done}
	// causeLeft is for a client whose page went away: it may come back, like one that is gone.
	causeLeft = &Cause{Reason: "client_ended", Close: closecode.Done}
	// causeText and causeOperator end a session whose client is away, and any session.
	causeText     = &Cause{Reason: "text_continues", Close: closecode.Done}
	causeOperator = &Cause{Reason: "operator_ended", Close: closecode.Done}

	// The causes about coming back. causeElsewhere is for the older connection.
	causeElsewhere = &Cause{Reason: "resumed_elsewhere", Close: closecode.ResumedElsewhere}
	causeResume    = &Cause{Reason: errcode.ResumeRefused, Close: closecode.Ticket,
		Code: errcode.ResumeRefused, Message: "There is no such session to come back to, or this client may not; start a new one."}
	causeResumes = &Cause{Reason: "too_many_resumes", Close: closecode.Limit,
		Code: errcode.Limit, Message: "Too many attempts to come back to this session; wait a moment."}
	// causeMoving is for a client that goes on with its session once it connects again: here or on
	// another node. It ends a session that was given up. causeTaken ends one that another node has
	// taken.
	causeMoving    = &Cause{Reason: "moving", Close: closecode.Moving}
	causeUnreached = &Cause{Reason: "moving", Close: closecode.Moving}
	causeTaken     = &Cause{Reason: "taken_over", Close: closecode.Moving}

	causeIdle   = &Cause{Reason: "idle", Close: closecode.Idle}
	causeLength = &Cause{Reason: "length_limit", Close: closecode.Length}
	// causeLapsed ends a session whose client's credentials have ended.
	causeLapsed = &Cause{Reason: "credentials_expired", Close: closecode.Ticket}

	causeTool = &Cause{Reason: "tool_ended", Close: closecode.Done}

	causeShutdown = &Cause{Reason: "server_shutdown", Close: closecode.ServerLeaving}

	causeSlow = &Cause{Reason: "slow_client", Close: closecode.SlowClient}

	causeTooBig = &Cause{Reason: "message_too_big", Close: closecode.TooBig,
		Code: errcode.InvalidMessage, Message: "The message was larger than this gateway takes (64 KiB unless it says otherwise)."}
	causeFlood = &Cause{Reason: "flooding", Close: closecode.Limit,
		Code: errcode.Flooding, Message: "There were more than 20 errors within 10 seconds, or 200 in all, or more frames than a client may send; the session ends."}

	// The causes for a client that gets no place.
	causeFull = &Cause{Reason: "full", Close: closecode.TryLater,
		Code: errcode.Limit, Message: "The gateway is full; try again in a moment."}
	causeBehind = &Cause{Reason: "behind", Close: closecode.TryLater,
		Code: errcode.Limit, Message: "The gateway has as much to do as it can and takes no new session; try again in a moment."}
	causeTooMany = &Cause{Reason: "too_many_sessions", Close: closecode.Limit,
		Code: errcode.Limit, Message: "Too many sessions from your address; end one, or try again in a moment."}
	// causeCrowd and causeSpent are for a user or a key whose limit is reached. causeUsedUp ends a
	// session: what it may cost itself may be used up, or what its user or key may use.
	causeCrowd = &Cause{Reason: "too_many_of_yours", Close: closecode.Limit,
		Code: errcode.Limit, Message: "You have as many sessions as you may, or begin them too fast; end one, or try again in a moment."}
	causeSpent = &Cause{Reason: "budget", Close: closecode.Limit,
		Code: errcode.Budget, Message: "What you may use is used up for now; come back later."}
	causeUsedUp = &Cause{Reason: "budget", Close: closecode.Limit,
		Code: errcode.Budget, Message: "What this conversation may use is used up; start a new one, unless that is refused."}
	causeCrowded = &Cause{Reason: "crowded_out", Close: closecode.TryLater,
		Code: errcode.Limit, Message: "Too many connections wait for their session.start; connect again and send it at once."}

	// causeBlocked is for a user who is locked out; blocked adds until when.
	causeBlocked = &Cause{Reason: "blocked", Close: closecode.Blocked,
		Code: errcode.Blocked, Message: "You are shut out for a while; come back later."}

	causeStartTimeout = &Cause{Reason: "start_timeout", Close: closecode.StartTimeout,
		Code: errcode.StartTimeout, Message: "No session.start came in time: it must be the first message."}

	// The causes about a ticket.
	causeTicketMissing = &Cause{Reason: errcode.TicketMissing, Close: closecode.Ticket,
		Code: errcode.TicketMissing, Message: "This gateway lets nobody in without a ticket; get one from the program that invites you, and send it in session.start."}
	causeTicketWrong = &Cause{Reason: errcode.TicketWrong, Close: closecode.Ticket,
		Code: errcode.TicketWrong, Message: "There is no such ticket; ask for a new one."}
	causeTicketsDiffer = &Cause{Reason: errcode.TicketWrong, Close: closecode.Ticket,
		Code: errcode.TicketWrong, Message: "The ticket in session.start is another one than that in the list of subprotocols; send one, or the same."}
	causeTicketOrigin = &Cause{Reason: errcode.TicketOrigin, Close: closecode.Ticket,
		Code: errcode.TicketOrigin, Message: "The ticket was made for pages of another origin; use it there, or ask for one for this origin."}
	causeTicketUsed = &Cause{Reason: errcode.TicketUsed, Close: closecode.TicketUsed,
		Code: errcode.TicketUsed, Message: "The ticket was used already, or a newer one has replaced it; ask for a new one."}
	causeTicketLate = &Cause{Reason: errcode.TicketExpired, Close: closecode.TicketUsed,
		Code: errcode.TicketExpired, Message: "The ticket has expired; ask for a new one, and use it at once."}
	causeVoiceActive = &Cause{Reason: errcode.VoiceActive, Close: closecode.TicketUsed,
		Code: errcode.VoiceActive, Message: "Another voice session of this conversation is running; end that one first."}
	// causeVoiceLost ends a session that may no longer be the only one of its conversation.
	causeVoiceLost = &Cause{Reason: errcode.VoiceLost, Close: closecode.VoiceLost,
		Code: errcode.VoiceLost, Message: "The gateway can no longer make sure that this is the only voice session of the conversation; start again with a new ticket."}
	// causeNotYours is about a conversation that belongs to another user.
	causeNotYours = &Cause{Reason: errcode.UnknownConversation, Close: closecode.UnknownTarget,
		Code: errcode.UnknownConversation, Message: "There is no such conversation of yours; start without conversation_id, or with a new one."}
	causeStore = &Cause{Reason: errcode.StoreUnavailable, Close: closecode.Internal,
		Code: errcode.StoreUnavailable, Message: "The gateway cannot look up who you are at the moment; try again soon."}

	causeUnavailable = &Cause{Reason: "provider_unavailable", Close: closecode.ProviderUnavailable,
		Code: errcode.ProviderUnavailable, Message: "The voice model cannot be reached at the moment; try again soon."}
	causeRefused = &Cause{Reason: "provider_refused", Close: closecode.ProviderUnavailable,
		Code: errcode.ProviderUnavailable, Message: "The voice model does not accept this gateway's request; its operator must look into it."}
	causeLost = &Cause{Reason: "provider_lost", Close: closecode.ProviderLost,
		Code: errcode.ProviderLost, Message: "The connection to the voice model was lost; start again."}
	causeExpired = &Cause{Reason: "provider_expired", Close: closecode.ProviderLost,
		Code: errcode.ProviderLost, Message: "The voice model's session reached its longest duration; start again."}
	causeStalled = &Cause{Reason: "provider_stalled", Close: closecode.ProviderLost,
		Code: errcode.ProviderLost, Message: "The voice model has stopped taking in messages; start again."}

	causeInternal = &Cause{Reason: "internal", Close: closecode.Internal,
		Code: errcode.Internal, Message: "Something went wrong in the gateway; start again."}
)

// causes lists the table for its test.
func causes() []*Cause {
	return []*Cause{
		causeHungUp, causeGone, causeLeft, causeText, causeOperator, causeElsewhere, causeResume, causeResumes, causeMoving, causeUnreached, causeTaken, causeIdle, causeLength, causeLapsed, causeTool, causeShutdown, causeSlow, causeTooBig, causeFlood, causeFull, causeBehind, causeTooMany, causeCrowd, causeSpent, causeUsedUp, causeCrowded, causeBlocked,
		causeTicketMissing, causeTicketWrong, causeTicketsDiffer, causeTicketOrigin, causeTicketUsed, causeTicketLate,
		causeVoiceActive, causeVoiceLost, causeNotYours, causeStore,
		causeStartTimeout, causeUnavailable, causeRefused, causeLost, causeExpired, causeStalled, causeInternal,
	}
}

// refusal returns a cause for a session that did not begin.
func refusal(close websocket.StatusCode, code, format string, args ...any) *Cause {
	return &Cause{Reason: code, Close: close, Code: code, Message: fmt.Sprintf(format, args...)}
}

// wrongField refuses a session.start because of a field; format goes on after the field's name.
func wrongField(field, format string, args ...any) *Cause {
	c := refusal(closecode.BadProtocol, errcode.InvalidMessage, "session.start: the field "+field+" "+format, args...)
	c.Field = field
	return c
}

// blocked returns causeBlocked with that time.
func blocked(until time.Time) *Cause {
	c := *causeBlocked
	c.Until = until
	return &c
}

// causeOf returns the Cause that err wraps, or causeInternal.
func causeOf(err error) *Cause {
	var c *Cause
	if errors.As(err, &c) {
		return c
	}
	return causeInternal
}

// unreached returns the cause for a session that cannot begin because of such a failure.
func unreached(kind transport.Kind) *Cause {
	f := kind.Failure()
	c := *causeUnavailable
	if !f.Later {
		c = *causeRefused
	}
	if f.Words != "" {
		c.Message = f.Words
	}
	return &c
}

// lostBy returns the cause for a session whose connection to the model was lost for that reason and could
// not be replaced.
func lostBy(kind transport.Kind) *Cause {
	switch f := kind.Failure(); {
	case kind == transport.KindExpired:
		return causeExpired
	case kind == transport.KindRetry || kind == 0 || f.Words == "":
		return causeLost
	case !f.Later:
		return unreached(kind)
	default:
		c := *causeLost
		c.Message = f.Words
		return &c
	}
}

// endCause returns the cause for an end that the orchestrator has decided.
func (s *session) endCause(a orchestrator.End) *Cause {
	if until := s.blockedUntil.Load(); a.Reason == orchestrator.EndTool && until != nil {
		return blocked(*until)
	}
	return endCause(a)
}

// endCause maps the orchestrator's reasons to causes.
func endCause(a orchestrator.End) *Cause {
	switch a.Reason {
	case orchestrator.EndHungUp:
		return causeHungUp
	case orchestrator.EndIdle:
		return causeIdle
	case orchestrator.EndLength:
		return causeLength
	case orchestrator.EndLapsed:
		return causeLapsed
	case orchestrator.EndTool:
		return causeTool
	case orchestrator.EndGone:
		return causeGone
	case orchestrator.EndBudget:
		return causeUsedUp
	case orchestrator.EndLost:
		return lostBy(a.Kind)
	default:
		return causeInternal
	}
}

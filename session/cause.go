package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

// Cause is the reason for the end of a session. Causes are passed as causes of contexts; one table maps them to close
// codes and messages.
type Cause struct {
	// Reason is the cause's name on the wire and in the log.
	Reason string
	// Close is the WebSocket close code.
	Close websocket.StatusCode
	// Code is the code of the error before session.ended; empty without an error.
	Code string
	// Message is the error's text for the user, with the next step.
	Message string
	// Field is the field of session.start that the message is about; may be empty.
	Field string
	// Until is when the condition ends; zero if unknown.
	Until time.Time
}

// Error returns the reason.
func (c *Cause) Error() string { return c.Reason }

// retryable reports whether trying again later may help; it goes into the error message.
func (c *Cause) retryable() bool {
	if r := protocol.RetryOf(c.Code); r != protocol.RetryDepends {
		return r == protocol.RetryLater
	}
	return c.Reason != causeRefused.Reason // the operator must look into it
}

// The causes with fixed texts; refusal makes the others. A test compares the list in docs/protocol.md.
var (
	causeHungUp = &Cause{Reason: "client_ended", Close: protocol.CloseDone}
	causeGone   = &Cause{Reason: "client_gone", Close: protocol.CloseDone}
	// causeLeft: the client's page was closed. The client may resume, as after causeGone.
	causeLeft = &Cause{Reason: "client_ended", Close: protocol.CloseDone}
	// causeText ends a session whose client is absent, causeOperator any session.
	causeText     = &Cause{Reason: "text_continues", Close: protocol.CloseDone}
	causeOperator = &Cause{Reason: "operator_ended", Close: protocol.CloseDone}

	// The causes about resuming. causeElsewhere is for the older connection.
	causeElsewhere = &Cause{Reason: "resumed_elsewhere", Close: protocol.CloseResumedElsewhere}
	causeResume    = &Cause{Reason: protocol.CodeResumeRefused, Close: protocol.CloseTicket,
		Code: protocol.CodeResumeRefused, Message: "There is no such session to come back to, or this client may not; start a new one."}
	causeResumes = &Cause{Reason: "too_many_resumes", Close: protocol.CloseLimit,
		Code: protocol.CodeLimit, Message: "Too many attempts to come back to this session; wait a moment."}
	// causeMoving ends a handed-over session, whose client can resume; causeTaken one that another node took.
	causeMoving    = &Cause{Reason: "moving", Close: protocol.CloseMoving}
	causeUnreached = &Cause{Reason: "moving", Close: protocol.CloseMoving}
	causeTaken     = &Cause{Reason: "taken_over", Close: protocol.CloseMoving}

	causeIdle   = &Cause{Reason: "idle", Close: protocol.CloseIdle}
	causeLength = &Cause{Reason: "length_limit", Close: protocol.CloseLength}
	// causeLapsed: the client's credentials have expired.
	causeLapsed = &Cause{Reason: "credentials_expired", Close: protocol.CloseTicket}

	causeTool = &Cause{Reason: "tool_ended", Close: protocol.CloseDone}

	causeShutdown = &Cause{Reason: "server_shutdown", Close: protocol.CloseServerLeaving}

	causeSlow = &Cause{Reason: "slow_client", Close: protocol.CloseSlowClient}

	causeTooBig = &Cause{Reason: "message_too_big", Close: protocol.CloseTooBig,
		Code: protocol.CodeInvalidMessage, Message: "The message was larger than this gateway takes (64 KiB unless it says otherwise)."}
	causeFlood = &Cause{Reason: "flooding", Close: protocol.CloseLimit,
		Code: protocol.CodeFlooding, Message: "There were more than 20 errors within 10 seconds, or 200 in all, or more " +
			"frames than a client may send; the session ends."}

	// The causes for a client that is refused for lack of capacity.
	causeFull = &Cause{Reason: "full", Close: protocol.CloseTryLater,
		Code: protocol.CodeLimit, Message: "The gateway is full; try again in a moment."}
	causeBehind = &Cause{Reason: "behind", Close: protocol.CloseTryLater,
		Code: protocol.CodeLimit, Message: "The gateway has as much to do as it can and takes no new session; try again in a moment."}
	causeTooMany = &Cause{Reason: "too_many_sessions", Close: protocol.CloseLimit,
		Code: protocol.CodeLimit, Message: "Too many sessions from your address; end one, or try again in a moment."}
	// causeCrowd and causeSpent: the limit of a user or a key is reached. causeUsedUp ends a running session.
	causeCrowd = &Cause{Reason: "too_many_of_yours", Close: protocol.CloseLimit,
		Code: protocol.CodeLimit, Message: "You have as many sessions as you may, or begin them too fast; end one, or try " +
			"again in a moment."}
	causeSpent = &Cause{Reason: "budget", Close: protocol.CloseLimit,
		Code: protocol.CodeBudget, Message: "What you may use is used up for now; come back later."}
	causeUsedUp = &Cause{Reason: "budget", Close: protocol.CloseLimit,
		Code: protocol.CodeBudget, Message: "What this conversation may use is used up; start a new one, unless that is refused."}
	causeCrowded = &Cause{Reason: "crowded_out", Close: protocol.CloseTryLater,
		Code: protocol.CodeLimit, Message: "Too many connections wait for their session.start; connect again and send it at once."}

	// causeBlocked: the user is locked out; blocked adds the time.
	causeBlocked = &Cause{Reason: "blocked", Close: protocol.CloseBlocked,
		Code: protocol.CodeBlocked, Message: "You are shut out for a while; come back later."}

	causeStartTimeout = &Cause{Reason: "start_timeout", Close: protocol.CloseStartTimeout,
		Code: protocol.CodeStartTimeout, Message: "No session.start came in time: it must be the first message."}

	// The causes about a ticket.
	causeTicketMissing = &Cause{Reason: protocol.CodeTicketMissing, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketMissing, Message: "This gateway lets nobody in without a ticket; get one from the program " +
			"that invites you, and send it in session.start."}
	causeTicketWrong = &Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketWrong, Message: "There is no such ticket; ask for a new one."}
	causeTicketsDiffer = &Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketWrong, Message: "The ticket in session.start is another one than that in the list of " +
			"subprotocols; send one, or the same."}
	causeTicketOrigin = &Cause{Reason: protocol.CodeTicketOrigin, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketOrigin, Message: "The ticket was made for pages of another origin; use it there, or ask for " +
			"one for this origin."}
	causeTicketUsed = &Cause{Reason: protocol.CodeTicketUsed, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketUsed, Message: "The ticket was used already, or a newer one has replaced it; ask for a new one."}
	causeTicketLate = &Cause{Reason: protocol.CodeTicketExpired, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketExpired, Message: "The ticket has expired; ask for a new one, and use it at once."}
	causeVoiceActive = &Cause{Reason: protocol.CodeVoiceActive, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeVoiceActive, Message: "Another voice session of this conversation is running; end that one first."}
	// causeVoiceLost: the session may not be the only one of its conversation.
	causeVoiceLost = &Cause{Reason: protocol.CodeVoiceLost, Close: protocol.CloseVoiceLost,
		Code: protocol.CodeVoiceLost, Message: "The gateway can no longer make sure that this is the only voice session of " +
			"the conversation; start again with a new ticket."}
	// causeNotYours: the conversation belongs to another user.
	causeNotYours = &Cause{Reason: protocol.CodeUnknownConversation, Close: protocol.CloseUnknownTarget,
		Code:    protocol.CodeUnknownConversation,
		Message: "There is no such conversation of yours; start without conversation_id, or with a new one."}
	causeStore = &Cause{Reason: protocol.CodeStoreUnavailable, Close: protocol.CloseInternal,
		Code: protocol.CodeStoreUnavailable, Message: "The gateway cannot look up who you are at the moment; try again soon."}

	causeUnavailable = &Cause{Reason: "provider_unavailable", Close: protocol.CloseProviderUnavailable,
		Code: protocol.CodeProviderUnavailable, Message: "The voice model cannot be reached at the moment; try again soon."}
	causeRefused = &Cause{Reason: "provider_refused", Close: protocol.CloseProviderUnavailable,
		Code:    protocol.CodeProviderUnavailable,
		Message: "The voice model does not accept this gateway's request; its operator must look into it."}
	causeLost = &Cause{Reason: "provider_lost", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The connection to the voice model was lost; start again."}
	causeExpired = &Cause{Reason: "provider_expired", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The voice model's session reached its longest duration; start again."}
	causeStalled = &Cause{Reason: "provider_stalled", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, Message: "The voice model has stopped taking in messages; start again."}

	causeInternal = &Cause{Reason: "internal", Close: protocol.CloseInternal,
		Code: protocol.CodeInternal, Message: "Something went wrong in the gateway; start again."}
)

func causes() []*Cause {
	return []*Cause{
		causeHungUp, causeGone, causeLeft, causeText, causeOperator, causeElsewhere, causeResume, causeResumes, causeMoving,
		causeUnreached, causeTaken, causeIdle, causeLength, causeLapsed, causeTool, causeShutdown, causeSlow, causeTooBig,
		causeFlood, causeFull, causeBehind, causeTooMany, causeCrowd, causeSpent, causeUsedUp, causeCrowded, causeBlocked,
		causeTicketMissing, causeTicketWrong, causeTicketsDiffer, causeTicketOrigin, causeTicketUsed, causeTicketLate,
		causeVoiceActive, causeVoiceLost, causeNotYours, causeStore,
		causeStartTimeout, causeUnavailable, causeRefused, causeLost, causeExpired, causeStalled, causeInternal,
	}
}

func refusal(close websocket.StatusCode, code, format string, args ...any) *Cause {
	return &Cause{Reason: code, Close: close, Code: code, Message: fmt.Sprintf(format, args...)}
}

// wrongField refuses a session.start because of a field; format continues the sentence after the field's name.
func wrongField(field, format string, args ...any) *Cause {
	c := refusal(protocol.CloseBadProtocol, protocol.CodeInvalidMessage, "session.start: the field "+field+" "+format, args...)
	c.Field = field
	return c
}

// blocked returns causeBlocked with that time.
func blocked(until time.Time) *Cause {
	c := *causeBlocked
	c.Until = until
	return &c
}

func causeOf(err error) *Cause {
	var c *Cause
	if errors.As(err, &c) {
		return c
	}
	return causeInternal
}

func unreachable(kind transport.Kind) *Cause {
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

func lostBy(kind transport.Kind) *Cause {
	switch f := kind.Failure(); {
	case kind == transport.KindExpired:
		return causeExpired
	case kind == transport.KindRetry || kind == 0 || f.Words == "":
		return causeLost
	case !f.Later:
		return unreachable(kind)
	default:
		c := *causeLost
		c.Message = f.Words
		return &c
	}
}

func (e *ending) endCause(a orchestrator.End) *Cause {
	if until := e.blockedUntil.Load(); a.Reason == orchestrator.EndTool && until != nil {
		return blocked(*until)
	}
	return endCause(a)
}

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

// ending is the end of a session, in a tenth of the memory of a context with a child. It may be used concurrently.
type ending struct {
	done chan struct{} // closed by end

	ends  sync.Mutex // guards the following fields
	why   *Cause     // nil until the end
	after func()     // called on its own goroutine after done; may be nil

	// blockedUntil is set by a tool that locks the user out.
	blockedUntil atomic.Pointer[time.Time]

	readers  sync.WaitGroup  // links and attachments, until their connections have ended
	visitors sync.WaitGroup  // users of the session; added to only while the roster has the session
	handed   <-chan struct{} // closed after the handback; closeClient sets it for settle
	left     chan struct{}   // closed when nothing of the session is left
}

// end ends the session; the first cause counts.
func (e *ending) end(why *Cause) {
	e.ends.Lock()
	defer e.ends.Unlock()
	if e.why != nil {
		return
	}
	e.why = why
	close(e.done)
	if e.after != nil {
		go e.after()
	}
}

// whenDone calls f on a new goroutine after the end. It may be called once.
func (e *ending) whenDone(f func()) {
	e.ends.Lock()
	defer e.ends.Unlock()
	if e.why != nil {
		go f()
		return
	}
	e.after = f
}

func (e *ending) isOver() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// cause returns why the session ended; nil before that.
func (e *ending) cause() *Cause {
	e.ends.Lock()
	defer e.ends.Unlock()
	return e.why
}

func (e *ending) context() context.Context { return untilOver{e} }

type untilOver struct{ e *ending }

func (untilOver) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (untilOver) Value(any) any                           { return nil }
func (u untilOver) Done() <-chan struct{}                 { return u.e.done }

func (u untilOver) Err() error {
	if u.e.isOver() {
		return context.Canceled
	}
	return nil
}

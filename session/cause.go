package session

import (
	"cmp"
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
	// When is Markdown for the row of docs/protocol.md; empty if another cause has the row.
	When string
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

// causes are those with fixed texts, in the order of their declaration.
var causes []*Cause

func fixed(c Cause) *Cause {
	causes = append(causes, &c)
	return &c
}

// The causes with fixed texts; refusal makes the others. make docs writes them into docs/protocol.md.
var (
	causeHungUp = fixed(Cause{Reason: "client_ended", Close: protocol.CloseDone,
		When: "you sent `session.end` or closed with 1000"})
	causeGone = fixed(Cause{Reason: "client_gone", Close: protocol.CloseDone, When: "you did not resume in time"})
	// causeLeft: the client's page was closed. The client may resume, as after causeGone.
	causeLeft = fixed(Cause{Reason: "client_ended", Close: protocol.CloseDone})
	// causeText ends a session whose client is absent, causeOperator any session.
	causeText = fixed(Cause{Reason: "text_continues", Close: protocol.CloseDone,
		When: "you were away and the conversation continued by text"})
	causeOperator = fixed(Cause{Reason: "operator_ended", Close: protocol.CloseDone, When: "an operator ended it"})

	// The causes about resuming. causeElsewhere is for the older connection.
	causeElsewhere = fixed(Cause{Reason: "resumed_elsewhere", Close: protocol.CloseResumedElsewhere,
		When: "another connection resumed it"})
	causeResume = fixed(Cause{Reason: protocol.CodeResumeRefused, Close: protocol.CloseTicket,
		Code: protocol.CodeResumeRefused, When: "session over or wrong token",
		Message: "This session does not exist any more, or this client may not resume it; start a new one."})
	causeResumes = fixed(Cause{Reason: "too_many_resumes", Close: protocol.CloseLimit, Code: protocol.CodeLimit,
		When: "too many wrong tokens", Message: "Too many attempts to resume this session; wait a moment."})
	// causeMoving ends a handed-over session, whose client can resume; causeTaken one that another node took.
	causeMoving = fixed(Cause{Reason: "moving", Close: protocol.CloseMoving,
		When: "continues on another gateway or after a restart; [resume](#resuming) at once"})
	causeUnreached = fixed(Cause{Reason: "moving", Close: protocol.CloseMoving})
	causeTaken     = fixed(Cause{Reason: "taken_over", Close: protocol.CloseMoving,
		When: "another gateway has the session; resume"})

	causeIdle   = fixed(Cause{Reason: "idle", Close: protocol.CloseIdle, When: "no speech or text for `limits.idle`"})
	causeLength = fixed(Cause{Reason: "length_limit", Close: protocol.CloseLength, When: "maximum session length"})
	// causeLapsed: the client's credentials have expired.
	causeLapsed = fixed(Cause{Reason: "credentials_expired", Close: protocol.CloseTicket,
		When: "with [enforced expiry](authentication.md#when-credentials-end)"})

	causeTool = fixed(Cause{Reason: "tool_ended", Close: protocol.CloseDone, When: "the model ended it through a tool"})

	// causeNotice: the session cannot continue without its notice.
	causeNotice = fixed(Cause{Reason: "notice_unheard", Close: protocol.CloseTryLater, Code: protocol.CodeProviderUnavailable,
		When:    "the [notice](exact.md) could not be said, or was not heard",
		Message: "The notice at the beginning could not be said or was not heard, so the session ends; try again in a moment."})

	causeChecked = fixed(Cause{Reason: "checked", Close: protocol.CloseDone, When: "a [check](checks.md) of an answer ended it"})

	causeShutdown = fixed(Cause{Reason: "server_shutdown", Close: protocol.CloseServerLeaving, When: "the gateway stops"})

	causeSlow = fixed(Cause{Reason: "slow_client", Close: protocol.CloseSlowClient,
		When: "you read nothing for 5 s, or are 120 s of audio, 4,096 messages or 24 MiB behind; you may [resume](#resuming)"})

	causeTooBig = fixed(Cause{Reason: "message_too_big", Close: protocol.CloseTooBig, Code: protocol.CodeInvalidMessage,
		When:    "a frame over 64 KiB or the operator's limit",
		Message: "The message exceeds this gateway's limit (64 KiB by default)."})
	causeFlood = fixed(Cause{Reason: "flooding", Close: protocol.CloseLimit, Code: protocol.CodeFlooding,
		When:    "[too much input](#how-much-may-come) or too many errors",
		Message: "More than 20 errors within 10 seconds, more than 200 in all, or more frames than allowed; the session ends."})

	// The causes for a client that is refused for lack of capacity.
	causeFull = fixed(Cause{Reason: "full", Close: protocol.CloseTryLater, Code: protocol.CodeLimit,
		When: "no free session", Message: "The gateway is full; try again in a moment."})
	causeBehind = fixed(Cause{Reason: "behind", Close: protocol.CloseTryLater, Code: protocol.CodeLimit,
		When:    "late by seconds or [overloaded](cost.md#overload)",
		Message: "The gateway is overloaded; try again in a moment."})
	causeTooMany = fixed(Cause{Reason: "too_many_sessions", Close: protocol.CloseLimit, Code: protocol.CodeLimit,
		When:    "too many from your address",
		Message: "Too many sessions from your address; end one, or try again in a moment."})
	// causeCrowd and causeSpent: the limit of a user or a key is reached. causeUsedUp ends a running session.
	causeCrowd = fixed(Cause{Reason: "too_many_of_yours", Close: protocol.CloseLimit, Code: protocol.CodeLimit,
		When:    "too many, or too fast, for the user or key",
		Message: "You have reached your limit of sessions, or start them too fast; end one, or try again in a moment."})
	causeSpent = fixed(Cause{Reason: "budget", Close: protocol.CloseLimit, Code: protocol.CodeBudget,
		When: "quota used up; `until` if known", Message: "Your quota is used up; come back later."})
	causeUsedUp = fixed(Cause{Reason: "budget", Close: protocol.CloseLimit, Code: protocol.CodeBudget,
		Message: "This conversation's quota is used up; start a new one, unless that is refused."})
	causeCrowded = fixed(Cause{Reason: "crowded_out", Close: protocol.CloseTryLater, Code: protocol.CodeLimit,
		When:    "too many connections without `session.start`",
		Message: "Too many connections are waiting for session.start; connect again and send it at once."})

	// causeBlocked: the user is locked out; blocked adds the time.
	causeBlocked = fixed(Cause{Reason: "blocked", Close: protocol.CloseBlocked, Code: protocol.CodeBlocked,
		When: "the user is blocked", Message: "You are blocked for a while; come back later."})

	causeStartTimeout = fixed(Cause{Reason: "start_timeout", Close: protocol.CloseStartTimeout,
		Code: protocol.CodeStartTimeout, When: "no `session.start` in time",
		Message: "No session.start arrived in time; it must be the first message."})

	// The causes about a ticket.
	causeTicketMissing = fixed(Cause{Reason: protocol.CodeTicketMissing, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketMissing, When: "a ticket is required",
		Message: "This gateway requires a ticket; get one from the program that invites you, and send it in session.start."})
	causeTicketWrong = fixed(Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketWrong, When: "unknown, or two different tickets",
		Message: "This ticket does not exist; ask for a new one."})
	causeTicketsDiffer = fixed(Cause{Reason: protocol.CodeTicketWrong, Close: protocol.CloseTicket,
		Code:    protocol.CodeTicketWrong,
		Message: "The ticket in session.start differs from the one in the subprotocols; send one, or the same."})
	causeTicketOrigin = fixed(Cause{Reason: protocol.CodeTicketOrigin, Close: protocol.CloseTicket,
		Code: protocol.CodeTicketOrigin, When: "for another origin",
		Message: "The ticket is for pages of another origin; use it there, or ask for one for this origin."})
	causeTicketUsed = fixed(Cause{Reason: protocol.CodeTicketUsed, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketUsed, When: "used or replaced",
		Message: "The ticket was already used, or a newer one has replaced it; ask for a new one."})
	causeTicketLate = fixed(Cause{Reason: protocol.CodeTicketExpired, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeTicketExpired, When: "too late",
		Message: "The ticket has expired; ask for a new one, and use it at once."})
	causeVoiceActive = fixed(Cause{Reason: protocol.CodeVoiceActive, Close: protocol.CloseTicketUsed,
		Code: protocol.CodeVoiceActive, When: "the conversation has another voice session",
		Message: "Another voice session of this conversation is running; end it first."})
	// causeVoiceLost: the session may not be the only one of its conversation.
	causeVoiceLost = fixed(Cause{Reason: protocol.CodeVoiceLost, Close: protocol.CloseVoiceLost,
		Code:    protocol.CodeVoiceLost,
		When:    "the store was unavailable for 27 s, or another session started; use a new ticket",
		Message: "The gateway can no longer ensure that this is the conversation's only voice session; start again with a new ticket."})
	// causeNotYours: the conversation belongs to another user.
	causeNotYours = fixed(Cause{Reason: protocol.CodeUnknownConversation, Close: protocol.CloseUnknownTarget,
		Code: protocol.CodeUnknownConversation, When: "belongs to another user",
		Message: "You have no such conversation; start without conversation_id, or with a new one."})
	causeStore = fixed(Cause{Reason: protocol.CodeStoreUnavailable, Close: protocol.CloseInternal,
		Code: protocol.CodeStoreUnavailable, When: "ticket or conversation could not be read",
		Message: "The gateway cannot check who you are at the moment; try again soon."})

	causeUnavailable = fixed(Cause{Reason: "provider_unavailable", Close: protocol.CloseProviderUnavailable,
		Code: protocol.CodeProviderUnavailable, When: "the model was unreachable for 10 s",
		Message: "The voice model is unreachable at the moment; try again soon."})
	causeRefused = fixed(Cause{Reason: "provider_refused", Close: protocol.CloseProviderUnavailable,
		Code: protocol.CodeProviderUnavailable, When: "the model refuses the gateway's request or key",
		Message: "The voice model refuses this gateway's request; its operator must look into it."})
	causeLost = fixed(Cause{Reason: "provider_lost", Close: protocol.CloseProviderLost, Code: protocol.CodeProviderLost,
		When: "the model's connection broke", Message: "The connection to the voice model was lost; start again."})
	causeExpired = fixed(Cause{Reason: "provider_expired", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, When: "the model's session reached its maximum length",
		Message: "The voice model's session reached its maximum length; start again."})
	causeStalled = fixed(Cause{Reason: "provider_stalled", Close: protocol.CloseProviderLost,
		Code: protocol.CodeProviderLost, When: "the model read nothing for 15 s",
		Message: "The voice model stopped reading messages; start again."})

	causeInternal = fixed(Cause{Reason: "internal", Close: protocol.CloseInternal, Code: protocol.CodeInternal,
		When: "a bug of the gateway", Message: "Something went wrong in the gateway; start again."})
)

func refusal(close websocket.StatusCode, code, format string, args ...any) *Cause {
	return &Cause{Reason: code, Close: close, Code: code, Message: fmt.Sprintf(format, args...)}
}

// wrongField refuses a session.start because of a field; format continues the sentence after the field's name.
func wrongField(field, format string, args ...any) *Cause {
	c := refusal(protocol.CloseBadProtocol, protocol.CodeInvalidMessage, "session.start: the field "+field+" "+format, args...)
	c.Field = field
	return c
}

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

var endCauses = map[orchestrator.EndReason]*Cause{
	orchestrator.EndHungUp:  causeHungUp,
	orchestrator.EndIdle:    causeIdle,
	orchestrator.EndLength:  causeLength,
	orchestrator.EndLapsed:  causeLapsed,
	orchestrator.EndNotice:  causeNotice,
	orchestrator.EndTool:    causeTool,
	orchestrator.EndChecked: causeChecked,
	orchestrator.EndGone:    causeGone,
	orchestrator.EndBudget:  causeUsedUp,
}

func (e *ending) endCause(a orchestrator.End) *Cause {
	if until := e.blockedUntil.Load(); a.Reason == orchestrator.EndTool && until != nil {
		return blocked(*until)
	}
	if a.Reason == orchestrator.EndLost {
		return lostBy(a.Kind)
	}
	return cmp.Or(endCauses[a.Reason], causeInternal)
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

func (e *ending) cause() *Cause {
	e.ends.Lock()
	defer e.ends.Unlock()
	return e.why
}

func (e *ending) context() context.Context { return untilOver{context.Background(), e} }

type untilOver struct {
	context.Context //nolint:containedctx // context.Background, without a deadline and values
	e               *ending
}

func (u untilOver) Done() <-chan struct{} { return u.e.done }

func (u untilOver) Err() error {
	if u.e.isOver() {
		return context.Canceled
	}
	return nil
}

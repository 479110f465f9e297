package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/conversation"
	"voicegw/protocol"
	"voicegw/store"
)

// enter joins the message of a request or creates it (mine). The caller must serve a message that it created.
func (a *Agent) enter(ctx context.Context, id identity) (m *message, mine bool, err error) {
	for {
		a.mu.Lock()
		a.forget(time.Now())
		old := a.messages[id.key]
		if old != nil && old.id.other(id) {
			a.mu.Unlock()
			return nil, false, ErrReused
		}
		if old != nil && old.join() {
			a.mu.Unlock()
			return old, false, nil
		}
		if old == nil || closed(old.ended) {
			m = a.newMessage(ctx, id, old)
			a.messages[id.key] = m
			if a.stopped {
				m.cancel(errDraining)
			}
			a.mu.Unlock()
			return m, true, nil
		}
		a.mu.Unlock()
		// The last client left, and the turn is being aborted.
		select {
		case <-old.ended:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// turnTime limits a turn.
const turnTime = 5 * time.Minute

// newMessage returns a message with one client. Its turn has its own context, because another client may wait longer.
func (a *Agent) newMessage(ctx context.Context, id identity, old *message) *message {
	turn, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), turnTime, errTurnTime)
	turn, cancel := context.WithCancelCause(turn)
	m := &message{
		id: id, ended: make(chan struct{}), more: make(chan struct{}), clients: 1,
		begin: func() context.Context { return turn }, cancel: func(why error) { cancel(why); stop() },
	}
	if old != nil && time.Now().Before(old.until) {
		m.before = old.remains()
	}
	return m
}

func (a *Agent) serve(m *message, req Request) {
	var rec *record
	var last protocol.ServerMessage
	var err error
	defer func() {
		defer m.cancel(nil)
		if p := recover(); p != nil {
			m.mu.Lock()
			m.panicked = p // follow panics with it on the client's goroutine
			m.mu.Unlock()
		}
		if last != nil {
			m.add(last)
		}
		a.ended(m, rec, err)
	}()
	rec, last, err = a.attempt(m.begin(), m, req)
	if err != nil && errors.Is(context.Cause(m.begin()), errDraining) {
		err = ErrDraining
	}
}

// attempt makes one attempt at a message, or repeats its answer. last must be sent after the lease is released.
func (a *Agent) attempt(ctx context.Context, m *message, req Request) (rec *record, last protocol.ServerMessage, err error) {
	rec, held, err := a.take(ctx, m, req)
	if held != nil {
		defer held.Release()
	}
	if err != nil {
		return m.before, nil, err
	}
	if rec != nil && rec.Content != m.id.content || !rec.in(req) {
		return nil, nil, ErrReused
	}
	if rec, err = a.same(ctx, m, req, rec); err != nil {
		return m.before, nil, err
	}
	if rec.Done {
		rec.replay(m, req)
		return rec, nil, nil
	}
	named := req.ConversationID != ""
	req.ConversationID = rec.Conversation
	if req.History != nil {
		t := a.newTurn(req, conversation.New(rec.Conversation, req.User.String(), a.persona(req.Agent, "").Name, time.Now()), m, rec)
		last, err = t.answer(ctx)
		return rec.left(err), last, err
	}
	if !named { // so far only the message is reserved
		if held, err = a.lease(ctx, rec.Conversation); err != nil {
			return m.before, nil, err
		}
		defer held.Release()
	}
	c, rev, err := a.load(ctx, req)
	if err != nil {
		return m.before, nil, err
	}
	t := a.newTurn(req, c, m, rec)
	t.save = func(entries []conversation.Entry) error {
		return a.keep(ctx, req, held, t, c, rev, entries)
	}
	last, err = t.answer(ctx)
	return rec.left(err), last, err
}

func (a *Agent) same(ctx context.Context, m *message, req Request, rec *record) (*record, error) {
	if rec != nil && rec.Name != "" {
		if m.id.named {
			return rec, nil
		}
		was := req
		was.ConversationID = rec.Conversation
		c, _, err := a.load(ctx, was)
		if err != nil {
			return nil, err
		}
		if rec.again(c, m.id.single) {
			return rec, nil
		}
	}
	fresh := &record{Name: rand.Text(), Content: m.id.content, Conversation: req.ConversationID}
	if req.ConversationID == "" || req.History != nil {
		fresh.Conversation = conversation.NewID()
	}
	if rec != nil {
		fresh.rev = rec.rev
	}
	return fresh, nil
}

const busyPause = 200 * time.Millisecond

// take reserves the request's conversation, or the message itself, and waits for another node that answers the same
// message. held is nil after an error, and if the message was already answered.
func (a *Agent) take(ctx context.Context, m *message, req Request) (rec *record, held store.Held, err error) {
	what, own := req.ConversationID, false
	if what == "" || req.History != nil {
		what, own = "message-"+m.id.key, true
	}
	for {
		if rec, err = a.found(ctx, m); err != nil {
			return nil, nil, err
		}
		if rec != nil && rec.Done && m.id.named {
			return rec, nil, nil
		}
		held, err = a.lease(ctx, what)
		switch {
		case err == nil:
			// The previous holder may have written more.
			if rec, err = a.found(ctx, m); err != nil {
				held.Release()
				return nil, nil, err
			}
			return rec, held, nil
		case !errors.Is(err, ErrBusy), !own && (rec == nil || rec.Done):
			return nil, nil, err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return nil, nil, ErrBusy
		}
	}
}

func (a *Agent) lease(ctx context.Context, what string) (store.Held, error) {
	held, err := a.opts.Conversations.Lease(ctx, what, leaseTime)
	switch {
	case errors.Is(err, store.ErrBusy):
		return nil, ErrBusy
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return held, nil
}

// errDraining is the cause of a turn's cancellation at shutdown.
var errDraining = errors.New("the gateway is shutting down")

// LeftError is the number of messages still being answered.
type LeftError struct{ Messages int }

// Error returns the number.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%d text messages are still being answered", e.Messages)
}

// Drain refuses new messages with ErrDraining, waits for running turns until ctx ends, and then stops the rest, which
// continue when their messages are sent again. Wait waits for the stopped turns, once the Executor is closed.
func (a *Agent) Drain(ctx context.Context) {
	a.Refuse()
	select {
	case <-a.idle:
		return
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, m := range a.messages {
		m.cancel(errDraining)
	}
}

// Refuse makes the agent refuse new messages, as Drain does first.
func (a *Agent) Refuse() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
	a.quiet()
}

// Wait waits after Drain until no message is being answered. If ctx ends first, it returns a *LeftError.
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-a.idle:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.responding == 0 {
		return nil
	}
	return &LeftError{Messages: a.responding}
}

// Answering returns the number of messages being answered.
func (a *Agent) Answering() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.responding
}

// respond counts a call of Respond, which must call over at its end, or returns ErrDraining.
func (a *Agent) respond() (over func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return nil, ErrDraining
	}
	a.responding++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.responding--
		a.quiet()
	}, nil
}

// quiet closes idle when draining has finished. The caller must hold mu.
func (a *Agent) quiet() {
	if a.draining && a.responding == 0 && !closed(a.idle) {
		close(a.idle)
	}
}

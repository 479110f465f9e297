package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"voicegw/store"
)

// Confirmations is an in-memory execute.Confirmations. The zero value is empty; it may be used concurrently.
type Confirmations struct {
	// Before is the hook; set it before the first use.
	Before Before

	mu      sync.Mutex // guards the following fields
	all     map[string]store.Confirmation
	settled []string // references in order of Settle
}

// Create records a confirmation; store.ErrUsed if its token exists.
func (c *Confirmations) Create(ctx context.Context, question store.Confirmation) error {
	if err := c.Before.allow(ctx, Create, question.Token); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, has := c.all[question.Token]; has {
		return store.ErrUsed
	}
	if c.all == nil {
		c.all = make(map[string]store.Confirmation)
	}
	c.all[question.Token] = question
	return nil
}

// Named returns a confirmation by store.QuestionName, or store.ErrUnknown.
func (c *Confirmations) Named(ctx context.Context, name string) (store.Confirmation, error) {
	if err := c.Before.allow(ctx, Get, name); err != nil {
		return store.Confirmation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, question := range c.all {
		if store.QuestionName(token) == name {
			return question, nil
		}
	}
	return store.Confirmation{}, store.ErrUnknown
}

// Resolve answers a confirmation once, with the store's errors.
func (c *Confirmations) Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error) {
	if err := c.Before.allow(ctx, Resolve, token); err != nil {
		return store.Confirmation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	question, has := c.all[token]
	switch {
	case !has || session != "" && session != question.Session:
		return store.Confirmation{}, store.ErrUnknown
	case question.Outcome == store.Expired:
		return question, store.ErrExpired
	case question.Outcome != "":
		return question, store.ErrUsed
	case !now.Before(question.ExpiresAt):
		question.Outcome = store.Expired
	case approved:
		question.Outcome = store.Approved
	default:
		question.Outcome = store.Denied
	}
	c.all[token] = question
	if question.Outcome == store.Expired {
		return question, store.ErrExpired
	}
	return question, nil
}

// ResolveNamed answers the confirmation with that store.QuestionName once, with the store's errors.
func (c *Confirmations) ResolveNamed(ctx context.Context, name, session string, approved bool, now time.Time) (store.Confirmation, error) {
	question, err := c.Named(ctx, name)
	if err != nil {
		return question, err
	}
	return c.Resolve(ctx, question.Token, session, approved, now)
}

// Settle records that the outcome of an approved call is known.
func (c *Confirmations) Settle(ctx context.Context, _, _, reference string) error {
	if err := c.Before.allow(ctx, Settle, reference); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = append(c.settled, reference)
	return nil
}

// Settled returns the references passed to Settle, in order.
func (c *Confirmations) Settled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.settled)
}

// All returns all confirmations, in any order.
func (c *Confirmations) All() []store.Confirmation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []store.Confirmation
	for _, question := range c.all {
		all = append(all, question)
	}
	return all
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxToldApprovals is how many approvals the log names at start; the rest are counted.
const maxToldApprovals = 20

// tellApprovals logs the actions that were approved before the start and whose outcome is unknown.
func (s *server) tellApprovals(ctx context.Context) error {
	open, err := s.caps.store.Approvals().Open(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("reading which approved actions are open: %w", err)
	}
	for i, a := range open {
		if i == maxToldApprovals {
			s.logger.Warn("more approved actions have no known outcome; voicegw audit --open lists them", "more", len(open)-i)
			break
		}
		s.logger.Warn("an approved action has no known outcome: the gateway was ended in between", "tool", a.Tool, "reference", a.Reference,
			"approved_at", a.ApprovedAt, "begun", a.Begun, "session_id", a.Session, "conversation_id", a.Conversation, "user_id", a.User)
	}
	return nil
}

// checkOpen refuses flags that have no meaning with --open, or without it.
func (f auditFlags) checkOpen() error {
	if !f.Open {
		if f.URL != "" {
			return errors.New("--url is for --open: the records are read from their files")
		}
		return nil
	}
	if f.File != "" || f.Session != "" || f.User != "" || f.Tool != "" || f.Event != "" || f.Since != "" || f.Until != "" ||
		f.Failed || len(f.Error) > 0 || f.Undelivered || f.Limit != 0 || f.Follow {
		return errors.New("--open asks a running gateway and takes no filter: leave out all but --json, --url and --api-key")
	}
	return nil
}

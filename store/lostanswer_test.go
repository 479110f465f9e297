package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"voicegw/internal/conversation"
)

// answerless loses the acknowledgement of each write's first attempt: the write is stored, and its writer gets a timeout.
type answerless struct {
	jetstream.JetStream
	loses  bool
	seen   map[string]bool // marks of writes whose acknowledgement was lost
	stored int             // writes that the stream accepted
}

func (a *answerless) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := a.JetStream.PublishMsg(ctx, m, opts...)
	if err != nil {
		return nil, err
	}
	a.stored++
	if mark := m.Header.Get(markHeader); a.loses && !a.seen[mark] {
		a.seen[mark] = true
		return nil, nats.ErrTimeout
	}
	return ack, nil
}

// lostAnswerStep is an operation on a store. It returns an error unless its result is that of the only writer.
type lostAnswerStep struct {
	name string
	do   func(t *testing.T, s *Store) error
}

func onlyIf(is bool, err error) error {
	if err == nil && !is {
		err = errors.New("its own write counts as another writer's")
	}
	return err
}

func lostAnswerSteps() []lostAnswerStep {
	var entry Entry
	var rev Revision
	var agent uint64
	var secret string
	var lease Held
	var voice *Lease
	var job Job
	return []lostAnswerStep{
		{"reserve", func(t *testing.T, s *Store) (err error) {
			var fresh bool
			entry, fresh, err = s.Ledger.Reserve(t.Context(), Reservation{Key: "a", Lease: time.Minute})
			return onlyIf(fresh, err)
		}},
		{"finish", func(t *testing.T, s *Store) error { return s.Ledger.Finish(t.Context(), entry, json.RawMessage(`{}`)) }},
		{"release", func(t *testing.T, s *Store) error {
			e, fresh, err := s.Ledger.Reserve(t.Context(), Reservation{Key: "b", Lease: time.Minute})
			if err := onlyIf(fresh, err); err != nil {
				return err
			}
			return s.Ledger.Release(t.Context(), e)
		}},
		{"ask", func(t *testing.T, s *Store) error {
			return s.Confirmations.Create(t.Context(), question(t, "q", time.Hour))
		}},
		{"approve", func(t *testing.T, s *Store) error {
			q, err := s.Confirmations.Resolve(t.Context(), key(t, "q"), "s1", true, time.Now())
			return onlyIf(q.Outcome == Approved, err)
		}},
		{"settle", func(t *testing.T, s *Store) error { return s.Approvals.Settle(t.Context(), "c", "s1", "4711") }},
		{"block", func(t *testing.T, s *Store) error {
			return s.Blocks.Block(t.Context(), "ada", time.Now().Add(time.Hour))
		}},
		{"unblock", func(t *testing.T, s *Store) error { return onlyIf(s.Blocks.Unblock(t.Context(), "ada")) }},
		{"ticket", func(t *testing.T, s *Store) (err error) {
			secret, err = s.Tickets.Create(t.Context(), Ticket{SessionID: "s1", User: "ada"})
			return err
		}},
		{"redeem", func(t *testing.T, s *Store) error {
			_, err := s.Tickets.Redeem(t.Context(), secret, "", time.Now())
			return err
		}},
		{"save a conversation", func(t *testing.T, s *Store) (err error) {
			rev, err = s.Conversations.Save(t.Context(), conversation.New("c-1", "ada", "", time.Now()), 0)
			return err
		}},
		{"save it again", func(t *testing.T, s *Store) (err error) {
			_, err = s.Conversations.Save(t.Context(), conversation.New("c-1", "ada", "", time.Now()), rev)
			return err
		}},
		{"lease", func(t *testing.T, s *Store) (err error) {
			lease, err = s.Conversations.Lease(t.Context(), "c-1", time.Minute)
			return err
		}},
		{"give a lease back", func(t *testing.T, s *Store) error {
			lease.Release()
			_, err := s.Conversations.leases.get(t.Context(), keyOf("c-1"))
			return onlyIf(errors.Is(err, errNone), nil)
		}},
		{"voice", func(t *testing.T, s *Store) (err error) {
			voice, err = s.VoiceSessions.Begin(t.Context(), "s1", "ada", "c-1")
			return err
		}},
		{"renew", func(t *testing.T, s *Store) error { return voice.renew(t.Context()) }},
		{"answer", func(t *testing.T, s *Store) error {
			first, err := s.Answers.Save(t.Context(), "m", []byte("1"), 0, time.Hour)
			if err == nil {
				_, err = s.Answers.Save(t.Context(), "m", []byte("2"), first, time.Hour)
			}
			return err
		}},
		{"edit an agent", func(t *testing.T, s *Store) (err error) {
			agent, err = s.Agents.Save(t.Context(), AgentEdit{ID: "a", Document: json.RawMessage(`{}`)}, 0)
			return err
		}},
		{"remove its edit", func(t *testing.T, s *Store) error {
			_, err := s.Agents.Remove(t.Context(), "a", agent)
			return err
		}},
		{"start a job", func(t *testing.T, s *Store) (err error) {
			var fresh bool
			is := Job{ID: "job-aaaaaaaaaaaaaaaaaaaa", Action: "a", Tool: "t", Conversation: "c", Key: "k", State: JobWaiting}
			job, fresh, err = s.Jobs.Create(t.Context(), is, false)
			return onlyIf(fresh, err)
		}},
		{"save a job", func(t *testing.T, s *Store) error {
			_, err := s.Jobs.Save(t.Context(), job)
			return err
		}},
	}
}

// TestALostAcknowledgement: a write that arrived, and whose acknowledgement did not, is its writer's success for every
// operation, and it is stored once.
func TestALostAcknowledgement(t *testing.T) {
	stored := map[string]int{}
	for _, loses := range []bool{false, true} {
		t.Run(fmt.Sprint("loses=", loses), func(t *testing.T) {
			s := openTest(t, Options{Dir: t.TempDir()})
			js := &answerless{JetStream: s.js, loses: loses, seen: map[string]bool{}}
			s.js = js
			for _, step := range lostAnswerSteps() {
				js.stored = 0
				if err := step.do(t, s); err != nil {
					t.Errorf("%s: %v", step.name, err)
				}
				if !loses {
					stored[step.name] = js.stored
				} else if js.stored != stored[step.name] {
					t.Errorf("%s stores %d times instead of %d", step.name, js.stored, stored[step.name])
				}
			}
		})
	}
}

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

// approvalGrace is how long an approval that another gateway took, and that is not in the
// ledger, may still be on its way there.
const approvalGrace = time.Minute

// Approval is an action that a user has approved and whose outcome is unknown, or whose
// conversation has not been told of the outcome.
type Approval struct {
	// Reference is the short name of its confirmation; it is not a secret.
	Reference    string `json:"reference"`
	Tool         string `json:"tool"`
	Session      string `json:"session"`
	User         string `json:"user,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// ApprovedAt is when the answer came, by the clock of the node that took it.
	ApprovedAt time.Time `json:"approved_at"`
	// Begun says that the ledger holds the action: it may have been done. Otherwise it has
	// not begun, or it failed without changing anything.
	Begun bool `json:"begun"`
	// Result is the answer in the ledger; nil if the outcome is unknown.
	Result json.RawMessage `json:"-"`
	// Told says that its conversation was told of the outcome.
	Told bool `json:"told"`

	note approvalNote
	held held
}

// Question is the name of its question, as QuestionName returns it; empty for a question
// that did not come from a store.
func (a Approval) Question() string { return a.note.Question }

// approvalNote is the bucket's record of an approval, written before the answer and kept
// until the outcome is known.
type approvalNote struct {
	Reference    string    `json:"reference"`
	Tool         string    `json:"tool"`
	Session      string    `json:"session"`
	User         string    `json:"user,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	ApprovedAt   time.Time `json:"approved_at"`
	Told         bool      `json:"told,omitempty"`
	// Deed is its name in the ledger; empty for a tool that changes nothing.
	Deed string `json:"deed,omitempty"`
	// Question is the key of its confirmation, a hash. Process names the process that took
	// the answer.
	Question string `json:"question"`
	Process  string `json:"process"`
}

// Approvals holds the approved actions whose outcome is not known, for as long as the ledger
// remembers. Its methods may be used concurrently.
type Approvals struct {
	// Fixed after openApprovals.
	bucket    *bucket
	ledger    *bucket
	questions *bucket
	life      time.Duration
	process   string // names this process
	alone     bool   // nobody else uses the store
}

func (s *Store) openApprovals(ctx context.Context, questions *bucket) (*Approvals, error) {
	b, err := s.openBucket(ctx, witness.Approvals, "voicegw: approved actions whose outcome is not known")
	return &Approvals{
		bucket: b, ledger: s.ledger.bucket, questions: questions, life: s.o.LedgerLife, process: newMark(), alone: s.embedded != nil,
	}, err
}

// approvalKey begins with the conversation, so that the approvals of one can be found.
func approvalKey(conversation, session, reference string) string {
	return keyOf(conversation) + "." + keyOf(session+"\x00"+reference)
}

// note records that an approval is about to be stored. It comes before the answer: a process
// that is killed in between leaves a note of something that nobody approved, and Open
// recognises it.
func (a *Approvals) note(ctx context.Context, question Confirmation, now time.Time) error {
	data, err := encode(approvalNote{
		Reference: question.Reference, Tool: question.Tool, Session: question.Session, User: question.User, Agent: question.Agent,
		Conversation: question.Conversation, ApprovedAt: now.UTC(), Deed: question.Deed, Question: keyOf(question.Token), Process: a.process,
	})
	if err != nil {
		return err
	}
	key := approvalKey(question.Conversation, question.Session, question.Reference)
	for {
		h, err := a.bucket.create(ctx, key, data, a.life)
		if !errors.Is(err, errConflict) {
			return err
		}
		// The note belongs to an answer that was not stored, of this process or of another one
		// that may have been killed.
		if old, err := decodeApproval(h.data); err == nil && old.Process == a.process {
			return nil
		}
		if _, err = a.bucket.replace(ctx, key, data, h.revision, a.life); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// Settle forgets an approval because its outcome is known. It may be called again. The error
// wraps ErrUnavailable.
func (a *Approvals) Settle(ctx context.Context, conversation, session, reference string) error {
	ctx, cancel := a.bucket.store.bounded(ctx)
	defer cancel()
	key := approvalKey(conversation, session, reference)
	for {
		h, err := a.bucket.get(ctx, key)
		if errors.Is(err, errNone) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err = a.bucket.remove(ctx, key, h.revision); !errors.Is(err, errConflict) {
			return err
		}
		if err := a.bucket.store.pause(ctx); err != nil {
			return err
		}
	}
}

// Told notes that the conversation of an approval was told of it; one with a Result is
// forgotten. ErrChanged: somebody else has noted it, or its outcome is known by now. The other
// errors wrap ErrUnavailable.
func (a *Approvals) Told(ctx context.Context, approval Approval) error {
	note := approval.note
	if approval.Result != nil {
		return a.Settle(ctx, note.Conversation, note.Session, note.Reference)
	}
	note.Told = true
	data, err := encode(note)
	if err != nil {
		return err
	}
	_, err = a.bucket.replace(ctx, approvalKey(note.Conversation, note.Session, note.Reference), data, approval.held.revision, a.life)
	return err
}

// Open returns the approvals whose outcome is unknown now, the oldest first. It leaves out
// those that this process took, because it is still working on them or has been told, and
// those that another gateway may be working on. The errors wrap ErrUnavailable.
func (a *Approvals) Open(ctx context.Context, now time.Time) ([]Approval, error) {
	all, err := a.open(ctx, ">", now)
	return slices.DeleteFunc(all, func(a Approval) bool { return a.Result != nil }), err
}

// OpenIn returns the approvals of a conversation that its model may not have been told of:
// those that Open returns, and those with a Result that nobody has settled, whichever process
// took them. Another goroutine may be telling the model now; the Conversation's Told says
// whether it was told.
func (a *Approvals) OpenIn(ctx context.Context, conversation string, now time.Time) ([]Approval, error) {
	return a.open(ctx, keyOf(conversation)+".>", now)
}

func (a *Approvals) open(ctx context.Context, filter string, now time.Time) ([]Approval, error) {
	var keys []string
	err := a.bucket.store.within(ctx, a.bucket.store.o.Wait, "reading the approvals", func(ctx context.Context) error {
		info, err := a.bucket.stream.Info(ctx, jetstream.WithSubjectFilter(a.bucket.before+filter))
		if err != nil {
			return err
		}
		keys = keys[:0]
		for subject := range info.State.Subjects {
			keys = append(keys, strings.TrimPrefix(subject, a.bucket.before))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Approval
	for _, key := range keys {
		approval, open, err := a.look(ctx, key, now)
		if err != nil {
			return nil, err
		}
		if open {
			all = append(all, approval)
		}
	}
	slices.SortFunc(all, func(x, y Approval) int {
		return cmp.Or(x.ApprovedAt.Compare(y.ApprovedAt), cmp.Compare(x.Reference, y.Reference))
	})
	return all, nil
}

// look reads one note and what the other buckets hold about it.
func (a *Approvals) look(ctx context.Context, key string, now time.Time) (Approval, bool, error) {
	h, err := a.bucket.get(ctx, key)
	if errors.Is(err, errNone) {
		return Approval{}, false, nil
	} else if err != nil {
		return Approval{}, false, err
	}
	note, err := decodeApproval(h.data)
	if err != nil {
		a.bucket.store.log.Warn("store_approval_unreadable", "key", key, "error", err)
		return Approval{}, false, nil
	}
	var question *Confirmation
	q, err := a.questions.get(ctx, note.Question)
	switch {
	case err == nil:
		if c, bad := decodeConfirmation(q.data); bad == nil {
			question = &c
		}
	case !errors.Is(err, errNone):
		return Approval{}, false, err
	}
	var entry *Entry
	if note.Deed != "" {
		e, err := a.ledger.get(ctx, keyOf(note.Deed))
		switch {
		case err == nil:
			if read, bad := decodeEntry(e); bad == nil {
				entry = &read
			}
		case !errors.Is(err, errNone):
			return Approval{}, false, err
		}
	}
	approval := Approval{
		Reference: note.Reference, Tool: note.Tool, Session: note.Session, User: note.User, Agent: note.Agent,
		Conversation: note.Conversation, ApprovedAt: note.ApprovedAt, Begun: entry != nil, Told: note.Told, note: note, held: h,
	}
	if note.finished(question, entry) {
		approval.Result, approval.Told = entry.Envelope, false // the conversation was not told of this outcome
		return approval, true, nil
	}
	return approval, note.open(question, entry, a.process, a.alone, now), nil
}

// finished says whether the noted action was done, according to the ledger.
func (n approvalNote) finished(question *Confirmation, entry *Entry) bool {
	return entry != nil && entry.State == Done && (question == nil || question.Outcome == Approved)
}

// open says whether the outcome of a noted action is unknown, from its question and its
// ledger entry; each is nil if it is missing or unreadable. alone says that no other process
// uses the store.
func (n approvalNote) open(question *Confirmation, entry *Entry, process string, alone bool, now time.Time) bool {
	switch {
	case n.Process == process:
		return false
	case question != nil && question.Outcome != Approved:
		return false // the process was killed before the answer was recorded, or another answer came first
	case entry != nil && entry.State == Done:
		return false
	case alone:
		return true
	case entry != nil:
		return !now.Before(entry.LeaseUntil)
	}
	return !now.Before(n.ApprovedAt.Add(approvalGrace))
}

// decodeApproval reads a note of the bucket.
func decodeApproval(data []byte) (approvalNote, error) {
	var n approvalNote
	if err := decode(data, &n); err != nil {
		return approvalNote{}, err
	}
	if n.Reference == "" || n.Session == "" || n.Tool == "" || n.Question == "" {
		return approvalNote{}, fmt.Errorf("%w: an approval without a reference, a session, a tool or a question", ErrCorrupt)
	}
	return n, nil
}

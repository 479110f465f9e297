package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// approvalGrace is how long an approval accepted by another gateway may take to reach the ledger.
const approvalGrace = time.Minute

// Approval is an approved action whose outcome is unknown or unreported to its conversation.
type Approval struct {
	// Reference is the confirmation's short name; not secret.
	Reference    string `json:"reference"`
	Tool         string `json:"tool"`
	Session      string `json:"session"`
	User         string `json:"user,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// ApprovedAt is the time of the answer, by its node's clock.
	ApprovedAt time.Time `json:"approved_at"`
	// Begun means that the ledger has the action, so it may have been done. Otherwise it has not started, or failed
	// without side effects.
	Begun bool `json:"begun"`
	// Result is the result in the ledger; nil if the outcome is unknown.
	Result json.RawMessage `json:"-"`
	// Told means that its conversation was informed.
	Told bool `json:"told"`

	note approvalNote
	held held
}

// Question is the confirmation's name (QuestionName); empty for one that isn't from a store.
func (a Approval) Question() string { return a.note.Question }

// approvalNote is the bucket's record of an approval, written before the answer and kept until the outcome is known.
type approvalNote struct {
	Reference    string    `json:"reference"`
	Tool         string    `json:"tool"`
	Session      string    `json:"session"`
	User         string    `json:"user,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	ApprovedAt   time.Time `json:"approved_at"`
	Told         bool      `json:"told,omitempty"`
	// Action is the ledger key; empty without side effects.
	Action string `json:"deed,omitempty"`
	// Question is the key of its confirmation, a hash. Process is the process that accepted the answer.
	Question string `json:"question"`
	Process  string `json:"process"`
}

// Approvals stores the approved actions with unknown outcome, as long as the ledger remembers.
type Approvals struct {
	// Immutable.
	bucket    *bucket
	ledger    *bucket
	questions *bucket
	life      time.Duration
	process   string // this process's ID
	alone     bool   // no other process uses the store
}

// approvalKey begins with the conversation, so that its approvals can be listed.
func approvalKey(conversation, session, reference string) string {
	return keyOf(conversation) + "." + keyOf(session+"\x00"+reference)
}

// note records an approval of the question with that name, which is about to be stored. If the process is killed in
// between, Open recognises the stale note.
func (a *Approvals) note(ctx context.Context, name string, question Confirmation, now time.Time) error {
	data, err := encode(approvalNote{
		Reference: question.Reference, Tool: question.Tool, Session: question.Session, User: question.User, Agent: question.Agent,
		Conversation: question.Conversation, ApprovedAt: now.UTC(), Action: question.Action, Question: name,
		Process: a.process,
	})
	if err != nil {
		return err
	}
	w := &write{data: data, ttl: a.life}
	_, err = a.bucket.set(ctx, approvalKey(question.Conversation, question.Session, question.Reference), w, 0,
		func(h held) (*write, error) {
			// The note belongs to an answer that wasn't stored, by this process or one that may have been killed.
			if old, err := decodeApproval(h.data); h.exists() && err == nil && old.Process == a.process {
				return nil, nil
			}
			return w, nil
		})
	return err
}

// Settle removes an approval whose outcome is known. It may be called again.
func (a *Approvals) Settle(ctx context.Context, conversation, session, reference string) error {
	_, err := a.bucket.change(ctx, approvalKey(conversation, session, reference), removal)
	return err
}

// Told records that an approval's conversation was informed; one with a Result is removed. ErrChanged means that
// another caller recorded it or the outcome is known by now.
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

// Open returns the approvals with unknown outcome, oldest first, without those accepted by this process and those
// another gateway may be working on.
func (a *Approvals) Open(ctx context.Context, now time.Time) ([]Approval, error) {
	all, err := a.open(ctx, ">", now)
	return slices.DeleteFunc(all, func(a Approval) bool { return a.Result != nil }), err
}

// OpenIn returns a conversation's approvals that its model may not know: those of Open, and unsettled ones with a
// Result, of any process. Another goroutine may be informing the model now; Conversation.HasOutcome reports whether it
// did.
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

func (a *Approvals) look(ctx context.Context, key string, now time.Time) (Approval, bool, error) {
	note, h, err := read(ctx, a.bucket, key, decodeApproval)
	switch {
	case errors.Is(err, errNone):
		return Approval{}, false, nil
	case errors.Is(err, ErrCorrupt):
		a.bucket.store.log.Warn("store_approval_unreadable", "key", key, "error", err)
		return Approval{}, false, nil
	case err != nil:
		return Approval{}, false, err
	}
	question, err := related(ctx, a.questions, note.Question, decodeConfirmation)
	if err != nil {
		return Approval{}, false, err
	}
	var entry *Entry
	if note.Action != "" {
		entry, err = related(ctx, a.ledger, keyOf(note.Action), func(data []byte) (Entry, error) { return decodeEntry(held{data: data}) })
		if err != nil {
			return Approval{}, false, err
		}
	}
	approval := Approval{
		Reference: note.Reference, Tool: note.Tool, Session: note.Session, User: note.User, Agent: note.Agent,
		Conversation: note.Conversation, ApprovedAt: note.ApprovedAt, Begun: entry != nil, Told: note.Told, note: note, held: h,
	}
	if note.finished(question, entry) {
		approval.Result, approval.Told = entry.Envelope, false // the conversation doesn't know this outcome
		return approval, true, nil
	}
	return approval, note.open(question, entry, a.process, a.alone, now), nil
}

// related returns a record of another bucket; nil if it is missing or unreadable.
func related[T any](ctx context.Context, b *bucket, key string, decode func([]byte) (T, error)) (*T, error) {
	record, _, err := read(ctx, b, key, decode)
	switch {
	case errors.Is(err, errNone), errors.Is(err, ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &record, nil
}

func (n approvalNote) finished(question *Confirmation, entry *Entry) bool {
	return entry != nil && entry.State == Done && (question == nil || question.Outcome == Approved)
}

// open reports whether an action's outcome is unknown, given its confirmation and ledger entry, each nil if missing or
// unreadable. alone means that no other process uses the store.
func (n approvalNote) open(question *Confirmation, entry *Entry, process string, alone bool, now time.Time) bool {
	switch {
	case n.Process == process:
		return false
	case question != nil && question.Outcome != Approved:
		return false // killed before recording the answer, or another answer came first
	case entry != nil && entry.State == Done:
		return false
	case alone:
		return true
	case entry != nil:
		return !now.Before(entry.LeaseUntil)
	}
	return !now.Before(n.ApprovedAt.Add(approvalGrace))
}

func decodeApproval(data []byte) (approvalNote, error) {
	wrong := "an approval without a reference, a session, a tool or a question"
	return decodeAs(data, decode, wrong, func(n approvalNote) bool {
		return n.Reference != "" && n.Session != "" && n.Tool != "" && n.Question != ""
	})
}

package store

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// approve records a question about a side effect, in a conversation, and its approval.
func approve(t *testing.T, s *Store, token, conversation string) Confirmation {
	t.Helper()
	q := Confirmation{
		Token: token, Reference: "REF" + token, Session: "s-" + token, User: "ada", Conversation: conversation, Tool: "pay",
		Action: "deed-" + token, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
	if err := s.Confirmations.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	q, err := s.Confirmations.Resolve(t.Context(), token, "", true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// references are those of the open approvals, of one conversation unless it is empty.
func references(t *testing.T, s *Store, conversation string, now time.Time) (out []string) {
	t.Helper()
	var open []Approval
	var err error
	if conversation == "" {
		open, err = s.Approvals.Open(t.Context(), now)
	} else {
		open, err = s.Approvals.OpenIn(t.Context(), conversation, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range open {
		out = append(out, a.Reference)
	}
	return out
}

func sameTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// TestApprovalsLeftOpen: a call approved before the gateway was killed is open afterwards, unless its outcome is
// known; and once its conversation was informed, that is permanent.
func TestApprovalsLeftOpen(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "data")}
	s := openTest(t, o)
	approve(t, s, "neverbegun", "c1")
	begun, done := approve(t, s, "begun", "c1"), approve(t, s, "done", "c2")
	settled := approve(t, s, "settled", "c1")
	for _, q := range []Confirmation{begun, done, settled} {
		e, fresh, err := s.Ledger.Reserve(t.Context(), Reservation{Key: q.Action, Tool: q.Tool, Session: q.Session, Lease: time.Hour})
		if err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		if q.Token == "done" {
			if err := s.Ledger.Finish(t.Context(), e, json.RawMessage(`{"ok":true}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := s.Approvals.Settle(t.Context(), "c1", settled.Session, settled.Reference); err != nil {
			t.Fatal(err)
		}
	}
	denied := Confirmation{Token: "denied", Reference: "R", Session: "s", Conversation: "c1", Tool: "pay", ExpiresAt: time.Now().Add(time.Minute)}
	if err := s.Confirmations.Create(t.Context(), denied); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirmations.Resolve(t.Context(), "denied", "", false, time.Now()); err != nil {
		t.Fatal(err)
	}
	// Killed between the note and the answer: it was never approved.
	unanswered := Confirmation{Token: "unanswered", Reference: "U", Session: "s", Conversation: "c1", Tool: "pay", ExpiresAt: time.Now().Add(time.Minute)}
	if err := s.Confirmations.Create(t.Context(), unanswered); err != nil {
		t.Fatal(err)
	}
	if err := s.Approvals.note(t.Context(), QuestionName(unanswered.Token), unanswered, time.Now()); err != nil {
		t.Fatal(err)
	}
	sameTexts(t, "while this process runs it", references(t, s, "", time.Now()))
	sameTexts(t, "of the conversation, while this process runs it", references(t, s, "c1", time.Now()))
	sameTexts(t, "of the other one, where it is done", references(t, s, "c2", time.Now()), "REFdone")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openTest(t, o)
	sameTexts(t, "after it", references(t, s, "", time.Now()), "REFneverbegun", "REFbegun")
	if _, err := s.Confirmations.Resolve(t.Context(), "unanswered", "", true, time.Now()); err != nil {
		t.Fatal(err)
	}
	sameTexts(t, "after this process took the answer", references(t, s, "", time.Now()), "REFneverbegun", "REFbegun")
	// An approval with a known outcome is not open, but its conversation may not be informed yet.
	finished, err := s.Approvals.OpenIn(t.Context(), "c2", time.Now())
	if err != nil || len(finished) != 1 || string(finished[0].Result) != `{"ok":true}` || finished[0].Question() != QuestionName("done") || finished[0].Told {
		t.Fatalf("%+v %v", finished, err)
	}
	for range 2 {
		if err := s.Approvals.Told(t.Context(), finished[0]); err != nil {
			t.Fatal(err)
		}
	}
	sameTexts(t, "of the other conversation, once informed", references(t, s, "c2", time.Now()))
	open, err := s.Approvals.OpenIn(t.Context(), "c1", time.Now())
	if err != nil || len(open) != 2 || open[0].Begun || !open[1].Begun || open[0].Told || open[0].User != "ada" || open[0].Tool != "pay" || open[0].ApprovedAt.IsZero() {
		t.Fatalf("%+v %v", open, err)
	}
	if err := s.Approvals.Told(t.Context(), open[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Approvals.Told(t.Context(), open[0]); !errors.Is(err, ErrChanged) {
		t.Errorf("marked twice: %v", err)
	}
	if open, err = s.Approvals.Open(t.Context(), time.Now()); err != nil || len(open) != 2 || !open[0].Told || open[1].Told {
		t.Errorf("after one was marked: %+v %v", open, err)
	}
}

// TestApprovalsOfAnotherGateway: a call approved by another gateway on the same store may run there, as long as its
// reservation lasts.
func TestApprovalsOfAnotherGateway(t *testing.T) {
	address := startJetStream(t).ClientURL()
	a, b := openTest(t, Options{URL: address}), openTest(t, Options{URL: address})
	begun := approve(t, a, "begun", "c1")
	approve(t, a, "neverbegun", "c1")
	now := time.Now()
	if _, _, err := a.Ledger.Reserve(t.Context(), Reservation{Key: begun.Action, Tool: "pay", Session: "s", Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	sameTexts(t, "at once", references(t, b, "c1", now))
	sameTexts(t, "after the time to reach the ledger", references(t, b, "c1", now.Add(2*approvalGrace)), "REFneverbegun")
	sameTexts(t, "after its reservation", references(t, b, "c1", now.Add(2*time.Hour)), "REFbegun", "REFneverbegun")
	sameTexts(t, "on the gateway itself", references(t, a, "c1", now.Add(2*time.Hour)))
}

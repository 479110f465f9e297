package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/witness"
)

// The model of side effects: conversations ask for one side effect, with or without an approval, while gateways are
// killed at any step and a disk loses records. It uses the gateway's calls.Book, found, record and actionKey;
// docs/models.md lists what it leaves out.

// effectState is the whole state.
type effectState struct {
	sessions [2]effectSession
	ledger   effectStream
	question effectQuestion
	api      effectAPI

	effects  int8 // times it happened, since its record began to live
	happened bool // it has happened, at any time
	acked    bool // a caller was informed that it was done
	called   int8 // by the models, so far
	// crashes, losses, failures and expiries are numbers of events.
	crashes, losses, failures, expiries int8
}

// effectSession is a conversation, on its gateway.
type effectSession struct {
	down    bool
	refuses bool // the gateway does not start: its store is damaged
	history [effectHistory]effectOp
	calls   [effectCalls]effectCall
	answer  effectAnswer // of the client to the question
}

// The limits of a conversation.
const (
	effectCalls   = 3
	effectHistory = 7 // operations of a Book
)

// effectCall is a call in progress.
type effectCall struct {
	phase   effectPhase
	seq     int8 // of its reservation
	outcome effectOutcome
}

type effectPhase int8

// The phases of a call. A call that has joined another has none of its own.
const (
	idle effectPhase = iota
	asking
	toReserve
	reserving // its reservation is in the stream, not in the mark
	reserved
	ran
	recording // its outcome is in the stream, not in the mark
	recorded
)

// effectOp is an operation of a Book.
type effectOp struct {
	kind    effectOpKind
	call    int8 // of the conversation; for a call, the number of the provider's id
	outcome effectOutcome
}

type effectOpKind int8

const (
	opCalled effectOpKind = iota + 1
	opAsked
	opConfirmed
	opFinished
)

type effectOutcome int8

// The outcomes of a call.
const (
	did         effectOutcome = iota + 1
	didNot                    // nothing was changed
	didInPart                 // it may have been done
	saidDone                  // the ledger says that it was done
	saidInDoubt               // the ledger does not know
	notRecorded               // the reservation could not be recorded
)

type effectEntry int8

// The state of the side effect in a stream.
const (
	absent effectEntry = iota
	pending
	finished
	freed // the note that a reservation was released
)

// effectStream is the ledger on disk: the record of the side effect, and another one. Records are numbered from 1.
type effectStream struct {
	entry, before  effectEntry // before is the replaced record, which damage may restore
	seq, beforeSeq int8
	other          int8 // the other record's number; 0 for none
	last           int8 // the newest number
	mark           effectMark
	lost           bool // a record within the mark was lost: for the promises only
}

// effectMark is stored outside the stream: it lists the records that must exist.
type effectMark struct {
	last, seq, other int8
	entry            effectEntry // the content of record seq
	going            bool        // it is being released
}

type effectAnswer int8

// The states of an answer to the question.
const (
	unanswered effectAnswer = iota
	approving
	declining
	answered
)

// effectQuestion is the question in the store.
type effectQuestion struct {
	created bool
	outcome effectAnswer // unanswered, approving for approved, declining for declined
	ever    bool         // an approval was accepted
}

// effectAPI is an approval by the API.
type effectAPI struct {
	answer effectAnswer
	call   effectCall
}

// effectModel is the model, and its limits.
type effectModel struct {
	confirm bool // the side effect needs an approval
	cluster bool // the conversations are on two gateways, which share a store
	// judge compares the stream with the mark at start: witness.Judge, or the faulty version before it.
	judge func(witness.Known, map[witness.Bucket]witness.Held, time.Time) witness.Verdict
	only  string // the promise to check; all of them if it is empty

	calls, crashes, losses, failures, expiries int8

	tools  *registry.Snapshot
	enters map[effectOutcome]effectEnters
	finds  map[effectEntry]effectOutcome
	books  map[[effectHistory]effectOp]effectBook
}

// effectBook is a Book's response to its last operation.
type effectBook struct {
	runs, asks bool // the call is to run, or the user to be asked
	good       bool // one of the answers is: it was done
}

// effectEnters is the entry in the ledger for a call that has run.
type effectEnters int8

const (
	leaves effectEnters = iota
	finishes
	releases
)

// asksLedger records its requests.
type asksLedger struct {
	key   string
	asked effectEnters
}

func (l *asksLedger) Reserve(_ context.Context, r store.Reservation) (store.Entry, bool, error) {
	l.key = r.Key
	return store.Entry{Reservation: r, State: store.Pending}, true, nil
}

func (l *asksLedger) Finish(context.Context, store.Entry, json.RawMessage) error {
	l.asked = finishes
	return nil
}

func (l *asksLedger) Release(context.Context, store.Entry) error {
	l.asked = releases
	return nil
}

const effectReference = "REF234"

func (m *effectModel) tool() string {
	if m.confirm {
		return "pay"
	}
	return "book"
}

func effectArgs() json.RawMessage { return json.RawMessage(`{"name":"Ada","time":"noon"}`) }

// learn gets the decision for each outcome and entry from the gateway's own code.
func (m *effectModel) learn(t *testing.T) {
	t.Helper()
	m.tools = load(t, func(context.Context, call) (registry.Result, error) { return registry.Result{Data: "done"}, nil }, entries()...)
	m.enters, m.finds, m.books = map[effectOutcome]effectEnters{}, map[effectEntry]effectOutcome{}, map[[effectHistory]effectOp]effectBook{}
	p, refused := m.tools.Prepare(m.tool(), spec.ModeVoice, effectArgs())
	if refused != nil {
		t.Fatal(refused)
	}
	ledger := &asksLedger{}
	e := New(Options{Ledger: ledger})
	defer e.Close()
	j := calls.Run{Call: "c0", Turn: 1, Prepared: p, Keys: calls.Keys{Business: p.BusinessKey()}}
	for _, o := range []effectOutcome{did, didNot, didInPart} {
		ledger.asked = leaves
		e.record(store.Entry{}, o.envelope(), j, registry.Session{})
		m.enters[o] = ledger.asked
	}
	for entry, state := range map[effectEntry]store.EntryState{pending: store.Pending, finished: store.Done} {
		env := e.found(t.Context(), store.Entry{State: state, Envelope: did.envelope().Encode()}, j)
		m.finds[entry] = outcomeOfEnvelope(env)
	}
	m.sameNames(t, e, ledger, j)
}

// sameNames checks the model's assumption that all callers use the same key for the side effect in the ledger.
func (m *effectModel) sameNames(t *testing.T, e *Executor, ledger *asksLedger, j calls.Run) {
	t.Helper()
	if !m.confirm {
		if a, b := actionKey(j, registry.Session{ID: "s0", UserID: "ada"}), actionKey(j, registry.Session{ID: "s1", UserID: "ada"}); a != b {
			t.Fatalf("two conversations have the keys %s and %s", a, b)
		}
		return
	}
	j.Keys = calls.ApprovedKeys(effectReference, j.Prepared.BusinessKey())
	inSession := actionKey(j, registry.Session{ID: "s0", UserID: "ada"})
	_, _ = e.RunStored(t.Context(), "call_1", m.tools, store.Confirmation{
		Session: "s0", User: "ada", Mode: string(spec.ModeVoice), Reference: effectReference, Tool: m.tool(),
		ToolVersion: j.Prepared.Tool().Version, Args: j.Prepared.Args(), Turn: 1,
	}, Conversation{})
	if ledger.key != inSession {
		t.Fatalf("the API's key is %q, the conversation's %q", ledger.key, inSession)
	}
}

// envelope is an answer with that outcome.
func (o effectOutcome) envelope() registry.Envelope {
	switch o {
	case did:
		return registry.Envelope{OK: true, Data: json.RawMessage(`"done"`)}
	case saidDone:
		return registry.Envelope{OK: true, Data: json.RawMessage(`"done"`), Meta: registry.Meta{CacheHit: true}}
	case didInPart, saidInDoubt:
		return registry.Envelope{Error: &registry.Error{Type: registry.ErrorConflict, PartialSideEffects: true}}
	}
	return registry.Envelope{Error: &registry.Error{Type: registry.ErrorTransient, Retryable: true}}
}

func outcomeOfEnvelope(env registry.Envelope) effectOutcome {
	switch {
	case env.OK && env.Meta.CacheHit:
		return saidDone
	case env.OK:
		return did
	case env.Error.PartialSideEffects:
		return saidInDoubt
	}
	return didNot
}

// apply applies an operation to the Book of a conversation, and its response to the state. It reports false at the
// limits.
func (m *effectModel) apply(s *effectState, i int, op effectOp) bool {
	c := &s.sessions[i]
	at, calls := slices.Index(c.history[:], effectOp{}), 0
	for _, before := range c.history {
		if before.kind == opCalled || before.kind == opConfirmed {
			calls++
		}
	}
	begins := op.kind == opCalled || op.kind == opConfirmed
	if at < 0 || begins && calls == effectCalls {
		return false
	}
	c.history[at] = op
	said := m.ask(c.history)
	switch {
	case begins && said.runs:
		c.calls[calls].phase = toReserve
	case begins && said.asks:
		c.calls[calls].phase = asking
	}
	s.acked = s.acked || said.good
	return true
}

// ask returns the response of a new Book to the last of these operations.
func (m *effectModel) ask(history [effectHistory]effectOp) effectBook {
	if said, known := m.books[history]; known {
		return said
	}
	book := calls.New(m.tools, &calls.Rules{Tools: calls.Policy{Mode: spec.ModeVoice}, Prefix: "c"})
	var said effectBook
	var approved calls.Approved
	for _, op := range history {
		if op.kind == 0 {
			break
		}
		var do []calls.Action
		switch op.kind {
		case opCalled:
			do = book.Called(time.Time{}, calls.Called{Turn: 1, Provider: fmt.Sprintf("provider_%d", op.call), Tool: m.tool(), Args: effectArgs()})
		case opAsked:
			do = book.Recorded(time.Time{}, calls.Recorded{Call: callName(int(op.call)), Token: "token", Name: "name", Reference: effectReference})
		case opConfirmed:
			for _, a := range book.Resolved(time.Time{}, calls.Resolved{Token: "token", Outcome: calls.OutcomeApproved}) {
				approved, _ = a.(calls.Approved)
			}
			do = book.Approve(time.Time{}, 1, approved)
		case opFinished:
			do, _ = book.Finished(calls.Finished{Call: callName(int(op.call)), Envelope: op.outcome.envelope()})
		}
		said = effectBook{}
		for _, a := range do {
			switch a := a.(type) {
			case calls.Run:
				said.runs = true
			case calls.Ask:
				said.asks = true
			case calls.Answer:
				said.good = said.good || a.Envelope.OK
			}
		}
	}
	m.books[history] = said
	return said
}

func callName(n int) string { return "c" + strconv.Itoa(n+1) }

// TestModelOfSideEffects explores one gateway whose disk loses records, and two gateways on one store.
func TestModelOfSideEffects(t *testing.T) {
	for name, m := range map[string]effectModel{
		"one gateway":                    {calls: 2, crashes: 1, losses: 1, failures: 1, expiries: 1},
		"one gateway, with an approval":  {confirm: true, calls: 1, crashes: 1, losses: 1, failures: 1, expiries: 1},
		"two gateways":                   {cluster: true, calls: 2, crashes: 1, failures: 1, expiries: 1},
		"two gateways, with an approval": {cluster: true, confirm: true, calls: 1, crashes: 1, failures: 1, expiries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if testutil.Deep() {
				m.calls++
				m.crashes++
				m.losses *= 2
				if m.losses > 0 && !m.confirm {
					m.expiries = 0 // the smaller run has them
				}
			}
			m.judge = witness.Judge
			m.learn(t)
			testutil.Keeps(t, m.protocol())
		})
	}
}

// TestModelFindsTheDamage: without the comparison with the mark at start, a damaged ledger looks like a shorter one,
// and the side effect happens again.
func TestModelFindsTheDamage(t *testing.T) {
	for _, promise := range []string{neverAbsent, onceOnly} {
		overlook := func(witness.Known, map[witness.Bucket]witness.Held, time.Time) witness.Verdict {
			return witness.Verdict{}
		}
		m := effectModel{judge: overlook, only: promise, calls: 2, crashes: 1, losses: 1}
		m.learn(t)
		testutil.Breaks(t, m.protocol(), promise)
	}
}

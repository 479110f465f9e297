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

// The model of deeds: one deed that conversations ask for, with or without an approval,
// while gateways are killed at any step and a disk loses records. calls.Book, found, record
// and deed decide in it as they do in a gateway; docs/models.md says what is left out.

// deedState is the whole state.
type deedState struct {
	sessions [2]deedSession
	ledger   deedStream
	question deedQuestion
	api      deedAPI

	effects  int8 // of the deed, since its record began to live
	happened bool // it did, at any time
	acked    bool // somebody was told that it was done
	called   int8 // by the models, so far
	// crashes, losses, failures and expiries are how many there were.
	crashes, losses, failures, expiries int8
}

// deedSession is a conversation, on its gateway.
type deedSession struct {
	down    bool
	refuses bool // the gateway does not start: its store is damaged
	told    [deedHistory]deedOp
	calls   [deedCalls]deedCall
	answer  deedAnswer // of the client to the question
}

// The bounds of a conversation.
const (
	deedCalls   = 3
	deedHistory = 7 // what a Book is told
)

// deedCall is a call on its way.
type deedCall struct {
	phase   deedPhase
	seq     int8 // of its reservation
	outcome deedOutcome
}

type deedPhase int8

// The phases of a call. One that has joined another has none of its own.
const (
	idle deedPhase = iota
	asking
	toReserve
	reserving // its reservation is in the stream, and the mark does not cover it yet
	reserved
	ran
	recording // what came of it is in the stream, and the mark does not cover it yet
	recorded
)

// deedOp is what a Book was told.
type deedOp struct {
	kind    deedOpKind
	call    int8 // of the conversation; of a call, the number of the provider's id
	outcome deedOutcome
}

type deedOpKind int8

const (
	opCalled deedOpKind = iota + 1
	opAsked
	opConfirmed
	opFinished
)

type deedOutcome int8

// What comes of a call.
const (
	did         deedOutcome = iota + 1
	didNot                  // nothing was changed
	didInPart               // it may have been done
	saidDone                // the ledger says that it was done
	saidInDoubt             // the ledger says that nobody knows
	notRecorded             // the reservation could not be recorded
)

type deedEntry int8

// What a stream holds of the deed.
const (
	absent deedEntry = iota
	pending
	finished
	freed // the note that a reservation was given back
)

// deedStream is the ledger on its disk: the record of the deed, and a neighbour's. Records
// are numbered from 1.
type deedStream struct {
	entry, before  deedEntry // before is what the record has replaced, and damage may bring back
	seq, beforeSeq int8
	other          int8 // the neighbour's number; 0 for none
	last           int8 // the newest number
	mark           deedMark
	lost           bool // the record of a deed that the mark covers was lost: only the promises look at it
}

// deedMark is what is kept beside the stream: which records there must be.
type deedMark struct {
	last, seq, other int8
	entry            deedEntry // what the record of seq says
	going            bool      // it is being given back
}

type deedAnswer int8

// What becomes of an answer to the question.
const (
	unanswered deedAnswer = iota
	approving
	declining
	answered
)

// deedQuestion is the question in the store.
type deedQuestion struct {
	created bool
	outcome deedAnswer // unanswered, approving for approved, declining for declined
	ever    bool       // somebody's approval was taken
}

// deedAPI is an approval by the API.
type deedAPI struct {
	answer deedAnswer
	call   deedCall
}

// deedModel is what is explored, and its bounds.
type deedModel struct {
	confirm bool // the deed needs an approval
	cluster bool // the conversations are on two gateways, which share a store
	// judge compares the stream with the mark at start: witness.Judge, but for the fault of
	// before it.
	judge func(witness.Known, map[witness.Bucket]witness.Held, time.Time) witness.Verdict
	only  string // the promise that is looked at; all of them if it is empty

	calls, crashes, losses, failures, expiries int8

	tools  *registry.Snapshot
	enters map[deedOutcome]deedEnters
	finds  map[deedEntry]deedOutcome
	books  map[[deedHistory]deedOp]deedBook
}

// deedBook is what a Book has said to what it was told last.
type deedBook struct {
	runs, asks bool // the call is to run, or the user to be asked
	good       bool // one of the answers is: it was done
}

// deedEnters is what the ledger is told of a call that has run.
type deedEnters int8

const (
	leaves deedEnters = iota
	finishes
	releases
)

// asksLedger notes what it is asked.
type asksLedger struct {
	key   string
	asked deedEnters
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

const deedReference = "REF234"

func (m *deedModel) tool() string {
	if m.confirm {
		return "pay"
	}
	return "book"
}

func deedArgs() json.RawMessage { return json.RawMessage(`{"name":"Ada","time":"noon"}`) }

// learn asks the gateway's own code what it decides of each outcome and entry.
func (m *deedModel) learn(t *testing.T) {
	t.Helper()
	m.tools = load(t, func(context.Context, call) (registry.Result, error) { return registry.Result{Data: "done"}, nil }, entries()...)
	m.enters, m.finds, m.books = map[deedOutcome]deedEnters{}, map[deedEntry]deedOutcome{}, map[[deedHistory]deedOp]deedBook{}
	p, refused := m.tools.Prepare(m.tool(), spec.ModeVoice, deedArgs())
	if refused != nil {
		t.Fatal(refused)
	}
	ledger := &asksLedger{}
	e := New(Options{Ledger: ledger})
	defer e.Close()
	j := calls.Run{Call: "c0", Turn: 1, Prepared: p, Keys: calls.Keys{Business: p.BusinessKey()}}
	for _, o := range []deedOutcome{did, didNot, didInPart} {
		ledger.asked = leaves
		e.record(store.Entry{}, o.envelope(), j, registry.Session{})
		m.enters[o] = ledger.asked
	}
	for entry, state := range map[deedEntry]store.EntryState{pending: store.Pending, finished: store.Done} {
		env := e.found(t.Context(), store.Entry{State: state, Envelope: did.envelope().Encode()}, j)
		m.finds[entry] = outcomeOfEnvelope(env)
	}
	m.sameNames(t, e, ledger, j)
}

// sameNames checks that all who ask for the deed call it by the same name in the ledger, as
// the model takes for granted.
func (m *deedModel) sameNames(t *testing.T, e *Executor, ledger *asksLedger, j calls.Run) {
	t.Helper()
	if !m.confirm {
		if a, b := actionKey(j, registry.Session{ID: "s0", UserID: "ada"}), actionKey(j, registry.Session{ID: "s1", UserID: "ada"}); a != b {
			t.Fatalf("two conversations call the deed %s and %s", a, b)
		}
		return
	}
	j.Keys = calls.ApprovedKeys(deedReference, j.Prepared.BusinessKey())
	inSession := actionKey(j, registry.Session{ID: "s0", UserID: "ada"})
	_, _ = e.RunStored(t.Context(), "call_1", m.tools, store.Confirmation{
		Session: "s0", User: "ada", Mode: string(spec.ModeVoice), Reference: deedReference, Tool: m.tool(),
		ToolVersion: j.Prepared.Tool().Version, Args: j.Prepared.Args(), Turn: 1,
	}, Conversation{})
	if ledger.key != inSession {
		t.Fatalf("the API calls the deed %q, the conversation %q", ledger.key, inSession)
	}
}

// envelope is an answer with that outcome.
func (o deedOutcome) envelope() registry.Envelope {
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

func outcomeOfEnvelope(env registry.Envelope) deedOutcome {
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

// tell tells the Book of a conversation, and lets what it says happen. It reports false where
// the bounds are reached.
func (m *deedModel) tell(s *deedState, i int, op deedOp) bool {
	c := &s.sessions[i]
	at, calls := slices.Index(c.told[:], deedOp{}), 0
	for _, before := range c.told {
		if before.kind == opCalled || before.kind == opConfirmed {
			calls++
		}
	}
	begins := op.kind == opCalled || op.kind == opConfirmed
	if at < 0 || begins && calls == deedCalls {
		return false
	}
	c.told[at] = op
	said := m.ask(c.told)
	switch {
	case begins && said.runs:
		c.calls[calls].phase = toReserve
	case begins && said.asks:
		c.calls[calls].phase = asking
	}
	s.acked = s.acked || said.good
	return true
}

// ask brings a new Book to where it was told all this, and says what it said to the last.
func (m *deedModel) ask(told [deedHistory]deedOp) deedBook {
	if said, known := m.books[told]; known {
		return said
	}
	book := calls.New(m.tools, &calls.Rules{Tools: calls.Policy{Mode: spec.ModeVoice}, Prefix: "c"})
	var said deedBook
	var approved calls.Approved
	for _, op := range told {
		if op.kind == 0 {
			break
		}
		var do []calls.Action
		switch op.kind {
		case opCalled:
			do = book.Called(time.Time{}, calls.Called{Turn: 1, Provider: fmt.Sprintf("provider_%d", op.call), Tool: m.tool(), Args: deedArgs()})
		case opAsked:
			do = book.Recorded(time.Time{}, calls.Recorded{Call: callName(int(op.call)), Token: "token", Name: "name", Reference: deedReference})
		case opConfirmed:
			for _, a := range book.Resolved(time.Time{}, calls.Resolved{Token: "token", Outcome: calls.OutcomeApproved}) {
				approved, _ = a.(calls.Approved)
			}
			do = book.Approve(time.Time{}, 1, approved)
		case opFinished:
			do, _ = book.Finished(calls.Finished{Call: callName(int(op.call)), Envelope: op.outcome.envelope()})
		}
		said = deedBook{}
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
	m.books[told] = said
	return said
}

func callName(n int) string { return "c" + strconv.Itoa(n+1) }

// TestModelOfDeeds explores deeds: within one gateway whose disk loses records, and with two
// gateways on one store.
func TestModelOfDeeds(t *testing.T) {
	for name, m := range map[string]deedModel{
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
					m.expiries = 0 // which the small one has
				}
			}
			m.judge = witness.Judge
			m.learn(t)
			testutil.Keeps(t, m.protocol())
		})
	}
}

// TestModelFindsWhatTheMarkMends: before the mark was compared at start, a damaged ledger was
// taken for a shorter one, and the deed was done again.
func TestModelFindsWhatTheMarkMends(t *testing.T) {
	for _, promise := range []string{neverAbsent, onceOnly} {
		overlook := func(witness.Known, map[witness.Bucket]witness.Held, time.Time) witness.Verdict {
			return witness.Verdict{}
		}
		m := deedModel{judge: overlook, only: promise, calls: 2, crashes: 1, losses: 1}
		m.learn(t)
		testutil.Breaks(t, m.protocol(), promise)
	}
}

package openai

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seqStep is one event for the sequencer, and the request that must be sent then.
type seqStep struct {
	do   func(*sequencer) *create
	want string // event_id of the request, empty for none
}

// seqEpoch is the start of every test of the sequencer, seqClock its clock.
var (
	seqEpoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seqClock = seqEpoch
)

func asks(r request) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.ask(r, seqClock, 0) }
}

func begins(id string) func(*sequencer) *create { return answers(id, "") }

// answers begins a wanted response with the label of a request.
func answers(id, label string) func(*sequencer) *create {
	return func(s *sequencer) *create {
		if s.created(id, label, seqClock) {
			return &create{event: id + " is stale"}
		}
		return nil
	}
}

// answersStale begins an unwanted response.
func answersStale(id, label string) func(*sequencer) *create {
	return func(s *sequencer) *create {
		if !s.created(id, label, seqClock) {
			return &create{event: id + " is not stale"}
		}
		return nil
	}
}

func ends(id string) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.done(id, false, seqClock) }
}

func endsBySpeech(id string) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.done(id, true, seqClock) }
}

func refuses(event, code string) func(*sequencer) *create {
	return func(s *sequencer) *create { send, _ := s.refused(event, code, seqClock); return send }
}

func withdraws(s *sequencer) *create { s.withdraw(seqClock); return nil }

func changes(s *sequencer) *create { s.changed(); return nil }

// after advances time and, like the connection's timer, calls the sequencer at its deadline.
func after(d time.Duration) func(*sequencer) *create { return afterSigns(d, 0) }

// afterSigns is after with that many response events so far.
func afterSigns(d time.Duration, signs int64) func(*sequencer) *create {
	return func(s *sequencer) (sent *create) {
		until := seqClock.Add(d)
		for at := s.deadline(); !at.IsZero() && !at.After(until); at = s.deadline() {
			if at.After(seqClock) {
				seqClock = at
			}
			if c := s.due(seqClock, signs); c != nil {
				sent = c
			}
			if next := s.deadline(); !next.IsZero() && !next.After(at) {
				return &create{event: "a deadline that stays"}
			}
		}
		seqClock = until
		return sent
	}
}

func TestSequencer(t *testing.T) {
	var plain request
	tests := []struct {
		name  string
		steps []seqStep
	}{
		{"idle: at once", []seqStep{{asks(plain), "create_1"}}},
		{"one at a time while unconfirmed", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {begins("r1"), ""}, {asks(plain), ""},
			{ends("r1"), "create_2"}, {begins("r2"), ""}, {ends("r2"), ""},
		}},
		{"waits for a response that the provider began", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {ends("r1"), "create_1"},
		}},
		{"the end of another response does not count", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {ends("r0"), ""}, {ends("r1"), "create_1"},
		}},
		{"refused for an active response: again at its end", []seqStep{
			{asks(plain), "create_1"}, {begins("vad"), ""}, {refuses("create_1", codeActiveResponse), ""},
			{ends("vad"), "create_2"},
		}},
		{"refused before that response was seen", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""},
			{begins("vad"), ""}, {ends("vad"), "create_2"},
		}},
		{"refused without an event id", []seqStep{
			{asks(plain), "create_1"}, {refuses("", codeActiveResponse), ""}, {ends("vad"), "create_2"},
		}},
		{"refused for a response that is never seen: the next request is sent", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""}, {asks(plain), "create_2"},
		}},
		{"refused permanently: the next one is sent", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {refuses("create_1", "invalid_value"), "create_2"},
		}},
		{"another's error changes nothing", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {refuses("truncate_1", "invalid_value"), ""},
		}},
		{"the user's speech answers itself", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {endsBySpeech("r1"), ""}, {begins("vad"), ""}, {ends("vad"), ""},
		}},
		{"withdrawn", []seqStep{{begins("r1"), ""}, {asks(plain), ""}, {withdraws, ""}, {ends("r1"), ""}}},
		{"a late refusal because of an old response does not count as ours", []seqStep{
			{asks(plain), "create_1"}, {begins("r1"), ""}, {ends("r1"), ""}, {refuses("", codeActiveResponse), ""},
			{asks(plain), "create_2"},
		}},
		{"no response was active: the next one is sent", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""}, {refuses("cancel_1", codeCancelLate), "create_2"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { runSteps(t, tt.steps) })
	}
}

func TestJoinedRequests(t *testing.T) {
	var s sequencer
	now := seqEpoch
	s.created("r1", "", now)
	s.ask(request{instructions: "Be kind."}, now, 0)
	s.ask(request{toolsOff: true}, now, 0)
	s.ask(request{instructions: "Be brief."}, now, 0)
	s.ask(request{instructions: "Be kind.\nBe brief."}, now, 0)
	got := s.done("r1", false, now)
	if got == nil {
		t.Fatal("no request is sent")
	}
	if diff := cmp.Diff(request{true, "Be kind.\nBe brief."}, got.request, cmp.AllowUnexported(request{})); diff != "" {
		t.Error(diff)
	}
	// A refused request is merged with the one that came after it.
	s.ask(request{instructions: "Later."}, now, 0)
	if _, absorbed := s.refused(got.event, codeActiveResponse, now); !absorbed {
		t.Error("the refusal is not absorbed")
	}
	s.created("r2", "", now)
	got = s.done("r2", false, now)
	if got == nil || got.instructions != "Be kind.\nBe brief.\nLater." || !got.toolsOff {
		t.Errorf("the repeated request is %+v", got)
	}
}

// TestCancelAfterRefusal: a cancel for a request that was refused does not affect the next response.
func TestCancelAfterRefusal(t *testing.T) {
	var s sequencer
	now := seqEpoch
	first := s.ask(request{}, now, 0)
	if _, running := s.withdraw(now); !running {
		t.Error("an unconfirmed response is not cancelled")
	}
	if _, running := s.withdraw(now); running {
		t.Error("it is cancelled twice")
	}
	s.refused(first.event, "invalid_value", now)
	s.ask(request{}, now, 0)
	s.created("r1", "", now)
	if id, running := s.withdraw(now); !running || id != "r1" {
		t.Error("the next response is not cancelled")
	}
}

// TestNoRequestWaitsForever has a row for each row of the sequencer's table, and for the late answers to abandoned
// requests.
func TestNoRequestWaitsForever(t *testing.T) {
	var plain request
	off := request{toolsOff: true}
	tests := []struct {
		name  string
		steps []seqStep
	}{
		{"an unanswered request: the waiting one is sent at its deadline", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {after(createPatience - 1), ""}, {after(1), "create_2"},
		}},
		{"an unanswered request: a later one is sent at once", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {asks(plain), "create_2"}, {after(createPatience), ""}, {asks(plain), "create_3"},
		}},
		{"its own label confirms it", []seqStep{
			{asks(plain), "create_1"}, {answers("r1", "create_1"), ""}, {asks(plain), ""}, {ends("r1"), "create_2"},
		}},
		{"of a server that repeats labels, a response without one confirms nothing", []seqStep{
			{asks(plain), "create_1"}, {answers("r1", "create_1"), ""}, {ends("r1"), ""},
			{asks(plain), "create_2"}, {answers("vad", ""), ""}, {ends("vad"), ""}, {asks(off), ""},
			{answers("r2", "create_2"), ""}, {ends("r2"), "create_3"},
		}},
		{"a refusal that names it clears it", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", "invalid_value"), ""}, {asks(plain), "create_2"},
		}},
		{"a refusal that names no event clears it", []seqStep{
			{asks(plain), "create_1"}, {refuses("", "server_error"), ""}, {asks(plain), "create_2"},
		}},
		{"a cancel that found nothing active clears it", []seqStep{
			{asks(plain), "create_1"}, {withdraws, ""}, {changes, ""}, {asks(plain), ""}, {refuses("cancel_1", codeCancelLate), "create_2"},
		}},
		{"a silent response that never ends: the waiting one is sent", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {after(silencePatience - 1), ""}, {after(1), "create_1"},
		}},
		{"a long response: the waiting one does not interrupt it", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {afterSigns(silencePatience, 1), ""}, {afterSigns(silencePatience-1, 2), ""},
			{afterSigns(silencePatience, 3), ""}, {ends("r1"), "create_1"},
		}},
		{"it was only slow: refused, it waits for the end after all", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {after(silencePatience), "create_1"},
			{refuses("create_1", codeActiveResponse), ""}, {ends("r1"), "create_2"},
		}},
		{"the server always reports an active response: retried at each deadline", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""}, {after(silencePatience), "create_2"},
			{refuses("create_2", codeActiveResponse), ""}, {after(silencePatience), "create_3"}, {answers("r1", "create_3"), ""},
		}},
		{"a cancelled response that never ends", []seqStep{
			{begins("r1"), ""}, {withdraws, ""}, {asks(plain), ""}, {after(cancelPatience - 1), ""}, {after(1), "create_1"},
		}},
		{"a request of another turn does not wait for a cancelled response that is long overdue", []seqStep{
			{begins("r1"), ""}, {withdraws, ""}, {after(cancelPatience), ""}, {asks(plain), "create_1"},
		}},
		{"an interruption drops the waiting one", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {withdraws, ""}, {after(time.Minute), ""},
		}},
		{"answered late, without new input: that is the answer", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {answers("r1", "create_1"), ""}, {ends("r1"), ""},
		}},
		{"answered late, after it was asked again: one answer, and the repeat is dropped", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {asks(plain), "create_2"}, {answers("r1", "create_1"), ""},
			{refuses("create_2", codeActiveResponse), ""}, {ends("r1"), ""},
		}},
		{"... or cancelled, if the provider answers it too", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {asks(plain), "create_2"}, {answers("r1", "create_1"), ""},
			{ends("r1"), ""}, {answersStale("r2", "create_2"), ""}, {ends("r2"), ""}, {changes, ""}, {asks(plain), "create_3"},
		}},
		{"answered late, after the conversation has continued: the new one gets its own answer", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {changes, ""}, {asks(plain), "create_2"},
			{answersStale("r1", "create_1"), ""}, {refuses("create_2", codeActiveResponse), ""}, {ends("r1"), "create_3"},
			{answers("r3", "create_3"), ""},
		}},
		{"... and does not wait for ever for the end of the stale one", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {changes, ""}, {asks(plain), "create_2"},
			{answersStale("r1", "create_1"), ""}, {refuses("create_2", codeActiveResponse), ""}, {after(cancelPatience), "create_3"},
		}},
		{"answered late during the new answer, which continues", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {changes, ""}, {asks(plain), "create_2"}, {answers("r2", "create_2"), ""},
			{answersStale("r1", "create_1"), ""}, {asks(off), ""}, {ends("r1"), ""}, {ends("r2"), "create_3"},
		}},
		{"answered after it was withdrawn: the answer is dropped", []seqStep{
			{asks(plain), "create_1"}, {withdraws, ""}, {changes, ""}, {asks(plain), ""}, {answersStale("r1", "create_1"), ""},
			{ends("r1"), "create_2"},
		}},
		{"without labels: answered late, and the repeat refused", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {asks(plain), "create_2"}, {begins("r1"), ""},
			{refuses("create_2", codeActiveResponse), ""}, {ends("r1"), ""},
		}},
		{"without labels: both are answered, one is used", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {asks(plain), "create_2"}, {begins("r1"), ""}, {ends("r1"), ""},
			{answersStale("r2", ""), ""}, {ends("r2"), ""},
		}},
		{"without labels: the answer to the user's next speech is the provider's own", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {changes, ""}, {begins("vad"), ""}, {ends("vad"), ""},
		}},
		{"refused after it was abandoned: it waits for the end of the active response", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {refuses("create_1", codeActiveResponse), ""}, {ends("r1"), "create_2"},
		}},
		{"... unless the conversation has continued", []seqStep{
			{asks(plain), "create_1"}, {after(createPatience), ""}, {changes, ""}, {refuses("create_1", codeActiveResponse), ""}, {after(time.Minute), ""},
		}},
		{"many unanswered ones", []seqStep{
			{many(1000), "create_1000"}, {answers("r", "create_1000"), ""}, {ends("r"), ""}, {asks(plain), "create_1001"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { runSteps(t, tt.steps) })
	}
}

// many asks n times, each time too late for an answer to the last one.
func many(n int) func(*sequencer) *create {
	return func(s *sequencer) (sent *create) {
		for range n {
			seqClock = seqClock.Add(createPatience)
			s.changed()
			sent = s.ask(request{}, seqClock, 0)
		}
		if len(s.late) > maxLate {
			return &create{event: "too much is remembered"}
		}
		return sent
	}
}

func runSteps(t *testing.T, steps []seqStep) {
	t.Helper()
	var s sequencer
	seqClock = seqEpoch
	for i, step := range steps {
		got := ""
		if c := step.do(&s); c != nil {
			got = c.event
		}
		if got != step.want {
			t.Fatalf("step %d sends %q, want %q", i, got, step.want)
		}
	}
}

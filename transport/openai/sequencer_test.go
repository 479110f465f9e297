package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seqStep is one thing that happens to the sequencer, and what must go out then.
type seqStep struct {
	do   func(*sequencer) *create
	want string // event_id of what goes out, empty for nothing
}

func asks(r request) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.ask(r) }
}

func begins(id string) func(*sequencer) *create {
	return func(s *sequencer) *create { s.created(id); return nil }
}

func ends(id string) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.done(id, false) }
}

func endsBySpeech(id string) func(*sequencer) *create {
	return func(s *sequencer) *create { return s.done(id, true) }
}

func refuses(event, code string) func(*sequencer) *create {
	return func(s *sequencer) *create { send, _ := s.refused(event, code); return send }
}

func withdraws(s *sequencer) *create { s.withdraw(); return nil }

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
		{"refused for a response that is never seen: the next request tries", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""}, {asks(plain), "create_2"},
		}},
		{"refused for good: the way is free", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {refuses("create_1", "invalid_value"), "create_2"},
		}},
		{"another's error changes nothing", []seqStep{
			{asks(plain), "create_1"}, {asks(plain), ""}, {refuses("truncate_1", "invalid_value"), ""},
		}},
		{"the user's speech answers itself", []seqStep{
			{begins("r1"), ""}, {asks(plain), ""}, {endsBySpeech("r1"), ""}, {begins("vad"), ""}, {ends("vad"), ""},
		}},
		{"withdrawn", []seqStep{{begins("r1"), ""}, {asks(plain), ""}, {withdraws, ""}, {ends("r1"), ""}}},
		{"a late refusal of a response long over is not taken for ours", []seqStep{
			{asks(plain), "create_1"}, {begins("r1"), ""}, {ends("r1"), ""}, {refuses("", codeActiveResponse), ""},
			{asks(plain), "create_2"},
		}},
		{"nothing was active: the way is free", []seqStep{
			{asks(plain), "create_1"}, {refuses("create_1", codeActiveResponse), ""}, {refuses("cancel_1", codeCancelLate), "create_2"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s sequencer
			for i, step := range tt.steps {
				got := ""
				if c := step.do(&s); c != nil {
					got = c.event
				}
				if got != step.want {
					t.Fatalf("step %d sends %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

func TestJoinedRequests(t *testing.T) {
	var s sequencer
	s.created("r1")
	s.ask(request{instructions: "Be kind."})
	s.ask(request{toolsOff: true})
	s.ask(request{instructions: "Be brief."})
	s.ask(request{instructions: "Be kind.\nBe brief."})
	got := s.done("r1", false)
	if got == nil {
		t.Fatal("nothing goes out")
	}
	if diff := cmp.Diff(request{true, "Be kind.\nBe brief."}, got.request, cmp.AllowUnexported(request{})); diff != "" {
		t.Error(diff)
	}
	// What is refused is joined with what came after it.
	s.ask(request{instructions: "Later."})
	if _, absorbed := s.refused(got.event, codeActiveResponse); !absorbed {
		t.Error("the refusal is not absorbed")
	}
	s.created("r2")
	got = s.done("r2", false)
	if got == nil || got.instructions != "Be kind.\nBe brief.\nLater." || !got.toolsOff {
		t.Errorf("what goes out again is %+v", got)
	}
}

// TestCancelAfterRefusal: a cancel for a request that was refused says nothing about
// the response that comes next.
func TestCancelAfterRefusal(t *testing.T) {
	var s sequencer
	first := s.ask(request{})
	if _, running := s.withdraw(); !running {
		t.Error("an unconfirmed response is not cancelled")
	}
	if _, running := s.withdraw(); running {
		t.Error("it is cancelled twice")
	}
	s.refused(first.event, "invalid_value")
	s.ask(request{})
	s.created("r1")
	if id, running := s.withdraw(); !running || id != "r1" {
		t.Error("the next response is not cancelled")
	}
}

package cost

import (
	"testing"
	"time"

	"voicegw/transport"
)

// TestEstimate: each answer reads the whole conversation; without an answer nothing was used.
func TestEstimate(t *testing.T) {
	t.Parallel()
	before := Talk{Heard: 2 * time.Second, Spoken: time.Second, Read: 40, Written: 20}
	now := Talk{Heard: 1050 * time.Millisecond, Spoken: 500 * time.Millisecond, Read: 1, Written: 5}
	want := transport.Tokens{Input: 16 + 31 + 20, InputText: 16, InputAudio: 31 + 20, Output: 12, OutputText: 2, OutputAudio: 10}
	if got := Estimate(before, now); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := UsageOf(want); got.InputText != 16 || got.InputAudio != 51 || got.OutputText != 2 || got.OutputAudio != 10 {
		t.Errorf("it is charged as %+v", got)
	}
	if got := Estimate(before, Talk{Heard: time.Second, Read: 9}); got != (transport.Tokens{}) {
		t.Errorf("without an answer %+v", got)
	}
}

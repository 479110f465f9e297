package endvoicesession

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
	"voicegw/registry/registrytest"
)

// TestEnd: after the farewell if there is one, otherwise with the turn.
func TestEnd(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		args Args
		want Output
	}{
		"with a farewell": {Args{Reason: ArgsReasonUserGoodbye, FarewellMessage: text(" Goodbye! ")}, Output{"user_goodbye", "Goodbye!", OutputEndsAfterFarewellSpoken}},
		"without":         {Args{Reason: ArgsReasonInactivity}, Output{"inactivity", "", OutputEndsAfterCurrentTurn}},
		"a blank one":     {Args{Reason: ArgsReasonOther, FarewellMessage: text("  ")}, Output{"other", "", OutputEndsAfterCurrentTurn}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: tc.args})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, result.Data); diff != "" {
				t.Error(diff)
			}
			registrytest.Fits(t, "end-voice-session", result.Data)
			intents := []registry.Intent{{Type: registry.IntentEndVoiceSession, After: registry.EndAfter(tc.want.EndsAfter)}}
			if diff := cmp.Diff(intents, result.Intents); diff != "" {
				t.Error(diff)
			}
		})
	}
}

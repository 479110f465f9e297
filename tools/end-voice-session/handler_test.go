package endvoicesession

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
)

// TestEnd: after the farewell where there is one, else with the turn.
func TestEnd(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		args Args
		want Answer
	}{
		"with a farewell": {Args{Reason: ArgsReasonUserGoodbye, FarewellMessage: text(" Goodbye! ")}, Answer{"user_goodbye", "Goodbye!", registry.EndAfterFarewellSpoken}},
		"without":         {Args{Reason: ArgsReasonInactivity}, Answer{"inactivity", "", registry.EndAfterCurrentTurn}},
		"a blank one":     {Args{Reason: ArgsReasonOther, FarewellMessage: text("  ")}, Answer{"other", "", registry.EndAfterCurrentTurn}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: tc.args})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, result.Data); diff != "" {
				t.Error(diff)
			}
			intents := []registry.Intent{{Type: registry.IntentEndVoiceSession, After: tc.want.EndsAfter}}
			if diff := cmp.Diff(intents, result.Intents); diff != "" {
				t.Error(diff)
			}
		})
	}
}

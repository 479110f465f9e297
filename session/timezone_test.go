package session

import (
	"testing"
	"testing/synctest"

	"voicegw/prompts"
	"voicegw/registry"
)

// TestTimeZoneIsInThePrompt: the user's time zone is in the system text; an unknown zone is refused with the field's
// name.
func TestTimeZoneIsInThePrompt(t *testing.T) {
	for _, tt := range []struct{ field, want string }{
		{`,"time_zone":"Asia/Kolkata"`, "zone Asia/Kolkata"},
		{``, "zone "},
	} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, hearing, func(o *Options) {
				o.Instructions = func(_ *Agent, _ *registry.Snapshot, _ prompts.Mark, timeZone string) string {
					return "zone " + timeZone
				}
			})
			st.connect(`{"type":"session.start","input_rate":16000,"output_rate":24000` + tt.field + `}`)
			if got := st.fake.Accept(t).setup.Instructions; got != tt.want {
				t.Errorf("with %q the instructions are %q", tt.field, got)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.connect(`{"type":"session.start","input_rate":16000,"output_rate":24000,"time_zone":"Mars/Olympus"}`)
		synctest.Wait()
		if ref := c.last(t, "error")["ref"]; ref != "time_zone" {
			t.Errorf("the refusal is about %v", ref)
		}
	})
}

package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestRateLimitOfAUser: the limit on a tool applies to all sessions of one user together, in each window. A call over
// the limit does not run, and the model gets an error.
func TestRateLimitOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		clock := handlerFunc(func(context.Context) (registry.Result, error) { ran++; return registry.Result{Data: "done"}, nil }).bind()
		seldom := entry("clock", "1.0.0")
		seldom.RateLimit = &spec.RateLimit{Calls: 1, Window: "1h"}
		tools, err := registry.Load(registrytest.File(t, seldom), registry.Options{Handlers: map[string]registry.Handler{"clock": clock}})
		if err != nil {
			t.Fatal(err)
		}
		st := newStage(t, live, func(o *Options) { o.Tools, o.Policy.Tools.Budget = tools.Snapshot, roomy })
		for i, c := range []struct {
			user string
			want registry.ErrorType
			wait time.Duration
		}{
			{user: "ada"}, {user: "ada", want: registry.ErrorRateLimit}, {user: "eve"}, {user: "ada", wait: time.Hour + time.Second},
		} {
			pass(c.wait)
			client := st.connect(startWith(`,"client":{"id":"` + c.user + `"}`))
			model := st.fake.Accept(t)
			synctest.Wait()
			before := ran
			asked(model, "clock", "c1")
			env := results(t, model)["c1"]
			switch {
			case c.want == "":
				if !env.OK || ran != before+1 {
					t.Errorf("session %d of %s: %+v, and the tool ran %d times", i, c.user, env, ran-before)
				}
			case env.OK || env.Error.Type != c.want || ran != before:
				t.Errorf("session %d of %s: %+v, and the tool ran %d times", i, c.user, env.Error, ran-before)
			}
			client.say(`{"type":"session.end"}`)
			synctest.Wait()
		}
	})
}

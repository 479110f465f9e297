package session

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/registry"
	"voicegw/registry/registrytest"
)

// nestedNeeds are the needs of a tool that calls another one.
type nestedNeeds struct{ Tools registry.Tools }

// TestToolCallsAnother: the model gets the calling tool's result, and the audit has a record of each of the two calls.
func TestToolCallsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := registry.Bind(func(ctx context.Context, c registry.Call[noArgs, nestedNeeds]) (registry.Result, error) {
			var data string
			err := c.Needs.Tools.Call(ctx, "inner", nil).Into(&data)
			return registry.Result{Data: "it said: " + data}, err
		})
		inner := handlerFunc(func(context.Context) (registry.Result, error) { return registry.Result{Data: "hello"}, nil }).bind()
		tools, err := registry.Load(registrytest.File(t, entry("inner", "1.0.0"), entry("outer", "1.0.0")),
			registry.Options{Handlers: map[string]registry.Handler{"inner": inner, "outer": outer}, SessionCapabilities: registry.CallCapabilities()})
		if err != nil {
			t.Fatal(err)
		}
		st := newStage(t, live, func(o *Options) { o.Tools, o.Policy.Tools.Budget = tools.Snapshot, roomy })
		st.connect(startText)
		model := st.fake.Accept(t)
		synctest.Wait()
		asked(model, "outer", "c1")
		if env := results(t, model)["c1"]; !env.OK || !strings.Contains(string(env.Data), "it said: hello") {
			t.Errorf("the model got %s", env.Encode())
		}
	})
}

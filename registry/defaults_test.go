package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

// TestDefaultsAreBounded fills a list of empty objects with many defaults each.
func TestDefaultsAreBounded(t *testing.T) {
	var props []string
	for i := range 50 {
		props = append(props, fmt.Sprintf(`"p%d":{"type":"integer","default":%d}`, i, i))
	}
	schema := `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{` + strings.Join(props, ",") + `},"additionalProperties":false}}},"additionalProperties":false}`
	e := entry(t, testutil.KBSearchSchema, `toolId: "probe"`, `idempotencyKey: null`, `preview: null`, `clamp: null`, `parameters: `+schema)
	r := mustLoad(t, Options{Handlers: map[string]Handler{"probe": Bind(func(_ context.Context, _ Call[json.RawMessage, none]) (Result, error) { return Result{}, nil })}}, e)
	_, env := r.Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(`{"l":[`+strings.Repeat("{},", 1000)+`{}]}`))
	if env == nil || env.Error.Type != ErrorValidation || !strings.Contains(env.Error.Message, "1000") {
		t.Errorf("got %+v", env)
	}
	p, env := r.Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(`{"l":[{},{}]}`))
	if env != nil {
		t.Fatal(string(env.Encode()))
	}
	if diff := cmp.Diff(100, len(p.defaults)); diff != "" {
		t.Error(diff)
	}
}

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"voicegw/registry/spec"
)

// page is a client that runs tools.
type page func(ctx context.Context, call ClientCall) (json.RawMessage, error)

func (p page) RunTool(ctx context.Context, call ClientCall) (json.RawMessage, error) {
	return p(ctx, call)
}

func mustDeclare(t testing.TB, d Declared) *Tool {
	t.Helper()
	tool, problems := Declare(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return tool
}

// TestWithDeclaredTools: a client's tools are added to the registry's for voice only, and describe_tool knows them;
// the original snapshot does not change.
func TestWithDeclaredTools(t *testing.T) {
	own := kbRegistry(t).Snapshot()
	both, err := own.With([]*Tool{mustDeclare(t, Declared{Name: "openPage", Description: "Opens a page."})})
	if err != nil {
		t.Fatal(err)
	}
	if _, has := own.Tool("openPage"); has || both.Version() != own.Version() || len(both.All()) != len(own.All())+1 || len(both.Tools(spec.ModeText)) != len(own.Tools(spec.ModeText)) {
		t.Errorf("with the client's there are %d tools, without %d", len(both.All()), len(own.All()))
	}
	env := both.Execute(t.Context(), spec.DescribeTool, spec.ModeVoice, json.RawMessage(`{"tool":"openPage"}`), Session{})
	if !env.OK {
		t.Errorf("describe_tool: %s", env.Encode())
	}
	var same *SameName
	if _, err := both.With([]*Tool{mustDeclare(t, Declared{Name: "KB-search", Description: "Mine."})}); !errors.As(err, &same) || same.Other != "kb_search" {
		t.Errorf("a name that looks like another: %v", err)
	}
}

// TestAClientRuns: the client gets the call's name and valid arguments, and its answer is the result. All such tools
// share one name in the statistics.
func TestAClientRuns(t *testing.T) {
	r := kbRegistry(t)
	tools, err := r.Snapshot().With([]*Tool{mustDeclare(t, Declared{Name: "look", Description: "Looks.", ReadOnly: true,
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3}},"additionalProperties":false}`)})})
	if err != nil {
		t.Fatal(err)
	}
	session := Session{Call: "call_4", Turn: 2}
	answers := page(func(_ context.Context, call ClientCall) (json.RawMessage, error) {
		if call.ID != "call_4" || call.Turn != 2 || call.Tool != "look" || string(call.Args) != `{"n":3}` {
			t.Errorf("the client is asked %+v with %s", call, call.Args)
		}
		return json.RawMessage(`{"page": "/"}`), nil
	})
	env := tools.Execute(t.Context(), "look", spec.ModeVoice, nil, session, ClientTools(answers))
	if !env.OK || string(env.Data) != `{"page":"/"}` {
		t.Errorf("the answer is %s", env.Encode())
	}
	checkEnvelope(t, env)
	if env := tools.Execute(t.Context(), "look", spec.ModeVoice, json.RawMessage(`{"n":"x"}`), session, ClientTools(answers)); env.OK || env.Error.Type != ErrorValidation {
		t.Errorf("invalid arguments are answered with %s", env.Encode())
	}
	tools.Refuse("look", invalidArguments("look", nil))
	stats := r.Stats()
	if _, own := stats["look"]; own || stats[ClientTool].Calls != 3 || stats[ClientTool].OK != 1 {
		t.Errorf("it is counted %+v", stats)
	}
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// openPage declares a tool of the client; look declares one without side effects.
const (
	openPage = `{"name":"open_page","description":"Opens a page.","schema":{"type":"object","properties":{"path":{"type":"string","default":"/"}},"additionalProperties":false}}`
	look     = `{"name":"look","description":"Says which page is open.","read_only":true,"timeout_ms":3000}`
)

func startWithTools(tools ...string) string {
	return `{"type":"session.start","input_rate":16000,"output_rate":24000,"tools":[` + strings.Join(tools, ",") + `]}`
}

// calling begins a session whose client has tools, at a gateway with a ledger and the tool slow. The client can resume.
func calling(t *testing.T, kept *records) (*returning, *fakeConn) {
	t.Helper()
	st, _ := withTools(t, entry("slow", "1.0.0"), func(context.Context) (registry.Result, error) { return registry.Result{}, nil }, false)
	opts := *st.m.options()
	opts.Policy.ResumeGrace, opts.Audit = 30*time.Second, kept.add
	opts.Executor = execute.New(execute.Options{Ledger: &storetest.Ledger{}})
	again := newStage(t, hearing, func(o *Options) { *o = opts })
	again.fake = st.fake
	return beginsAtWith(t, again, startWithTools(openPage, look))
}

// toolRecords returns the audit records of calls.
func toolRecords(r *records) (of []audit.Record) {
	for _, one := range r.list() {
		if one.Event == audit.EventTool {
			of = append(of, one)
		}
	}
	return of
}

// calls makes the model call a tool, and returns the id of the client's tool.call.
func (r *returning) calls(model *fakeConn, tool, args string) (id string) {
	r.t.Helper()
	model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"},
		transport.ToolCall{Call: "c1", ID: "id-c1-" + tool, Name: tool, Args: json.RawMessage(args)}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
	synctest.Wait()
	m := r.conn.last(r.t, "tool.call")
	if m["name"] != tool || m["again"] != nil {
		r.t.Errorf("the client was asked %v", m)
	}
	return m["call_id"].(string)
}

func (r *returning) toolSays(id, what string) {
	r.conn.say(fmt.Sprintf(`{"type":"tool.result","call_id":%q,%s}`, id, what))
	synctest.Wait()
}

// TestClientTools: the client gets valid arguments, and the model, the client and the audit get its answer. Both forms
// of the declaration reach the model.
func TestClientTools(t *testing.T) {
	for name, tc := range map[string]struct {
		says      string
		data      string
		kind      registry.ErrorType
		message   string
		retryable bool
		partial   bool
	}{
		"a result":        {says: `"result":{"title":"Prices"}`, data: `{"title":"Prices"}`},
		"no result":       {says: `"result":null`, data: `null`},
		"no answer":       {says: `"x":1`, data: `null`},
		"a failure":       {says: `"error":{"message":"No such page."}`, kind: registry.ErrorPermanent, message: "No such page."},
		"a transient one": {says: `"error":{"message":"Busy.","retryable":true}`, kind: registry.ErrorTransient, message: "Busy.", retryable: true},
		"a partial one":   {says: `"error":{"message":"Broke off.","partial":true}`, kind: registry.ErrorPermanent, message: "Broke off.", partial: true},
		"a long result":   {says: `"result":"` + strings.Repeat("x", registry.MaxClientData) + `"`, kind: registry.ErrorPermanent, message: "The tool has run, and its answer is too long to be read.", partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept records
				r, model := calling(t, &kept)
				declared := model.Setup().Tools
				if len(declared) != 4 || declared[2].Name != "open_page" || !strings.Contains(string(declared[2].Parameters), `"path"`) {
					t.Errorf("the model got the tools %+v", declared)
				}
				id := r.calls(model, "open_page", `{}`)
				if args := r.conn.last(t, "tool.call")["args"]; fmt.Sprint(args) != "map[path:/]" {
					t.Errorf("the arguments are %v", args)
				}
				pass(time.Second)
				r.toolSays(id, tc.says)
				env := results(t, model)["c1"]
				ended := r.conn.last(t, "tool.ended")
				if env.OK != (tc.kind == "") || ended["ok"] != env.OK || ended["call_id"] != id || env.Meta.DurationMS != 1000 {
					t.Fatalf("the model got %s, and the client %v", env.Encode(), ended)
				}
				if env.OK && string(env.Data) != tc.data || !env.OK &&
					(env.Error.Type != tc.kind || env.Error.Message != tc.message || env.Error.Retryable != tc.retryable || env.Error.PartialSideEffects != tc.partial) {
					t.Errorf("the model got %s", env.Encode())
				}
				record := toolRecords(&kept)[0]
				if record.Executor != "client" || record.OK != env.OK || !record.Delivered || record.ToolID != "open_page" {
					t.Errorf("the audit has %+v", record)
				}
			})
		})
	}
}

// TestClientAnswersOnce: a late or second answer changes nothing and is not an error; an answer to an unknown call is an
// error.
func TestClientAnswersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept records
		r, model := calling(t, &kept)
		id := r.calls(model, "look", `{}`)
		pass(3 * time.Second)
		synctest.Wait()
		env := results(t, model)["c1"]
		if env.OK || env.Error.Type != registry.ErrorTransient || env.Error.PartialSideEffects {
			t.Fatalf("after its time the call is answered with %s", env.Encode())
		}
		r.toolSays(id, `"result":1`)
		r.toolSays(id, `"result":2`)
		if n := r.conn.count("error"); n != 0 {
			t.Errorf("a late answer is called an error: %v", r.conn.last(t, "error"))
		}
		r.toolSays("call_99", `"result":3`)
		if e := r.conn.last(t, "error"); e["code"] != "invalid_message" || e["ref"] != "call_id" {
			t.Errorf("an answer to nothing: %v", e)
		}
		if len(results(t, model)) != 1 || len(toolRecords(&kept)) != 1 || r.conn.count("tool.ended") != 1 {
			t.Error("the call was answered more than once")
		}
	})
}

// TestCallAcrossResume: a client that resumes is asked again for its open call, and its one answer counts. No other
// client is asked, and nothing runs twice.
func TestCallAcrossResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept records
		r, model := calling(t, &kept)
		id := r.calls(model, "open_page", `{"path":"/a"}`)
		r.read(-1)
		r.lose()
		pass(2 * time.Second)
		r.comeBack("")
		again := r.conn.last(t, "tool.call")
		if again["call_id"] != id || again["again"] != true || again["timeout_ms"] != 8000.0 {
			t.Fatalf("the client is asked again with %v", again)
		}
		r.toolSays(id, `"result":"there"`)
		r.toolSays(id, `"result":"twice"`)
		if env := results(t, model)["c1"]; !env.OK || string(env.Data) != `"there"` {
			t.Errorf("the model got %s", env.Encode())
		}
		r.read(-1)
		r.lose()
		r.comeBack("")
		if n := r.conn.count("tool.call"); n != 0 {
			t.Error("the client is asked again after its answer")
		}
		if r.conn.count("error") != 0 || len(toolRecords(&kept)) != 1 {
			t.Error("the call was answered more than once")
		}
	})
}

// TestCallEndsWithSession: no call remains after the client hangs up or does not return, and no result claims that the
// call did nothing.
func TestCallEndsWithSession(t *testing.T) {
	for name, leave := range map[string]func(r *returning){
		"it hangs up":        func(r *returning) { r.conn.say(`{"type":"session.end"}`) },
		"it does not return": func(r *returning) { r.lose(); pass(time.Minute) },
		"it does not answer": func(*returning) { pass(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept records
				r, model := calling(t, &kept)
				r.calls(model, "open_page", `{}`)
				leave(r)
				synctest.Wait()
				all := toolRecords(&kept)
				if len(all) != 1 || all[0].OK || !all[0].PartialSideEffects {
					t.Errorf("the audit has %+v", all)
				}
			})
		})
	}
}

// TestClientToolsAfterTakeover: the call is lost with the dead gateway; the next one uses the tools that the client
// declares again.
func TestClientToolsAfterTakeover(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		r, model := beginsAtWith(t, n.till.stage, startWithTools(openPage))
		id := r.calls(model, "open_page", `{}`)
		r.read(-1)
		n.shelf.kill("a")
		b := n.node(t, "b")
		r.st = b
		text := strings.TrimSuffix(r.start(r.position()), "}") + `,"tools":[` + look + `]}`
		r.conn, r.taken = r.dial(text, r.origin), 0
		synctest.Wait()
		if ended := r.conn.last(t, "tool.ended"); ended["call_id"] != id || ended["ok"] != false {
			t.Errorf("the lost call: %v", ended)
		}
		next := b.fake.Accept(t)
		synctest.Wait()
		r.toolSays(id, `"result":1`)
		if n := r.conn.count("error invalid_message"); n != 0 {
			t.Errorf("the answer to the dead gateway is called an error: %v", r.conn.last(t, "error"))
		}
		asked := r.calls(next, "look", `{}`)
		r.toolSays(asked, `"result":"/a"`)
		if env := results(t, next)["c1"]; string(env.Data) != `"/a"` {
			t.Errorf("the model got %s", env.Encode())
		}
	})
}

// TestDeclarationsAreChecked: an invalid declaration is refused with the place of the mistake.
func TestDeclarationsAreChecked(t *testing.T) {
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"t%d","description":"A tool."}`, i)
	}
	one := func(change string) []string { return []string{look, change} }
	for name, tc := range map[string]struct {
		tools     []string
		ref, says string
	}{
		"a name of the gateway":         {one(`{"name":"slow","description":"Mine."}`), "tools[1].name", "slow"},
		"a name similar to it":          {one(`{"name":"SL_OW","description":"Mine."}`), "tools[1].name", "slow"},
		"a reserved name":               {one(`{"name":"describe_tool","description":"Mine."}`), "tools[1].name", "built in"},
		"a duplicate name":              {one(look), "tools[0].name", "look"},
		"no name":                       {one(`{"description":"Mine."}`), "tools[1].name", "not a valid tool name"},
		"a long name":                   {one(`{"name":"` + strings.Repeat("a", 65) + `","description":"Mine."}`), "tools[1].name", "at most 64"},
		"no description":                {one(`{"name":"mine"}`), "tools[1].description", "empty"},
		"a long description":            {one(`{"name":"mine","description":"` + strings.Repeat("é", 1025) + `"}`), "tools[1].description", "1025"},
		"a hidden character":            {one(`{"name":"mine","description":"a\u200bb"}`), "tools[1].description", "cannot see"},
		"a long timeout":                {one(`{"name":"mine","description":"Mine.","timeout_ms":60001}`), "tools[1].timeout_ms", "60000"},
		"an open schema":                {one(`{"name":"mine","description":"Mine.","schema":{"type":"object"}}`), "tools[1].schema", "additionalProperties"},
		"a schema of an array":          {one(`{"name":"mine","description":"Mine.","schema":{"type":"array","items":{"type":"string"}}}`), "tools[1].schema.type", "object"},
		"not a schema":                  {one(`{"name":"mine","description":"Mine.","schema":[]}`), "tools[1].schema", "JSON Schema object"},
		"a reference to another schema": {one(`{"name":"mine","description":"Mine.","schema":{"type":"object","properties":{"a":{"$ref":"https://example.org/x"}},"additionalProperties":false}}`), "tools[1].schema.properties.a.$ref", "leads out"},
		"too many":                      {many, "tools", "at most 16"},
		"too much": {[]string{look, `{"name":"mine","description":"Mine.","schema":{"type":"object","properties":{"a":{"type":"string","enum":["` + strings.Repeat("x", 33<<10) + `"]}},"additionalProperties":false}}`},
			"tools", "32 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, _ := withTools(t, entry("slow", "1.0.0"), func(context.Context) (registry.Result, error) { return registry.Result{}, nil }, false)
				c := st.connect(startWithTools(tc.tools...))
				synctest.Wait()
				e := c.last(t, "error")
				if e["code"] != "invalid_message" || e["ref"] != tc.ref || !strings.Contains(fmt.Sprint(e["message"]), tc.says) {
					t.Errorf("refused with %v", e)
				}
				c.ended(t, protocol.CloseBadProtocol)
				if len(st.fake.Setups()) != 0 {
					t.Error("a model was connected")
				}
			})
		})
	}
}

// TestNoToolsOfClients: an operator can disable clients' tools.
func TestNoToolsOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.ClientTools = -1 })
		c := st.connect(startWithTools(look))
		synctest.Wait()
		if e := c.last(t, "error"); e["code"] != "not_available" {
			t.Errorf("refused with %v", e)
		}
	})
}

// TestResultWithoutTools: a client without declared tools cannot send a tool result.
func TestResultWithoutTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		c.say(`{"type":"tool.result","call_id":"call_1","result":1}`)
		synctest.Wait()
		if e := c.last(t, "error"); e["code"] != "invalid_message" || e["ref"] != "type" {
			t.Errorf("the error is %v", e)
		}
	})
}

// FuzzDeclared: any declaration becomes a tool with both forms, or is refused with a place.
func FuzzDeclared(f *testing.F) {
	for _, seed := range []string{openPage, look, `{"name":"a","description":"b","schema":{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^(a|b)*$"}},"additionalProperties":false}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d protocol.ClientTool
		if json.Unmarshal(data, &d) != nil {
			return
		}
		tool, cause := declared(0, d, false)
		if cause != nil {
			if !strings.HasPrefix(cause.Field, "tools[0]") || tool != nil {
				t.Fatalf("%+v: %v", cause, tool)
			}
			return
		}
		if !json.Valid(tool.Forms.OpenAI) || tool.Forms.Gemini != nil && !json.Valid(tool.Forms.Gemini) || !tool.ByClient() {
			t.Fatalf("%+v", tool)
		}
		all, err := (*registry.Snapshot)(nil).With([]*registry.Tool{tool})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.With([]*registry.Tool{tool}); !errors.As(err, new(*registry.SameName)) {
			t.Fatalf("twice: %v", err)
		}
		if p, _ := all.Prepare(tool.ToolID, spec.ModeVoice, json.RawMessage(`{}`)); p != nil && !json.Valid(p.Args()) {
			t.Fatalf("%s", p.Args())
		}
	})
}

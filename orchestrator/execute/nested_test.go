package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
)

// withTools are the needs of tools that call others.
type withTools struct{ Tools registry.Tools }

// doing is the function of a tool.
type doing func(ctx context.Context, a args, tools registry.Tools) (registry.Result, error)

// nesting is a conversation with its decisions about calls and an Executor that runs them.
type nesting struct {
	t      *testing.T
	e      *Executor
	ledger *storetest.Ledger
	tools  *registry.Snapshot
	rules  calls.Rules
	do     map[string]doing // by tool; a missing one answers at once

	mu      sync.Mutex // guards the following fields
	calls   calls.Calls
	runner  *Runner
	answers map[string]registry.Envelope
	ran     []string // tools, as they began
	lines   []audit.Record
}

// nested runs a test in a bubble, in text, with a budget of 30 calls in a turn; book needs an approval.
func nested(t *testing.T, test func(t *testing.T, n *nesting)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &nesting{t: t, ledger: &storetest.Ledger{}, do: map[string]doing{}, answers: map[string]registry.Envelope{}}
		n.e = New(Options{Ledger: n.ledger, Confirmations: &storetest.Confirmations{}, Logger: (&lines{}).logger()})
		t.Cleanup(n.e.Close)
		n.load(entries()...)
		n.rules = calls.Rules{Prefix: "c", Tools: calls.Policy{Mode: spec.ModeText, Budget: calls.Budget{Total: 30, Retrieval: 30, TopK: 5, ToolTime: -1}, Confirm: []string{"book"}}}
		n.begin("s1")
		test(t, n)
	})
}

// load gives the conversation these tools, which run n.do, from the next session on.
func (n *nesting) load(tools ...registry.Entry) {
	n.t.Helper()
	handlers := map[string]registry.Handler{}
	for _, e := range tools {
		handlers[e.ToolID] = registry.Bind(func(ctx context.Context, c registry.Call[args, withTools]) (registry.Result, error) {
			n.mu.Lock()
			n.ran = append(n.ran, c.Tool)
			do := n.do[c.Tool]
			n.mu.Unlock()
			if do == nil {
				return registry.Result{Data: c.Tool + " is done"}, nil
			}
			return do(ctx, c.Args, c.Needs.Tools)
		})
	}
	r, err := registry.Load(registrytest.File(n.t, tools...), registry.Options{Handlers: handlers, SessionCapabilities: registry.CallCapabilities()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.tools = r.Snapshot()
}

// begin begins a session of the user.
func (n *nesting) begin(session string) {
	n.calls = calls.New(n.tools, &n.rules)
	n.calls.Book().BeginTurn()
	n.runner = n.e.Begin(Conversation{
		Session: registry.Session{ID: session, UserID: "ada", Agent: "default", Mode: n.rules.Tools.Mode},
		Report:  n.report,
		Audit: func(r audit.Record) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.lines = append(n.lines, r)
		},
	})
	n.t.Cleanup(func() { n.runner.End(); n.runner.Wait() })
}

func (n *nesting) report(in calls.Input) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch in := in.(type) {
	case calls.Finished:
		do, _ := n.calls.Finished(in)
		n.carryOut(do)
	case calls.Nested:
		n.carryOut(n.calls.Nested(in))
	case calls.Recorded:
		n.carryOut(n.calls.Recorded(time.Now(), in))
	case calls.Resolved:
		n.carryOut(n.calls.Resolved(time.Now(), in))
	}
}

func (n *nesting) carryOut(all []calls.Action) {
	for _, a := range all {
		switch a := a.(type) {
		case calls.Run:
			n.runner.Run(a)
		case calls.Permit:
			n.runner.Permit(a)
		case calls.Ask:
			n.runner.Ask(a)
		case calls.Resolve:
			n.runner.Resolve(a)
		case calls.Approved:
			n.carryOut(n.calls.Approve(time.Now(), 1, a))
		case calls.Answer:
			n.answers[a.Call] = a.Envelope
		}
	}
}

// call makes the model call a tool, and returns the answer.
func (n *nesting) call(tool, raw string) registry.Envelope {
	n.t.Helper()
	n.mu.Lock()
	n.carryOut(n.calls.Called(time.Now(), calls.Called{Turn: 1, Tool: tool, Args: json.RawMessage(raw)}))
	n.mu.Unlock()
	n.runner.Wait()
	return n.answers[fmt.Sprint("c", len(n.answers))]
}

// calling is a tool that makes one call, and returns its answer.
func calling(tool, name string) doing {
	return func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
		env := tools.Call(ctx, tool, map[string]string{"name": name})
		var data any
		return registry.Result{Data: &data}, env.Into(&data)
	}
}

// audited returns the audit of calls by tools, as "call of parent: tool, how it ended".
func (n *nesting) audited() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, r := range n.lines {
		if r.Delivered || r.NotDelivered != "nested" {
			n.t.Errorf("a call by a tool counts as delivered: %+v", r)
		}
		how := "ok"
		if !r.OK {
			how = string(r.ErrorType)
		}
		all = append(all, fmt.Sprintf("%s of %s: %s, %s", r.CallID, r.ParentCallID, r.ToolID, how))
	}
	return strings.Join(all, "; ")
}

func (n *nesting) states() string {
	var all []string
	for _, e := range n.ledger.Entries() {
		all = append(all, e.Tool+" "+string(e.State))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestNestedCalls: the answer, the runs and the audit of a tool that calls another one.
func TestNestedCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		do         map[string]doing
		tool       string
		total      int    // of the budget; zero for 30
		want       string // in the answer to the model
		ran, lines string
		ledger     string
	}{
		"one": {do: map[string]doing{"look": calling("rare", "a")}, tool: "look", want: `"rare is done"`, ran: "look rare", lines: "c1.1 of c1: rare, ok"},
		"three deep": {do: map[string]doing{"look": calling("rare", "a"), "rare": calling("stop", "b")}, tool: "look", want: `"stop is done"`,
			ran: "look rare stop", lines: "c1.2 of c1.1: stop, ok; c1.1 of c1: rare, ok"},
		"four deep": {do: map[string]doing{"wipe": calling("rare", "a"), "rare": calling("stop", "b"), "stop": calling("look", "c")}, tool: "wipe",
			want: "nested calls may be 3 deep", ran: "wipe rare stop", lines: "c1.3 of c1.2: look, PERMANENT; c1.2 of c1.1: stop, PERMANENT; c1.1 of c1: rare, PERMANENT"},
		"itself": {do: map[string]doing{"look": calling("look", "a")}, tool: "look", want: "look was not run: it would call itself", ran: "look", lines: "c1.1 of c1: look, PERMANENT"},
		"a circle": {do: map[string]doing{"look": calling("rare", "a"), "rare": calling("look", "a")}, tool: "look",
			want: "look was not run: it would call itself", ran: "look rare", lines: "c1.2 of c1.1: look, PERMANENT; c1.1 of c1: rare, PERMANENT"},
		"a writing tool, by a reading one": {do: map[string]doing{"look": calling("wipe", "a")}, tool: "look",
			want: "wipe was not run: it writes, and look, which calls it, says that it does not", ran: "look", lines: "c1.1 of c1: wipe, PERMANENT"},
		"two writing tools": {do: map[string]doing{"wipe": calling("again", "a")}, tool: "wipe", want: `"again is done"`, ran: "wipe again", lines: "c1.1 of c1: again, ok", ledger: "again done, wipe done"},
		"it needs an approval": {do: map[string]doing{"wipe": calling("pay", "a")}, tool: "wipe", want: "it needs approval, and wipe, which calls it, has none",
			ran: "wipe", lines: "c1.1 of c1: pay, CONFIRMATION_REQUIRED"},
		"the operator requires an approval": {do: map[string]doing{"wipe": calling("book", "a")}, tool: "wipe", want: "it needs approval", ran: "wipe", lines: "c1.1 of c1: book, CONFIRMATION_REQUIRED"},
		"the budget":                        {do: map[string]doing{"look": calling("rare", "a")}, tool: "look", total: 1, want: "BUDGET_EXCEEDED", ran: "look", lines: "c1.1 of c1: rare, BUDGET_EXCEEDED"},
		"unknown":                           {do: map[string]doing{"look": calling("nothing", "a")}, tool: "look", want: "NOT_FOUND", ran: "look", lines: "c1.1 of c1: nothing, NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			nested(t, func(t *testing.T, n *nesting) {
				n.do = tt.do
				if tt.total > 0 {
					n.rules.Tools.Budget.Total = tt.total
					n.begin("s1")
				}
				env := n.call(tt.tool, `{}`)
				if got := string(env.Encode()); !strings.Contains(got, tt.want) {
					t.Errorf("the model was answered %s, want %s", got, tt.want)
				}
				if got := strings.Join(n.ran, " "); got != tt.ran {
					t.Errorf("%s ran, want %s", got, tt.ran)
				}
				if got := n.audited(); got != tt.lines {
					t.Errorf("the audit says %s, want %s", got, tt.lines)
				}
				if got := n.states(); tt.ledger != "" && got != tt.ledger {
					t.Errorf("the ledger has %s, want %s", got, tt.ledger)
				}
			})
		})
	}
}

// TestNestedBound: a call of a model leads to at most eight calls in all, and one line reports that there were more.
func TestNestedBound(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		good := 0
		n.do["look"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			for i := range 50 {
				if env := tools.Call(ctx, "rare", args{Name: fmt.Sprint(i)}); env.OK {
					good++
				} else if !strings.Contains(env.Error.Message, "may lead to 8 calls") {
					t.Errorf("%s", env.Encode())
				}
			}
			return registry.Result{}, nil
		}
		n.do["rare"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			env := tools.Call(ctx, "stop", nil)
			return registry.Result{}, env.Into(new(any))
		}
		n.call("look", `{}`)
		if got := len(n.ran); good != 4 || got != 9 || len(n.lines) != 9 {
			t.Errorf("%d were answered, %d ran, %d lines", good, got, len(n.lines))
		}
		if got := n.calls.Book().Account().Total; got != 9 {
			t.Errorf("the turn has used %d calls", got)
		}
	})
}

// TestApprovedNestedCall: an approved call may make calls that need an approval.
func TestApprovedNestedCall(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		n.do["pay"] = calling("book", "a")
		env := n.call("pay", `{"name":"a"}`)
		if !failed(env, registry.ErrorConfirmationRequired) {
			t.Fatalf("%s", env.Encode())
		}
		n.mu.Lock()
		n.carryOut(n.calls.Answered(env.Error.ConfirmationRequest.Token, true))
		n.mu.Unlock()
		n.runner.Wait()
		if got := n.audited(); strings.Join(n.ran, " ") != "pay book" || got != "c2.1 of c2: book, ok" || n.lines[0].Reference == "" {
			t.Errorf("%v ran, and the audit says %s", n.ran, got)
		}
	})
}

// TestNestedCallsRunOnce: a call that runs again gets the answers of its tool's earlier calls, and a second call with
// the same arguments is a different one.
func TestNestedCallsRunOnce(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		hits := ""
		n.do["again"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			for _, name := range []string{"a", "a", "b"} {
				env := tools.Call(ctx, "wipe", args{Name: name})
				hits += fmt.Sprint(env.OK, env.Meta.CacheHit, " ")
			}
			if strings.Count(hits, " ") == 6 {
				return registry.Result{}, &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Retryable: true}
			}
			return registry.Result{Data: "done"}, nil
		}
		env := n.call("again", `{}`)
		if want := strings.Repeat("true false ", 3) + strings.Repeat("true true ", 3); !env.OK || hits != want {
			t.Errorf("%s: %q", env.Encode(), hits)
		}
		if got := strings.Join(n.ran, " "); got != "again wipe wipe wipe again" {
			t.Errorf("%s ran", got)
		}
	})
}

// TestNestedCallsOverSessions: a failed action may be tried again in another session, and its tool's earlier calls
// are not repeated.
func TestNestedCallsOverSessions(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		n.rules.Tools.Confirm = nil
		n.do["book"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			env := tools.Call(ctx, "wipe", nil)
			if !env.Meta.CacheHit {
				return registry.Result{}, &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Repeatable: true}
			}
			return registry.Result{Data: "done"}, nil
		}
		if env := n.call("book", `{"name":"a"}`); env.OK || !env.Error.PartialSideEffects {
			t.Errorf("%s", env.Encode())
		}
		n.runner.End()
		n.begin("s2")
		n.answers = map[string]registry.Envelope{}
		if env := n.call("book", `{"name":"a"}`); !env.OK || strings.Join(n.ran, " ") != "book wipe book" {
			t.Errorf("%s; %v ran", env.Encode(), n.ran)
		}
	})
}

// TestFailedAfterNestedWrite: a failed call whose tool has written something is not repeated automatically.
func TestFailedAfterNestedWrite(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		n.do["wipe"] = calling("again", "a")
		n.do["again"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			tools.Call(ctx, "move", nil)
			return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "It failed.")
		}
		env := n.call("wipe", `{}`)
		if env.OK || !env.Error.PartialSideEffects || n.states() != "again pending, move done, wipe pending" {
			t.Errorf("%s; the ledger has %s", env.Encode(), n.states())
		}
	})
}

// TestNestedCallEndsWithItsCaller: even if its handler uses a context without end; an abandoned handler makes no more
// calls.
func TestNestedCallEndsWithItsCaller(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		var ended, after registry.Envelope
		left := make(chan struct{})
		n.do["stop"] = func(_ context.Context, _ args, tools registry.Tools) (registry.Result, error) {
			defer close(left)
			ended = tools.Call(context.Background(), "rare", nil)
			after = tools.Call(context.Background(), "look", nil)
			return registry.Result{}, nil
		}
		n.do["rare"] = func(ctx context.Context, _ args, _ registry.Tools) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		}
		n.mu.Lock()
		n.carryOut(n.calls.Called(time.Now(), calls.Called{Turn: 1, Tool: "stop"}))
		n.mu.Unlock()
		synctest.Wait()
		if running := n.e.Running(); len(running) != 2 || running[1].Tool != "rare" && running[0].Tool != "rare" {
			t.Errorf("%+v are running", running)
		}
		n.runner.Cancel("c1")
		<-left
		if ended.OK || after.OK || !strings.Contains(after.Error.Message, "no running call") || strings.Join(n.ran, " ") != "stop rare" {
			t.Errorf("%s; %s; %v ran", ended.Encode(), after.Encode(), n.ran)
		}
	})
}

// TestStoredNestedCall: an approved call of an ended conversation calls other tools of the same scopes.
func TestStoredNestedCall(t *testing.T) {
	nested(t, func(t *testing.T, n *nesting) {
		n.do["pay"] = calling("book", "a")
		var lines []audit.Record
		env, _ := n.e.RunStored(t.Context(), "confirmation_REF", n.tools, store.Confirmation{Session: "gone", User: "ada", Mode: "text", Tool: "pay", ToolVersion: "1.0.0", Reference: "REF", Args: json.RawMessage(`{}`)},
			Conversation{Audit: func(r audit.Record) { lines = append(lines, r) }})
		if !env.OK || len(lines) != 1 || lines[0].CallID != "confirmation_REF.1" || lines[0].ParentCallID != "confirmation_REF" || strings.Join(n.ran, " ") != "pay book" {
			t.Errorf("%s; %+v", env.Encode(), lines)
		}
	})
}

// TestStoredNestedCallHasItsScopes: an approved call of an ended conversation calls only tools that the scopes of the
// conversation allow, and no tool that is for models alone.
func TestStoredNestedCallHasItsScopes(t *testing.T) {
	for name, tt := range map[string]struct {
		tool   string
		scopes []string
		want   registry.ErrorType // empty if the call runs
	}{
		"without the scope":      {tool: "move", scopes: []string{"sales"}, want: registry.ErrorNotFound},
		"with the scope":         {tool: "move", scopes: []string{"sales", "hr"}},
		"a tool without a scope": {tool: "look"},
		"a tool of the client":   {tool: "scroll", want: registry.ErrorPermanent},
		"a switch of the agent":  {tool: spec.AgentSwitch, want: registry.ErrorPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			nested(t, func(t *testing.T, n *nesting) {
				own := entries()
				own[slices.IndexFunc(own, func(e registry.Entry) bool { return e.ToolID == "move" })].Requires = []string{"hr"}
				n.load(own...)
				scroll, problems := registry.Declare(registry.Declared{Name: "scroll", Description: "Scrolls the page."})
				tools, err := n.tools.Switching([]registry.SwitchTarget{{ID: "billing"}}).With([]*registry.Tool{scroll})
				if problems != nil || err != nil {
					t.Fatal(problems, err)
				}
				var answered registry.Envelope
				n.do["pay"] = func(ctx context.Context, _ args, tools registry.Tools) (registry.Result, error) {
					asked := map[string]any{}
					if tt.tool == spec.AgentSwitch {
						asked = map[string]any{"agent": "billing", "reason": "A bill.", "message": "Ada has a bill."}
					}
					answered = tools.Call(ctx, tt.tool, asked)
					return registry.Result{}, nil
				}
				n.e.RunStored(t.Context(), "call_1", tools, store.Confirmation{Session: "gone", User: "ada", Scopes: tt.scopes, Mode: "voice", Tool: "pay", ToolVersion: "1.0.0", Reference: "REF", Args: json.RawMessage(`{}`)}, Conversation{})
				ran := "pay"
				if tt.want == "" {
					ran += " " + tt.tool
				}
				if got := strings.Join(n.ran, " "); got != ran || tt.want != "" && !failed(answered, tt.want) || tt.want == "" && !answered.OK {
					t.Errorf("%s ran, and pay was answered %s", got, answered.Encode())
				}
			})
		})
	}
}

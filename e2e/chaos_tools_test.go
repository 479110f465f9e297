package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// chaosArgs are the arguments of every tool of the chaos test.
type chaosArgs struct {
	// Ref names the caller's wish.
	Ref string `json:"ref"`
	// How is the result of the call, see hows.
	How  string `json:"how"`
	Slot string `json:"slot"`
	TopK int    `json:"top_k"`
}

// hows are the possible results of a running call, the usual one most often.
//
//	ok       it succeeds at once
//	slow     it takes a while and obeys its context
//	fail     it does nothing, and a retry is allowed
//	refuse   it does nothing
//	partial  it has its effect, and the answer reports a failure in the middle
//	panic    it has its effect, and then the handler panics
//	hang     it ignores its context, is given up, and has its effect long after that
var hows = []string{"ok", "ok", "ok", "ok", "slow", "slow", "fail", "refuse", "partial", "panic", "hang"}

// chaosTimeout limits a call, in ms; a hanging one takes longer.
const (
	chaosTimeout = 700
	chaosHang    = 1000 * time.Millisecond
	// remoteLag limits the time between the start of a call and the arrival of its request at a service.
	remoteLag = 100 * time.Millisecond
)

// run is one start of a handler, or one request to a service.
type run struct {
	node                *chaosNode
	tool, session, user string // an MCP server does not learn the session and the user, see settle
	turn                int    // 0 if unknown
	args                string // in canonical JSON
	ref, slot           string
	action              string // the key under which the gateway runs it once, for tools that write
	at                  time.Time
	did                 bool      // the side effect happened
	ended               time.Time // when the handler returned
}

// counter records the tools' side effects. A dead gateway causes none, but services perform its last requests.
type counter struct {
	*services

	mu   sync.Mutex // guards the following field
	runs []*run

	running sync.WaitGroup
}

// begin records the start of a run, and completes it. The caller has to call end.
func (c *counter) begin(spec chaosTool, args chaosArgs, r *run) *run {
	r.tool, r.args, r.ref, r.slot, r.at = spec.id, spec.canonical(args), args.Ref, args.Slot, time.Now()
	c.running.Add(1)
	r.node.alive(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs = append(c.runs, r)
	})
	return r
}

func (c *counter) do(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.did = true
}

func (c *counter) end(r *run) {
	defer c.running.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ended = time.Now()
}

// begun counts the runs of a kind of tool; of all kinds if it is empty.
func (c *counter) begun(of chaosKind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, r := range c.runs {
		if spec, _ := named(r.tool); of == "" || spec.kind == of {
			n++
		}
	}
	return n
}

// all waits for all runs. No gateway may start more.
func (c *counter) all() []*run {
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// act performs a call, for every kind of tool. The error is the one of ctx, if the call obeys it. A handler in a dead
// gateway does nothing. A service completes its requests, unless it notices that the gateway is gone.
func (c *counter) act(ctx context.Context, kind chaosKind, r *run, how string) error {
	do := func() { c.do(r) }
	switch how {
	case "slow":
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		r.node.alive(do) // the death of its gateway ends ctx
		return nil
	case "fail", "refuse":
		return nil
	case "hang":
		<-time.After(chaosHang)
	}
	if kind == kindGo {
		r.node.alive(do)
	} else {
		do()
	}
	return nil
}

// handle is the handler of every tool in Go.
func (c *counter) handle(spec chaosTool, n *chaosNode) registry.Handler {
	return registry.Bind(func(ctx context.Context, call registry.Call[chaosArgs, struct{}]) (registry.Result, error) {
		r := c.begin(spec, call.Args, &run{
			node: n, session: call.Session.ID, user: call.Session.UserID, turn: call.Session.Turn, action: call.IdempotencyKey,
		})
		defer c.end(r)
		if err := c.act(ctx, spec.kind, r, call.Args.How); err != nil {
			return registry.Result{}, err
		}
		switch call.Args.How {
		case "fail":
			return registry.Result{}, registry.Errorf(registry.ErrorTransient, "It does not work at the moment.")
		case "refuse":
			return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "It cannot be done.")
		case "panic":
			panic("the chaos test wants it")
		case "partial":
			e := registry.Errorf(registry.ErrorPermanent, "It stopped in the middle.")
			e.PartialSideEffects = true
			return registry.Result{}, e
		}
		result := registry.Result{Data: map[string]string{"ref": call.Args.Ref}}
		if spec.id == "goodbye" {
			result.Intents = []registry.Intent{registry.EndVoiceSession(registry.EndAfterFarewellSpoken)}
		}
		return result, nil
	})
}

// chaosKind is a kind of tool.
type chaosKind string

const (
	kindGo   chaosKind = "Go"
	kindHTTP chaosKind = "HTTP"
	kindMCP  chaosKind = "MCP"
	kindJS   chaosKind = "JavaScript"
)

var chaosKinds = []chaosKind{kindGo, kindHTTP, kindMCP, kindJS}

// chaosTool describes the differences between the test's tools.
type chaosTool struct {
	id       string // with the server's name for a tool of an MCP server
	kind     chaosKind
	category spec.Category
	writes   bool
	key      string // the business key
	confirm  bool
	cancel   bool
	aside    bool // non-blocking
	topK     bool
}

var chaosTools = []chaosTool{
	{id: "look_up", kind: kindHTTP, category: spec.CategoryRetrieval, topK: true},
	{id: "note", kind: kindGo, category: spec.CategoryAction, writes: true},
	{id: "book", kind: kindHTTP, category: spec.CategoryAction, writes: true, key: "{slot}"},
	{id: "pay", kind: kindJS, category: spec.CategoryAction, writes: true, confirm: true},
	{id: "shop__order", kind: kindMCP, category: spec.CategoryAction, writes: true, confirm: true, key: "{slot}"},
	{id: "wait_for", kind: kindGo, category: spec.CategoryUtility, cancel: true},
	{id: "shop__watch", kind: kindMCP, category: spec.CategoryUtility, aside: true},
	{id: "goodbye", kind: kindGo, category: spec.CategoryUtility},
}

// canonical formats a call's arguments as the gateway does.
func (c chaosTool) canonical(a chaosArgs) string {
	all := map[string]any{"ref": a.Ref, "how": a.How, "slot": a.Slot}
	if c.topK {
		all["top_k"] = a.TopK
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings and a number cannot fail
	}
	return string(text)
}

func (c chaosTool) entry() registry.Entry {
	properties := `"ref":{"type":"string"},"how":{"type":"string"},"slot":{"type":"string"}`
	if c.topK {
		properties += `,"top_k":{"type":"integer","default":5,"minimum":1,"maximum":50}`
	}
	object := json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":["ref","how","slot"],"additionalProperties":false}`)
	gemini := strings.NewReplacer(`,"additionalProperties":false`, "", `"object"`, `"OBJECT"`, `"string"`, `"STRING"`, `"integer"`, `"INTEGER"`,
		`"default":5,`, "").Replace(string(object))
	declared := spec.Spec{
		ToolID: c.id, Version: "1.0.0", Description: "A tool of the chaos test.", Category: c.category,
		SideEffects: spec.SideEffectsReadOnly, Idempotent: !c.writes, RequiresConfirmation: c.confirm,
		AllowedModes: []spec.Mode{spec.ModeVoice}, LatencyBudgetMS: 200, TimeoutMS: chaosTimeout,
		Cancellable: c.cancel, IdempotencyKey: c.key, Parameters: object,
	}
	if c.writes {
		declared.SideEffects = spec.SideEffectsWrites
	}
	if c.confirm {
		declared.Preview = c.id + " {ref}"
	}
	if c.aside {
		declared.Behavior, declared.Scheduling = spec.BehaviorNonBlocking, "when_idle"
	}
	return registry.Entry{
		Spec: declared, Summary: declared.Description, Guide: "# " + c.id + "\n",
		Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(gemini)},
	}
}

// chaosToolFile writes the registry file of each gateway: the tools in Go.
func chaosToolFile(t testing.TB) []byte {
	t.Helper()
	var entries []registry.Entry
	for _, spec := range chaosTools {
		if spec.kind == kindGo {
			entries = append(entries, spec.entry())
		}
	}
	return registrytest.File(t, entries...)
}

// tools loads a gateway's tools. All gateways share the counter. closeAll ends the connections to services.
func (c *counter) tools(file []byte, n *chaosNode) (tools *registry.Registry, closeAll func(), err error) {
	handlers := map[string]registry.Handler{}
	for _, spec := range chaosTools {
		if spec.kind == kindGo {
			handlers[spec.id] = c.handle(spec, n)
		}
	}
	foreign, closeAll, err := c.foreign(n)
	if err != nil {
		return nil, nil, err
	}
	tools, err = registry.Load(file, registry.Options{Handlers: handlers, Foreign: foreign})
	return tools, closeAll, err
}

// named returns the chaosTool with this id.
func named(id string) (chaosTool, bool) {
	for _, c := range chaosTools {
		if c.id == id {
			return c, true
		}
	}
	return chaosTool{}, false
}

// attempts returns the possible number of requests of a call: an HTTP tool that only reads is retried after some
// failures.
func (c chaosTool) attempts(args string) int {
	var a chaosArgs
	if c.kind == kindHTTP && !c.writes && json.Unmarshal([]byte(args), &a) == nil && slices.Contains([]string{"fail", "partial", "panic"}, a.How) {
		return 3
	}
	return 1
}

// actionOf names an action that must happen once: the user's slot, or else the gateway's name of the action.
func (r *run) actionOf() string {
	spec, _ := named(r.tool)
	switch {
	case !spec.writes:
		return ""
	case spec.key != "":
		return fmt.Sprint(r.tool, " of ", r.slot, " for ", r.user)
	default:
		return r.action
	}
}

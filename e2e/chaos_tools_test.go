package e2e

import (
	"context"
	"encoding/json"
	"fmt"
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

// hows are what may become of a call that runs, the usual one oftenest.
//
//	ok       it is done at once
//	slow     it takes a while, and heeds its context
//	fail     nothing is done, and it may be tried again
//	refuse   nothing is done
//	partial  it is done, and the answer says that it failed in the middle
//	panic    it is done, and then the handler panics
//	hang     it heeds nothing, is given up, and is done long after that
var hows = []string{"ok", "ok", "ok", "ok", "slow", "slow", "fail", "refuse", "partial", "panic", "hang"}

// chaosTimeout bounds a call, in ms; a hanging one takes longer.
const (
	chaosTimeout = 700
	chaosHang    = 1000 * time.Millisecond
)

// run is one start of a handler.
type run struct {
	node                *chaosNode
	tool, session, user string
	turn                int
	args                string // in canonical JSON
	ref, slot           string
	action              string // the key under which the gateway runs it once; of tools that write
	at                  time.Time
	did                 bool      // the side effect happened
	ended               time.Time // when the handler returned
}

// counter records the tools' side effects. A dead gateway has none.
type counter struct {
	mu   sync.Mutex // guards the following field
	runs []*run
}

func (c *counter) begin(n *chaosNode, call registry.Call[chaosArgs, struct{}], args string) *run {
	r := &run{
		node: n,
		tool: call.Tool, session: call.Session.ID, user: call.Session.UserID, turn: call.Session.Turn, args: args,
		ref: call.Args.Ref, slot: call.Args.Slot, action: call.IdempotencyKey, at: time.Now(),
	}
	n.alive(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs = append(c.runs, r)
	})
	return r
}

func (c *counter) do(r *run) {
	r.node.alive(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.did = true
	})
}

func (c *counter) end(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ended = time.Now()
}

// begun counts the handlers that began.
func (c *counter) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// all may be called when nothing runs any more.
func (c *counter) all() []*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// handle is the handler of every tool.
func (c *counter) handle(spec chaosTool, n *chaosNode) registry.Handler {
	return registry.Bind(func(ctx context.Context, call registry.Call[chaosArgs, struct{}]) (registry.Result, error) {
		r := c.begin(n, call, spec.canonical(call.Args))
		defer c.end(r)
		switch call.Args.How {
		case "slow":
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
				return registry.Result{}, ctx.Err()
			}
		case "fail":
			return registry.Result{}, registry.Errorf(registry.ErrorTransient, "It does not work at the moment.")
		case "refuse":
			return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "It cannot be done.")
		case "hang":
			<-time.After(chaosHang)
		}
		c.do(r)
		switch call.Args.How {
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

// chaosTool has the differences between the test's tools.
type chaosTool struct {
	id       string
	category spec.Category
	writes   bool
	key      string // the business key
	confirm  bool
	cancel   bool
	aside    bool // non-blocking
	topK     bool
}

var chaosTools = []chaosTool{
	{id: "look_up", category: spec.CategoryRetrieval, topK: true},
	{id: "note", category: spec.CategoryAction, writes: true},
	{id: "book", category: spec.CategoryAction, writes: true, key: "{slot}"},
	{id: "pay", category: spec.CategoryAction, writes: true, confirm: true},
	{id: "order", category: spec.CategoryAction, writes: true, confirm: true, key: "{slot}"},
	{id: "wait_for", category: spec.CategoryUtility, cancel: true},
	{id: "watch", category: spec.CategoryUtility, aside: true},
	{id: "goodbye", category: spec.CategoryUtility},
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

// chaosToolFile writes the registry file of each gateway.
func chaosToolFile(t testing.TB) []byte {
	t.Helper()
	var entries []registry.Entry
	for _, spec := range chaosTools {
		entries = append(entries, spec.entry())
	}
	return registrytest.File(t, entries...)
}

// tools loads a gateway's tools. All gateways share the counter.
func (c *counter) tools(file []byte, n *chaosNode) (*registry.Registry, error) {
	handlers := map[string]registry.Handler{}
	for _, spec := range chaosTools {
		handlers[spec.id] = c.handle(spec, n)
	}
	return registry.Load(file, registry.Options{Handlers: handlers})
}

// named returns the chaosTool with an id.
func named(id string) (chaosTool, bool) {
	for _, c := range chaosTools {
		if c.id == id {
			return c, true
		}
	}
	return chaosTool{}, false
}

// actionOf names what must not be done twice: the slot of a user, else what the gateway
// calls it.
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

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/server"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// shop is a program with the tools of a shop and a data folder.
type shop struct {
	t    *testing.T
	dir  string
	paid int // the number of runs of pay
}

// planNeeds are the capabilities of plan.
type planNeeds struct {
	Tools     registry.Tools
	Audit     registry.Audit
	Messenger registry.Messenger
	Progress  registry.Progress
}

func newShop(t *testing.T) *shop { return &shop{t: t, dir: t.TempDir()} }

// tools returns the registry of the shop and its handlers.
func (s *shop) tools() ([]byte, map[string]registry.Handler) {
	pay := registry.Bind(func(_ context.Context, call registry.Call[worldArgs, struct{}]) (registry.Result, error) {
		s.paid++
		return registry.Result{Data: map[string]any{"ref": call.Args.Ref, "phase": call.Session.Phase}}, nil
	})
	plan := registry.Bind(func(ctx context.Context, call registry.Call[worldArgs, planNeeds]) (registry.Result, error) {
		n := call.Needs
		n.Progress.Tell("Looking", 0.5)
		if err := n.Messenger.Send("plan.made", map[string]string{"ref": call.Args.Ref}); err != nil {
			return registry.Result{}, err
		}
		if err := n.Audit.Note("plan.noted", nil); err != nil {
			return registry.Result{}, err
		}
		answers := map[string]string{}
		for _, tool := range []string{"gift", "pay", "plan"} {
			answers[tool] = "ok"
			if env := n.Tools.Call(ctx, tool, call.Args); env.Error != nil {
				answers[tool] = string(env.Error.Type)
			}
		}
		return registry.Result{Data: answers}, nil
	})
	entries := []registry.Entry{
		s.entry("gift", func(*spec.Spec) {}),
		s.entry("gift_next", func(t *spec.Spec) { t.VariantOf, t.Version = "gift", "2.0.0" }),
		s.entry("hidden", func(t *spec.Spec) { t.Requires = []string{"shop.hidden"} }),
		s.entry("other", func(t *spec.Spec) { t.Availability = &spec.Availability{Agents: []string{"other"}} }),
		s.entry("pay", func(t *spec.Spec) { t.RequiresConfirmation, t.Preview = true, "Pay {ref}" }),
		s.entry("plan", func(*spec.Spec) {}),
		s.entry("spoken", func(t *spec.Spec) { t.AllowedModes = []spec.Mode{spec.ModeVoice} }),
	}
	return registrytest.File(s.t, entries...), map[string]registry.Handler{"gift": pay, "gift_next": pay, "hidden": pay, "other": pay, "pay": pay, "plan": plan, "spoken": pay}
}

// entry is a tool that writes and takes a ref, in both modes.
func (s *shop) entry(id string, change func(*spec.Spec)) registry.Entry {
	object := json.RawMessage(`{"type":"object","properties":{"ref":{"type":"string","minLength":1}},"required":["ref"],"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: id, Version: "1.0.0", Description: "A tool of a shop.", Category: spec.CategoryAction, SideEffects: spec.SideEffectsWrites,
		AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice}, LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
	}
	change(&declared)
	return registry.Entry{Spec: declared, Summary: declared.Description, Guide: "# " + id + "\n", Forms: registry.Forms{
		OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"ref":{"type":"STRING","minLength":"1"}},"required":["ref"]}`),
	}}
}

// calls runs tools call with flags, and returns its output.
func (s *shop) calls(flags ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	data, handlers := s.tools()
	var out, problems strings.Builder
	code = Run(s.t.Context(), Process{
		Args: append([]string{"tools", "call", "--set", "data_dir=" + s.dir}, flags...), Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &out, Stderr: &problems, Registry: func() ([]byte, error) { return data, nil }, Handlers: handlers},
	})
	return out.String(), problems.String(), code
}

// audited returns the audit's records of the data folder, oldest first.
func (s *shop) audited() (all []audit.Record) {
	s.t.Helper()
	_, err := audit.ReadFiles(s.t.Context(), filepath.Join(s.dir, "audit", "audit.jsonl"), func(r audit.Record, _ []byte) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// TestToolsCallDecides: tools call refuses the same calls as the policy of a conversation, with the reason.
func TestToolsCallDecides(t *testing.T) {
	args := `{"ref":"r1"}`
	folder := t.TempDir()
	for id, rest := range map[string]string{"clerk": "tools: [gift]", "planner": "tools: [gift, plan]\nbudget: {text: {total: 1}, voice: {total: 1}}"} {
		text := "id: " + id + "\nname: " + id + "\nplaybook: Sell.\n" + rest + "\n"
		if err := os.WriteFile(filepath.Join(folder, id+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agents := "agents.path=" + folder
	for name, tc := range map[string]struct {
		flags []string
		code  int
		says  string // on standard output or error
		paid  int
	}{
		"an allowed call":                             {[]string{"gift", args}, exitOK, `"ref": "r1"`, 1},
		"the main version":                            {[]string{"gift", args}, exitOK, `"toolVersion": "1.0.0"`, 1},
		"a version by its own name":                   {[]string{"gift_next", args}, exitOK, `"toolVersion": "2.0.0"`, 1},
		"a version by its share":                      {[]string{"gift", args, "--set", "tools.gift_next.share=100"}, exitOK, `"toolVersion": "2.0.0"`, 1},
		"a version that is misspelt":                  {[]string{"gift", args, "--set", "tools.gift_nxt.share=100"}, exitUsage, "Did you mean tools.gift_next", 0},
		"by voice":                                    {[]string{"spoken", args}, exitOK, `"phase": "active"`, 1},
		"in the wrong mode":                           {[]string{"spoken", args, "--mode", "text"}, exitFailure, "MODE_RESTRICTED", 0},
		"wrong arguments":                             {[]string{"gift", `{}`}, exitFailure, "VALIDATION", 0},
		"an unknown tool":                             {[]string{"gifts", args}, exitFailure, "NOT_FOUND", 0},
		"a scope that is missing":                     {[]string{"hidden", args}, exitFailure, "--scope shop.hidden", 0},
		"a granted scope":                             {[]string{"hidden", args, "--scope", "shop.hidden"}, exitOK, `"ref"`, 1},
		"a scope that cannot be":                      {[]string{"hidden", args, "--scope", "a b"}, exitUsage, "--scope", 0},
		"a condition":                                 {[]string{"other", args}, exitFailure, "are not met", 0},
		"a budget of one call":                        {[]string{"plan", args, "--set", agents, "--set", "budget.text.total=1"}, exitOK, "nested call of gift: BUDGET_EXCEEDED", 0},
		"an agent's budget":                           {[]string{"plan", args, "--set", agents, "--agent", "planner"}, exitOK, "nested call of gift: BUDGET_EXCEEDED", 0},
		"an agent's budget by voice":                  {[]string{"plan", args, "--set", agents, "--agent", "planner", "--mode", "voice"}, exitOK, "nested call of gift: BUDGET_EXCEEDED", 0},
		"an agent without the tool":                   {[]string{"hidden", args, "--set", agents, "--agent", "clerk"}, exitFailure, "the agent clerk does not have hidden", 0},
		"an agent with the tool":                      {[]string{"gift", args, "--set", agents, "--agent", "clerk"}, exitOK, `"ref"`, 1},
		"an unknown agent":                            {[]string{"gift", args, "--set", agents, "--agent", "clark"}, exitUsage, "did you mean clerk?", 0},
		"no approval possible":                        {[]string{"pay", args}, exitFailure, `pay requires approval: Pay r1`, 0},
		"approved by a flag":                          {[]string{"pay", args, "--yes"}, exitOK, `"ref": "r1"`, 1},
		"approval by configuration":                   {[]string{"gift", args, "--set", "confirmation.require=gift"}, exitFailure, "CONFIRMATION_REQUIRED", 0},
		"a tool in the configuration that is missing": {[]string{"gift", args, "--set", "confirmation.require=gifd"}, exitUsage, "Did you mean gift?", 0},
		"a key that cannot be":                        {[]string{"gift", args, "--key", "a\nb"}, exitUsage, "--key", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			stdout, stderr, code := s.calls(tc.flags...)
			if code != tc.code || !strings.Contains(stdout+stderr, tc.says) || s.paid != tc.paid {
				t.Errorf("exit %d, paid %d times\n%s\n%s", code, s.paid, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "cf_") {
				t.Errorf("the token of the question is shown: %s %s", stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "store")); err == nil {
				t.Error("a call without --store left a store")
			}
		})
	}
}

// TestToolsCallExtras: the output shows the tool's jobs, images and calls, and its calls follow the rules of calls by
// tools.
func TestToolsCallExtras(t *testing.T) {
	s := newShop(t)
	stdout, stderr, code := s.calls("plan", `{"ref":"r1"}`)
	for _, want := range []string{"progress: Looking (50 %)", `the client would get plan.made: {"ref":"r1"}`, "the audit notes plan.noted", "nested call of gift: ok", "nested call of pay: CONFIRMATION_REQUIRED"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not shown: %s", want, stderr)
		}
	}
	for _, want := range []string{`"gift": "ok"`, `"pay": "CONFIRMATION_REQUIRED"`, `"plan": "PERMANENT"`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the answer lacks %s: %s", want, stdout)
		}
	}
	if code != exitOK || s.paid != 1 {
		t.Errorf("exit %d, paid %d times", code, s.paid)
	}
}

// TestToolsCallStores: with the store of a gateway a side effect happens once for each key, and the audit has every call.
func TestToolsCallStores(t *testing.T) {
	s := newShop(t)
	type step struct {
		flags []string
		says  string
		paid  int // in all
	}
	for i, step := range []step{
		{[]string{"gift", `{"ref":"r1"}`, "--key", "k1"}, `"ref": "r1"`, 1},
		{[]string{"gift", `{"ref":"r1"}`, "--key", "k1"}, `"_idempotent_cache_hit": true`, 1},
		{[]string{"gift", `{"ref":"r1"}`, "--key", "k2"}, `"ref": "r1"`, 2},
		{[]string{"gift", `{"ref":"r1"}`, "--key", "k1", "--user", "bob"}, `"ref": "r1"`, 3},
		{[]string{"gift", `{"ref":"r1"}`}, `"ref": "r1"`, 4}, // without a key each call is another side effect
		{[]string{"gift", `{"ref":"r1"}`}, `"ref": "r1"`, 5},
		{[]string{"pay", `{"ref":"r1"}`, "--key", "k3", "--yes"}, `"ref": "r1"`, 6},
		{[]string{"pay", `{"ref":"r1"}`}, "CONFIRMATION_REQUIRED", 6},
		{[]string{"plan", `{"ref":"r1"}`}, `"pay": "CONFIRMATION_REQUIRED"`, 7},
	} {
		stdout, stderr, _ := s.calls(append(step.flags, "--store")...)
		if !strings.Contains(stdout, step.says) || s.paid != step.paid {
			t.Errorf("call %d: paid %d times, want %d\n%s\n%s", i+1, s.paid, step.paid, stdout, stderr)
		}
	}
	var lines []string
	for _, r := range s.audited() {
		line := string(r.Event) + " " + r.ToolID
		switch {
		case r.CacheHit:
			line += " cached"
		case r.Confirmation != "":
			line += " " + r.Confirmation
		case r.ParentCallID != "":
			line += " nested"
		}
		if r.UserID == "" || r.SessionID == "" || r.Agent != "default" {
			t.Errorf("the record lacks its principal: %+v", r)
		}
		lines = append(lines, line)
	}
	want := strings.Join([]string{
		"tool_execution gift", "tool_execution gift cached", "tool_execution gift", "tool_execution gift", "tool_execution gift", "tool_execution gift",
		"tool_execution pay required", "tool_execution pay approved",
		"tool_execution pay required", "confirmation pay denied",
		"tool_note plan", "tool_execution gift nested", "tool_execution pay required", "tool_execution plan nested", "tool_execution plan",
	}, "\n")
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the audit has\n%s\nand should have\n%s", got, want)
	}
	kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(s.dir, "store"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if open, err := kept.Approvals.Open(t.Context(), time.Now()); err != nil || len(open) > 0 {
		t.Errorf("approvals without an outcome: %+v, %v", open, err)
	}
}

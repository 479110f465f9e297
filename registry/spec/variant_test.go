package spec

import "testing"

// TestDisagreements: each field that affects budgets, approval, access or the ledger must be the same in both
// versions of a tool, in either direction; other fields may differ.
func TestDisagreements(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string // empty if it may differ
	}{
		"words":        {func(s *Spec) { s.Description, s.Title = "Other words.", "Other" }, ""},
		"time":         {func(s *Spec) { s.TimeoutMS, s.LatencyBudgetMS = 9000, 900 }, ""},
		"category":     {func(s *Spec) { s.Category = CategoryRetrieval }, "/category"},
		"side effects": {func(s *Spec) { s.SideEffects = SideEffectsWrites }, "/sideEffects"},
		"approval":     {func(s *Spec) { s.RequiresConfirmation = true }, "/requiresConfirmation"},
		"conditions":   {func(s *Spec) { s.ConfirmWhen = []ConfirmWhen{{Argument: "amount"}} }, "/confirmWhen"},
		"modes":        {func(s *Spec) { s.AllowedModes = []Mode{ModeText} }, "/allowedModes"},
		"scopes":       {func(s *Spec) { s.Requires = []string{"a.b"} }, "/requires"},
		"rate":         {func(s *Spec) { s.RateLimit = &RateLimit{Calls: 1, Window: "1h"} }, "/rateLimit"},
		"business key": {func(s *Spec) { s.IdempotencyKey = "{name}" }, "/idempotencyKey"},
		"long work":    {func(s *Spec) { s.Job = new(Job) }, "/variantOf"},
	} {
		main := Spec{ToolID: "look", Version: "1.0.0", Category: CategoryUtility, SideEffects: SideEffectsNone, AllowedModes: []Mode{ModeText, ModeVoice}}
		next := main
		next.ToolID, next.VariantOf, next.Version = "look_next", "look", "2.0.0"
		turned := next
		turned.AllowedModes = []Mode{ModeVoice, ModeText}
		if found := Disagreements(&main, &turned); len(found) > 0 {
			t.Fatalf("equal ones: %v", found)
		}
		changed := main
		c.change(&changed)
		other := next
		c.change(&other)
		for _, pair := range [][2]*Spec{{&main, &other}, {&changed, &next}} {
			switch found := Disagreements(pair[0], pair[1]); {
			case c.want == "" && len(found) > 0, c.want != "" && (len(found) != 1 || found[0].Path != c.want):
				t.Errorf("%s: %v, want %q", name, found, c.want)
			}
		}
	}
}

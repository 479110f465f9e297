package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// orderTool returns a schema.json with arguments of many types, and more fields.
func orderTool(more string) string {
	return `{
  "toolId": "order", "version": "1.0.0", "description": "Orders.", "category": "action", "sideEffects": "writes",
  "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text", "voice"], "latencyBudgetMs": 800, ` + more + `
  "parameters": {
    "type": "object",
    "properties": {
      "amount": {"type": "number"}, "count": {"type": "integer", "default": 1}, "limit": {"type": ["integer", "null"]},
      "kind": {"type": "string", "enum": ["gift", "sale"]}, "urgent": {"type": "boolean"},
      "guests": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string"},
      "slot": {"$ref": "#/$defs/slot"},
      "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}, "additionalProperties": false}},
      "start": {"type": "string", "format": "date-time"}, "end": {"type": "string", "format": "date-time"}
    },
    "$defs": {"slot": {"type": "object", "properties": {"length": {"type": "integer"}}, "additionalProperties": false}},
    "additionalProperties": false
  }
}`
}

// prepared returns a call of that tool.
func prepared(t *testing.T, more, args string) *Prepared {
	t.Helper()
	parsed, problems := spec.Parse([]byte(orderTool(more)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := Entry{Spec: parsed, Summary: "Orders.", Guide: "# order\n", Forms: Forms{OpenAI: parsed.Parameters, OpenAIChat: parsed.Parameters, Gemini: parsed.Parameters}}
	probe := Bind(func(context.Context, Call[json.RawMessage, none]) (Result, error) { return Result{}, nil })
	p, refused := mustLoad(t, Options{Handlers: map[string]Handler{"order": probe}}, e).Snapshot().Prepare("order", spec.ModeText, json.RawMessage(args))
	if refused != nil {
		t.Fatalf("%s", refused.Encode())
	}
	return p
}

// TestNeedsApproval: the user is asked if one condition holds, or may hold.
func TestNeedsApproval(t *testing.T) {
	for _, c := range []struct {
		when, args string
		asks       bool
	}{
		{`{"argument": "amount", "above": 100}`, `{"amount": 100}`, false},
		{`{"argument": "amount", "above": 100}`, `{"amount": 100.01}`, true},
		{`{"argument": "amount", "above": 100}`, `{"amount": 1e2}`, false},
		{`{"argument": "amount", "above": 100}`, `{}`, true},
		{`{"argument": "amount", "below": 0.1}`, `{"amount": 0.1}`, false},
		{`{"argument": "amount", "below": 0.1}`, `{"amount": -3}`, true},
		{`{"argument": "count", "above": 1}`, `{}`, false}, // its default
		{`{"argument": "limit", "above": 1}`, `{"limit": 1}`, false},
		{`{"argument": "limit", "above": 1}`, `{"limit": null}`, true},
		{`{"argument": "kind", "is": "sale"}`, `{"kind": "gift"}`, false},
		{`{"argument": "kind", "is": "sale"}`, `{"kind": "sale"}`, true},
		{`{"argument": "kind", "is": "sale"}`, `{}`, true},
		{`{"argument": "kind", "not": "gift"}`, `{"kind": "gift"}`, false},
		{`{"argument": "kind", "not": "gift"}`, `{"kind": "sale"}`, true},
		{`{"argument": "kind", "not": "gift"}`, `{}`, true},
		{`{"argument": "urgent", "is": true}`, `{"urgent": false}`, false},
		{`{"argument": "count", "not": 1}`, `{"count": 1.0}`, false},
		{`{"argument": "guests", "empty": false}`, `{"guests": []}`, false},
		{`{"argument": "guests", "empty": false}`, `{"guests": ["ada"]}`, true},
		{`{"argument": "guests", "empty": false}`, `{}`, false},
		{`{"argument": "guests", "empty": true}`, `{}`, true},
		{`{"argument": "note", "empty": false}`, `{"note": " "}`, false},
		{`{"argument": "slot", "empty": false}`, `{"slot": {"length": 1}}`, true},
		{`{"argument": "slot.length", "above": 60}`, `{"slot": {"length": 60}}`, false},
		{`{"argument": "slot.length", "above": 60}`, `{"slot": {}}`, true},
		{`{"argument": "amount", "above": 100}, {"argument": "guests", "empty": false}`, `{"amount": 1}`, false},
		{`{"argument": "amount", "above": 100}, {"argument": "guests", "empty": false}`, `{"amount": 1, "guests": ["ada"]}`, true},
	} {
		if p := prepared(t, `"confirmWhen": [`+c.when+`],`, c.args); p.NeedsApproval() != c.asks {
			t.Errorf("%s with %s asks: %v", c.when, c.args, !c.asks)
		}
	}
	if !prepared(t, "", `{}`).NeedsApproval() {
		t.Error("without conditions the user is not asked")
	}
	other := spec.ConfirmWhen{Argument: "amount", Above: new(json.Number("1"))}
	for _, v := range []any{"1", true, []any{}, map[string]any{}} { // of types that the schema would refuse
		if !other.Asks(map[string]any{"amount": v}) {
			t.Errorf("the user is not asked about %v", v)
		}
	}
	if is := (spec.ConfirmWhen{Argument: "a", Is: json.RawMessage(`"1"`)}); !is.Asks(map[string]any{"a": json.Number("1")}) || !is.Asks(map[string]any{"a": []any{}}) {
		t.Error("a value of another type is not asked about")
	}
	if no := (spec.ConfirmWhen{Argument: "a", Empty: new(true)}); !no.Asks(map[string]any{"a": json.Number("1")}) {
		t.Error("the user is not asked whether a number is empty")
	}
}

// TestConfirmWhenRefused: all invalid conditions are reported at once.
func TestConfirmWhenRefused(t *testing.T) {
	for when, want := range map[string]string{
		`5`:                                      "/confirmWhen: \"confirmWhen\" is a list",
		`[]`:                                     "/confirmWhen: \"confirmWhen\" is a list",
		`[5, {"argument": "amout", "above": 1}]`: "/confirmWhen/0: An entry is an object|/confirmWhen/1/argument: The parameters have no \"amout\"",
		`[{"argument": "slot.size", "above": 1}]`: "/confirmWhen/0/argument: The parameters have no \"slot.size\"",
		`[{"above": 1}]`:                                       "/confirmWhen/0/argument: The key",
		`[{"argument": "amount"}]`:                             "/confirmWhen/0: A condition has exactly one",
		`[{"argument": "amount", "above": 1, "below": 0}]`:     "/confirmWhen/0: A condition has exactly one",
		`[{"argument": "amount", "abov": 1}]`:                  "/confirmWhen/0/abov: The key \"abov\" is not known",
		`[{"argument": "amount", "above": "100"}]`:             "/confirmWhen/0/above: \"above\" is a number to compare with",
		`[{"argument": "kind", "above": 1}]`:                   "/confirmWhen/0/above: \"above\" compares numbers",
		`[{"argument": "slot.length", "is": "long"}]`:          "/confirmWhen/0/is: \"slot.length\" has the type integer",
		`[{"argument": "kind", "is": "gifts"}]`:                "/confirmWhen/0/is: \"gifts\" is not a valid value",
		`[{"argument": "kind", "not": null}]`:                  "/confirmWhen/0/not: \"not\" compares with a text",
		`[{"argument": "amount", "empty": true}]`:              "/confirmWhen/0/empty: Only a text, a list or an object",
		`[{"argument": "guests", "empty": 1}]`:                 "/confirmWhen/0/empty: \"empty\" is true or false",
		`[{"argument": "urgent", "is": 1}, {"argument": "x"}]`: "/confirmWhen/0/is: \"urgent\" has the type boolean|/confirmWhen/1: A condition has exactly one|/confirmWhen/1/argument: The parameters",
	} {
		_, problems := spec.Parse([]byte(orderTool(`"confirmWhen": ` + when + `,`)))
		wants := strings.Split(want, "|")
		if len(problems) != len(wants) {
			t.Errorf("%s: %v", when, problems)
			continue
		}
		for _, w := range wants {
			if !slices.ContainsFunc(problems, func(p document.Problem) bool { return strings.HasPrefix(p.String(), w) }) {
				t.Errorf("%s: %q is missing from %v", when, w, problems)
			}
		}
	}
	never := strings.Replace(orderTool(`"confirmWhen": [{"argument": "amount", "above": 1}],`), `"requiresConfirmation": true`, `"requiresConfirmation": false`, 1)
	if _, problems := spec.Parse([]byte(never)); len(problems) != 1 || !strings.Contains(problems[0].Message, "so none does") {
		t.Errorf("conditions of a tool that never asks: %v", problems)
	}
}

// TestConfirmWhenIsInTheFile: the conditions pass through the registry's file unchanged.
func TestConfirmWhenIsInTheFile(t *testing.T) {
	const when = `[{"argument":"amount","above":1e2},{"argument":"kind","is":"gift"},{"argument":"guests","empty":false}]`
	if got, err := json.Marshal(prepared(t, `"confirmWhen": `+when+`,`, `{}`).Tool().ConfirmWhen); err != nil || string(got) != when {
		t.Errorf("loaded: %s, %v", got, err)
	}
}

// TestPreviewForms: lists and times are readable.
func TestPreviewForms(t *testing.T) {
	for _, c := range []struct{ preview, args, want string }{
		{"{start..end|time}", `{"start": "2026-11-24T10:00:00+01:00", "end": "2026-11-24T11:00:00+01:00"}`, "Tue 24 Nov 2026, 10:00 to 11:00 (UTC+1)"},
		{"{start..end|time}", `{"start": "2026-11-24T23:00:00-03:30", "end": "2026-11-25T03:30:00Z"}`, "Tue 24 Nov 2026, 23:00 to Wed 25 Nov 2026, 00:00 (UTC-3:30)"},
		{"{start..end|time in Europe/Oslo}", `{"start": "2026-07-24T08:00:00Z", "end": "2026-07-24T09:00:30Z"}`, "Fri 24 Jul 2026, 10:00 to 11:00:30 (Europe/Oslo, UTC+2)"},
		{"{start|time in UTC}", `{"start": "2026-11-24T10:00:00+01:00"}`, "Tue 24 Nov 2026, 09:00 (UTC)"},
		{"{start|time in Etc/UTC}", `{"start": "2026-11-24T10:00:00+01:00"}`, "Tue 24 Nov 2026, 09:00 (UTC)"},
		{"{start|time}[ to {end|time}]", `{"start": "2026-11-24T10:00:00Z"}`, "Tue 24 Nov 2026, 10:00 (UTC)"},
		{"{start..end|time}", `{"start": "2026-11-24T10:00:00Z"}`, "Tue 24 Nov 2026, 10:00 (UTC)"},
		{"{guests|list}", `{"guests": ["ada"]}`, "ada"},
		{"{guests|list}", `{"guests": ["ada", "bob", "cem"]}`, "ada, bob and cem"},
		{"Order[ for {guests|list}]", `{"guests": []}`, "Order"},
		{"{items|list: {count} x {name}}.", `{"items": [{"name": "nut", "count": 2}, {"name": "bolt", "count": 1}]}`, "2 x nut and 1 x bolt."},
		{"{amount} | {{|list}}", `{"amount": 1}`, "1 | {|list}"},
	} {
		preview, err := json.Marshal(c.preview)
		if err != nil {
			t.Fatal(err)
		}
		if got := prepared(t, `"preview": `+string(preview)+`,`, c.args).Preview(); got != c.want {
			t.Errorf("%s: %q, want %q", c.preview, got, c.want)
		}
	}
	for preview, want := range map[string]string{
		"{amount|money}":                "what stands behind |",
		"{amount|time}":                 "not a time",
		"{start..amount|time}":          "not a time",
		"{start..stop|time}":            "not an argument",
		"{start|time in Europe/Olso}":   "IANA name",
		"{start|time in Local}":         "IANA name",
		"{start|time in }":              "what stands behind |",
		"{amount|list}":                 "not a list",
		"{items|list}":                  "list of objects",
		"{items|list: {price}}":         "not an argument",
		"{items|list: {count}":          "single brace",
		"{guests|list: {name}}":         "not an argument",
		"{nobody|list}":                 "not an argument",
		"{items|list: {count|list: x}}": "single brace|names no argument|not an argument",
	} {
		_, problems := spec.Parse([]byte(orderTool(`"preview": "` + preview + `",`)))
		if len(problems) != 1 || problems[0].Path != "/preview" || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(problems[0].Message, w) }) && !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: %v, want %q", preview, problems, want)
		}
	}
	if _, problems := spec.Parse([]byte(orderTool(`"idempotencyKey": "{guests|list}",`))); len(problems) != 1 {
		t.Errorf("a key with a form: %v", problems)
	}
}

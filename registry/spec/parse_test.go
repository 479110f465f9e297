package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry/document"
)

func TestParse(t *testing.T) {
	s, problems := Parse([]byte(testutil.KBSearchSchema))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s.Parameters = nil
	want := Spec{
		ToolID: "kb_search", Version: "1.2.0", Description: "Finds records.", Category: CategoryRetrieval, SideEffects: SideEffectsReadOnly,
		Idempotent: true, AllowedModes: []Mode{ModeText, ModeVoice}, LatencyBudgetMS: 800, TimeoutMS: 2000,
		IdempotencyKey: "{namespace}/{query}", Preview: "Search {query} in {namespace}", Clamp: map[Mode]map[string]int{ModeVoice: {"top_k": 3}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if s, _ := Parse([]byte(testutil.ChangeJSON(t, testutil.KBSearchSchema, `timeoutMs: null`))); s.TimeoutMS != DefaultTimeoutMS {
		t.Errorf("timeoutMs is %d by default", s.TimeoutMS)
	}
}

// TestParseRefuses breaks one field at a time of a valid schema.json.
func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, change, path, message string }{
		{"unknown key", `allowedMode: ["text"]`, "/allowedMode", `did you mean "allowedModes"?`},
		{"no toolId", `toolId: null`, "/toolId", "missing"},
		{"toolId is a number", `toolId: 5`, "/toolId", "is a string"},
		{"toolId with dashes", `toolId: "kb-search"`, "/toolId", "underscores"},
		{"toolId in Unicode", `toolId: "kb_sеarch"`, "/toolId", "lower-case letters"}, // a Cyrillic e
		{"toolId too long", `toolId: "` + strings.Repeat("x", 65) + `"`, "/toolId", "at most 64"},
		{"toolId is built in", `toolId: "describe_tool"`, "/toolId", "built in"},
		{"no version", `version: null`, "/version", "missing"},
		{"version", `version: "1.0"`, "/version", "semver"},
		{"version with a leading zero", `version: "1.02.0"`, "/version", "semver"},
		{"title too long", `title: "` + strings.Repeat("x", 81) + `"`, "/title", "81 characters"},
		{"title of two lines", `title: "Find\nit"`, "/title", "one line"},
		{"title without a word", `title: "***"`, "/title", "no word"},
		{"tags are a text", `tags: "kb"`, "/tags", "a list"},
		{"no tags", `tags: []`, "/tags", "leave it out"},
		{"too many tags", `tags: ["a","b","c","d","e","f","g","h","i","j","k"]`, "/tags", "at most 10"},
		{"a tag in capitals", `tags: ["kb", "Search"]`, "/tags/1", "lower-case letters"},
		{"a tag twice", `tags: ["kb", "kb"]`, "/tags/1", "twice"},
		{"output is a list", `output: []`, "/output", "JSON Schema object"},
		{"output without a property", `output: {"type": "object"}`, "/output", "omits \"output\""},
		{"output of a list", `output: {"type": "array", "items": {"type": "string"}}`, "/output/type", "The output must be an object"},
		{"output with a default", `output: {"type":"object","properties":{"a":{"type":"string","default":"b"}},"additionalProperties":false}`, "/output/properties/a/default", "sent unchanged"},
		{"output that is open", `output: {"type":"object","properties":{"a":{"type":"object","properties":{}}},"additionalProperties":false}`, "/output/properties/a", "allows unknown properties"},
		{"dynamic is a list", `dynamic: []`, "/dynamic", "an object"},
		{"dynamic without any", `dynamic: {}`, "/dynamic", "leave it out"},
		{"an unknown source", `dynamic: {"/properties/query/enum": "agents"}`, "/dynamic/~1properties~1query~1enum", "one of"},
		{"a source that is misspelt", `dynamic: {"/properties/query/enum": "calendar"}`, "/dynamic/~1properties~1query~1enum", `did you mean "calendars"?`},
		{"a dynamic enum without a schema", `dynamic: {"/properties/quary/enum": "tools"}`, "/dynamic/~1properties~1quary~1enum", "no schema at"},
		{"a dynamic value outside an enum", `dynamic: {"/properties/query": "tools"}`, "/dynamic/~1properties~1query", "must be at an enum"},
		{"a filled number", `dynamic: {"/properties/top_k/enum": "tools"}`, "/dynamic/~1properties~1top_k~1enum", "must be texts"},
		{"a filled enum with bounds", `dynamic: {"/properties/query/enum": "tools"}`, "/dynamic/~1properties~1query~1enum", `remove "maxLength"`},
		{"a filled enum with values", `dynamic: {"/properties/namespace/enum": "namespaces"}`, "/dynamic/~1properties~1namespace~1enum", `remove "default"`},
		{"a version of itself", `variantOf: "kb_search"`, "/variantOf", "cannot be a version of itself"},
		{"a version of an invalid id", `variantOf: "KB"`, "/variantOf", "toolId of another tool"},
		{"a version of a number", `variantOf: 1`, "/variantOf", "is a string"},
		{"settings are a list", `settings: []`, "/settings", "1 to 32 settings"},
		{"settings without any", `settings: {}`, "/settings", "leave it out"},
		{"a setting called enabled", `settings: {"enabled": {"type":"boolean","description":"D"}}`, "/settings/enabled", "already has"},
		{"a setting with a dash", `settings: {"base-url": {"type":"string","description":"D"}}`, "/settings/base-url", "underscores"},
		{"a setting is a text", `settings: {"a": "b"}`, "/settings/a", "an object with"},
		{"a setting without a type", `settings: {"a": {"description":"D"}}`, "/settings/a/type", "missing"},
		{"a setting of another type", `settings: {"a": {"type":"int","description":"D"}}`, "/settings/a/type", "one of"},
		{"a setting without a description", `settings: {"a": {"type":"string"}}`, "/settings/a/description", "missing"},
		{"a setting with another key", `settings: {"a": {"type":"string","description":"D","secrt":true}}`, "/settings/a/secrt", `did you mean "secret"?`},
		{"a secret number", `settings: {"a": {"type":"integer","description":"D","secret":true}}`, "/settings/a/secret", "A secret must be a string"},
		{"a secret in the schema", `settings: {"a": {"type":"string","description":"D","secret":true,"default":"x"}}`, "/settings/a/default", "must not be in schema.json"},
		{"a default of another type", `settings: {"a": {"type":"integer","description":"D","default":"x"}}`, "/settings/a/default", "a value of the type integer"},
		{"a duration without its unit", `settings: {"a": {"type":"duration","description":"D","default":"5"}}`, "/settings/a/default", "with its unit"},
		{"a list of numbers", `settings: {"a": {"type":"list","description":"D","default":[1]}}`, "/settings/a/default", "a list of texts"},
		{"no description", `description: null`, "/description", "missing"},
		{"empty description", `description: " "`, "/description", "empty"},
		{"long description", `description: "` + strings.Repeat("ä", 1025) + `"`, "/description", "1025 characters"},
		{"no category", `category: null`, "/category", "missing"},
		{"bad category", `category: "retrival"`, "/category", `did you mean "retrieval"?`},
		{"category is a list", `category: ["action"]`, "/category", "one of"},
		{"no sideEffects", `sideEffects: null`, "/sideEffects", "missing"},
		{"bad sideEffects", `sideEffects: "readonly"`, "/sideEffects", `did you mean "read_only"?`},
		{"a retrieval that writes", `sideEffects: "writes"`, "/sideEffects", "only reads"},
		{"a retrieval that is not idempotent", `idempotent: false`, "/idempotent", "idempotent"},
		{"no idempotent", `idempotent: null`, "/idempotent", "missing"},
		{"idempotent is a string", `idempotent: "true"`, "/idempotent", "true or false"},
		{"no requiresConfirmation", `requiresConfirmation: null`, "/requiresConfirmation", "missing"},
		{"no allowedModes", `allowedModes: null`, "/allowedModes", "missing"},
		{"empty allowedModes", `allowedModes: []`, "/allowedModes", "at least one"},
		{"allowedModes is a string", `allowedModes: "text"`, "/allowedModes", "a list"},
		{"bad mode", `allowedModes: ["voice", "chat"]`, "/allowedModes/1", `got "chat"`},
		{"a mode twice", `allowedModes: ["voice", "voice"]`, "/allowedModes/1", "twice"},
		{"requires is a string", `requires: "a.b"`, "/requires", "a list of scopes"},
		{"empty requires", `requires: []`, "/requires", "leave it out"},
		{"requires too much", `requires: [` + strings.Repeat(`"a",`, 32) + `"b"]`, "/requires", "at most 32"},
		{"required scope with a space", `requires: ["a.b", "calendar write"]`, "/requires/1", "letters, digits"},
		{"required scope is a number", `requires: [1]`, "/requires/0", "letters, digits"},
		{"a required scope twice", `requires: ["a.b", "c", "a.b"]`, "/requires/2", "appears twice"},
		{"rateLimit is a number", `rateLimit: 5`, "/rateLimit", "an object"},
		{"rateLimit without calls", `rateLimit: {"window": "1h"}`, "/rateLimit/calls", "missing"},
		{"rateLimit without a window", `rateLimit: {"calls": 5}`, "/rateLimit/window", "missing"},
		{"rateLimit with another key", `rateLimit: {"calls": 5, "window": "1h", "windows": 1}`, "/rateLimit/windows", `did you mean "window"?`},
		{"rateLimit of no calls", `rateLimit: {"calls": 0, "window": "1h"}`, "/rateLimit/calls", "from 1 to 1000"},
		{"rateLimit of a half", `rateLimit: {"calls": 0.5, "window": "1h"}`, "/rateLimit/calls", "whole number"},
		{"rateLimit in a day of another unit", `rateLimit: {"calls": 5, "window": "1d"}`, "/rateLimit/window", "1s to 24h"},
		{"rateLimit in too long a window", `rateLimit: {"calls": 5, "window": "24h1s"}`, "/rateLimit/window", "1s to 24h"},
		{"rateLimit in too short a window", `rateLimit: {"calls": 5, "window": "999ms"}`, "/rateLimit/window", "1s to 24h"},
		{"rateLimit in a number", `rateLimit: {"calls": 5, "window": 3600}`, "/rateLimit/window", "got 3600"},
		{"availability is a list", `availability: []`, "/availability", "an object with conditions"},
		{"availability without a condition", `availability: {}`, "/availability", "leave it out"},
		{"availability with another key", `availability: {"agent": ["desk"]}`, "/availability/agent", `did you mean "agents"?`},
		{"availability of no agent", `availability: {"agents": []}`, "/availability/agents", "gives the tool to no one"},
		{"availability of null", `availability: {"agents": null}`, "/availability/agents", "is a list"},
		{"availability of an agent twice", `availability: {"agents": ["a", "a"]}`, "/availability/agents/1", "appears twice"},
		{"availability of a blank agent", `availability: {"agents": [" "]}`, "/availability/agents/0", "id of an agent"},
		{"availability of a broken scope", `availability: {"scopes": ["a b"]}`, "/availability/scopes/0", "A scope"},
		{"availability of a broken feature", `availability: {"features": ["Beta"]}`, "/availability/features/0", "name of a feature"},
		{"times without a zone", `availability: {"times": [{"from": "09:00"}]}`, "/availability/zone", "missing"},
		{"a zone without times", `availability: {"zone": "UTC", "agents": ["a"]}`, "/availability/zone", "has no effect"},
		{"an unknown zone", `availability: {"times": [{"from": "09:00"}], "zone": "Europe/Olso"}`, "/availability/zone", "IANA name"},
		{"the zone of the machine", `availability: {"times": [{"from": "09:00"}], "zone": "Local"}`, "/availability/zone", "IANA name"},
		{"no window", `availability: {"times": [], "zone": "UTC"}`, "/availability/times", "gives the tool to no one"},
		{"an empty window", `availability: {"times": [{}], "zone": "UTC"}`, "/availability/times/0", "at least one of"},
		{"a window with another key", `availability: {"times": [{"form": "09:00"}], "zone": "UTC"}`, "/availability/times/0/form", `did you mean "from"?`},
		{"an unknown weekday", `availability: {"times": [{"weekdays": ["mon", "Tue"]}], "zone": "UTC"}`, "/availability/times/0/weekdays/1", `did you mean "tue"?`},
		{"a weekday twice", `availability: {"times": [{"weekdays": ["mon", "mon"]}], "zone": "UTC"}`, "/availability/times/0/weekdays/1", "appears twice"},
		{"no weekday", `availability: {"times": [{"weekdays": []}], "zone": "UTC"}`, "/availability/times/0/weekdays", "every day"},
		{"a window backwards", `availability: {"times": [{"from": "17:00", "to": "09:00"}], "zone": "UTC"}`, "/availability/times/0/to", "write two"},
		{"a window of no time", `availability: {"times": [{"from": "09:00", "to": "09:00"}], "zone": "UTC"}`, "/availability/times/0/to", "never applies"},
		{"no time of day", `availability: {"times": [{"from": "24:00"}], "zone": "UTC"}`, "/availability/times/0/from", "time of day"},
		{"dates backwards", `availability: {"times": [{"since": "2026-12-02", "until": "2026-12-01"}], "zone": "UTC"}`, "/availability/times/0/until", "never applies"},
		{"no date", `availability: {"times": [{"since": "2026-02-30"}], "zone": "UTC"}`, "/availability/times/0/since", "a date"},
		{"dates without the weekday", `availability: {"times": [{"weekdays": ["mon"], "since": "2026-11-24", "until": "2026-11-29"}], "zone": "UTC"}`, "/availability/times/0/weekdays", "never applies"},
		{"no latencyBudgetMs", `latencyBudgetMs: null`, "/latencyBudgetMs", "missing"},
		{"latencyBudgetMs is a fraction", `latencyBudgetMs: 1.5`, "/latencyBudgetMs", "whole number"},
		{"latencyBudgetMs is zero", `latencyBudgetMs: 0`, "/latencyBudgetMs", "from 1"},
		{"latencyBudgetMs beyond timeoutMs", `latencyBudgetMs: 2001`, "/latencyBudgetMs", "longer than"},
		{"timeoutMs too large", `timeoutMs: 300001`, "/timeoutMs", "to 300000"},
		{"bad behavior", `behavior: "async"`, "/behavior", "one of"},
		{"bad scheduling", `scheduling: "later"`, "/scheduling", "one of"},
		{"cancellable is null-like", `cancellable: 0`, "/cancellable", "true or false"},
		{"template with a lone brace", `preview: "a {query"`, "/preview", "single brace"},
		{"template with a lone closing brace", `preview: "a} b"`, "/preview", "single brace"},
		{"template of an unknown argument", `preview: "{quary}"`, "/preview", `no "quary"`},
		{"template of an unknown part", `preview: "{filters.typo}"`, "/preview", `no "filters.typo"`},
		{"template without a name", `preview: "{}"`, "/preview", "names no argument"},
		{"business key of nothing", `idempotencyKey: "same"`, "/idempotencyKey", "names no argument"},
		{"clamp is a number", `clamp: 3`, "/clamp", "an object"},
		{"clamp of a mode that is not allowed", `clamp: {"chat": {"top_k": 3}}`, "/clamp/chat", "allowedModes"},
		{"clamp of a mode is a number", `clamp: {"voice": 3}`, "/clamp/voice", "an object"},
		{"clamp of an unknown argument", `clamp: {"voice": {"topk": 3}}`, "/clamp/voice/topk", "no \"topk\""},
		{"clamp of a string", `clamp: {"voice": {"query": 3}}`, "/clamp/voice/query", "not a number"},
		{"clamp to a fraction", `clamp: {"voice": {"top_k": 3.5}}`, "/clamp/voice/top_k", "whole number"},
		{"clamp below the minimum", `clamp: {"voice": {"top_k": 0}}`, "/clamp/voice/top_k", "below the minimum"},
		{"parameters without a property", `parameters: {"type": "object"}`, "/parameters", "omits \"parameters\""},
		{"parameters are a list", `parameters: []`, "/parameters", "JSON Schema object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Parse([]byte(testutil.ChangeJSON(t, testutil.KBSearchSchema, tt.change)))
			if tt.path == "/parameters" {
				problems = onlyAt(problems, tt.path)
			}
			if len(problems) != 1 || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.message) {
				t.Errorf("got %v, want %q at %s", problems, tt.message, tt.path)
			}
		})
	}
}

func onlyAt(problems []document.Problem, path string) []document.Problem {
	var at []document.Problem
	for _, p := range problems {
		if p.Path == path {
			at = append(at, p)
		}
	}
	return at
}

func TestParseReportsAllAtOnce(t *testing.T) {
	_, problems := Parse([]byte(`{
		"toolId": "X", "version": "1", "version": "2", "categry": "action", "sideEffects": "some", "idempotent": 1,
		"allowedModes": ["phone"], "latencyBudgetMs": "5",
		"parameters": {"type": "object", "properties": {"a": {"type": "string", "format": "phone"}, "b": {"$ref": "file:///etc/hostname"}}}
	}`))
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	want := []string{"/allowedModes/0", "/category", "/categry", "/description", "/idempotent", "/latencyBudgetMs", "/parameters/properties/a/format", "/parameters/properties/b/$ref",
		"/requiresConfirmation", "/sideEffects", "/toolId", "/version", "/version"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("%s\n%v", diff, problems)
	}
}

func TestParseInvalidSpec(t *testing.T) {
	for _, in := range []string{"", "null", "[]", "{", `"x"`, "{}}", "\x00"} {
		if _, problems := Parse([]byte(in)); len(problems) == 0 {
			t.Errorf("%q is accepted", in)
		}
	}
}

func TestTemplates(t *testing.T) {
	args, _, _ := document.Decode([]byte(`{"a":"x\"y","n":5.0,"o":{"p":[1,"z"]},"b":true,"no":false,"none":null,"empty":" ","list":[]}`), document.MaxArgsBytes, document.MaxArgsDepth)
	tests := []struct{ template, text, key string }{
		{"plain", "plain", "plain"},
		{"{a}:{n}", `x"y:5`, `"x\"y":5`},
		{"{o.p} {b} {no}", "1, z yes no", `[1,"z"] true false`},
		{"{o}", `{"p":[1,"z"]}`, `{"p":[1,"z"]}`},
		{"{gone}!", "!", "null!"},
		{"{{a}} {{{a}}}", `{a} {x"y}`, `{a} {"x\"y"}`},
		{"[ a {a}][ b {b}].", ` a x"y b yes.`, `[ a "x\"y"][ b true].`},
		{"[ {gone}][ {none}][ {empty}][ {list}][ {no}].", ".", `[ null][ null][ " "][ []][ false].`},
		{"[{a}{gone}]{n}", "5", `["x\"y"null]5`},
		{"[[{n}]]", "[5]", "[[5]]"},
	}
	for _, tt := range tests {
		preview, err := parseTemplate(tt.template, true)
		if err != nil {
			t.Fatal(tt.template, err)
		}
		key, err := parseTemplate(tt.template, false)
		if err != nil {
			t.Fatal(tt.template, err)
		}
		if text, key := preview.text(args, nil), key.key(args); text != tt.text || key != tt.key {
			t.Errorf("%s is %q and %q, want %q and %q", tt.template, text, key, tt.text, tt.key)
		}
	}
}

func TestInvalidTemplates(t *testing.T) {
	for text, want := range map[string]error{
		"{a": errBrace, "a}": errBrace, "[{a}": errBracket, "{a}]": errBracket, "[{a}[{b}]]": errBracket,
		"[a]": errSection, "{a}[]": errSection,
	} {
		if _, err := parseTemplate(text, true); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// TestAClampIsAValidValue: a valid call stays valid when an argument is lowered.
func TestAClampIsAValidValue(t *testing.T) {
	for property, refused := range map[string]bool{
		`{"type":"integer","minimum":1}`:          false,
		`{"type":"integer","multipleOf":5}`:       true,
		`{"type":"integer","enum":[1,5,10]}`:      true,
		`{"type":"integer","enum":[1,3,10]}`:      false,
		`{"type":"integer","exclusiveMinimum":3}`: true,
		`{"type":"integer","maximum":2}`:          false, // it never lowers a value
	} {
		_, problems := Parse([]byte(`{"toolId":"probe","version":"1.0.0","description":"Probes.","category":"utility","sideEffects":"none","idempotent":true,
			"requiresConfirmation":false,"allowedModes":["voice"],"latencyBudgetMs":100,"clamp":{"voice":{"n":3}},
			"parameters":{"type":"object","properties":{"n":` + property + `},"additionalProperties":false}}`))
		if (len(problems) > 0) != refused || refused && problems[0].Path != "/clamp/voice/n" {
			t.Errorf("%s: %v", property, problems)
		}
	}
}

// TestTextsInListsOfObjects: texts instead of objects are refused, even equal ones.
func TestTextsInListsOfObjects(t *testing.T) {
	for _, change := range []string{`confirmWhen: ["a", "a"]`, `availability: {"times": ["a", "a"], "zone": "UTC"}`, `settings: {"1": "a"}`, `dynamic: {"1": 2}`} {
		if _, problems := Parse([]byte(testutil.ChangeJSON(t, testutil.KBSearchSchema, change))); len(problems) == 0 {
			t.Errorf("%s is accepted", change)
		}
	}
}

// TestNoShare: a version of another tool cannot declare the setting "share", which every version has; another tool
// can.
func TestNoShare(t *testing.T) {
	share := `settings: {"share": {"type": "integer", "description": "How much."}}`
	if _, problems := Parse([]byte(testutil.ChangeJSON(t, testutil.KBSearchSchema, share))); len(problems) > 0 {
		t.Errorf("a tool of its own: %v", problems)
	}
	_, problems := Parse([]byte(testutil.ChangeJSON(t, testutil.KBSearchSchema, share, `variantOf: "kb"`)))
	if len(problems) != 1 || problems[0].Path != "/settings/share" || !strings.Contains(problems[0].Message, "the percentage of users") {
		t.Errorf("a version: %v", problems)
	}
}

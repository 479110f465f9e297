package config

import (
	"strings"
	"testing"

	"voicegw/internal/checks"
)

func TestChecks(t *testing.T) {
	one := func(more string) string { return "checks:\n  rules:\n    a: {" + more + "}\n" }
	for name, tt := range map[string]struct{ text, want string }{
		"words":                                {one(`kind: words, words: [a, "b, c"]`), ""},
		"patterns":                             {one(`kind: patterns, patterns: ["\\d{1,2}"], outcome: end`), ""},
		"an endpoint":                          {one(`kind: http, url: "https://h.example", on_failure: block`), ""},
		"a private endpoint":                   {one(`kind: http, url: "http://127.0.0.1/hidden", private: true`), ""},
		"a question":                           {one(`kind: model, question: "Is it rude?", outcome: replace, say: No.`), ""},
		"claims":                               {one(`kind: claims`), ""},
		"claims with words":                    {one(`kind: claims, words: [a]`), "checks.rules.a.words has no effect on a check of the kind claims"},
		"claims without a language":            {"claims: {languages: []}\n" + one(`kind: claims`), "checks.rules.a.kind is claims, but claims.languages is empty"},
		"no kind":                              {one(`words: [a]`), "checks.rules.a.kind must be one of"},
		"another kind":                         {one(`kind: regex`), "checks.rules.a.kind must be one of"},
		"no words":                             {one(`kind: words`), "checks.rules.a.words is missing"},
		"of another kind":                      {one(`kind: words, words: [a], url: "https://h.example"`), "checks.rules.a.url has no effect"},
		"a wrong pattern":                      {one(`kind: patterns, patterns: ["(a"]`), "checks.rules.a.patterns has the entry \"(a\", which is not a regular expression"},
		"nothing to say":                       {one(`kind: words, words: [a], outcome: replace`), "checks.rules.a.say is missing"},
		"ask":                                  {one(`kind: words, words: [a], outcome: ask`), "no person can approve words"},
		"another outcome":                      {one(`kind: words, words: [a], outcome: beep`), "checks.rules.a.outcome must be one of replace, cut, end"},
		"a private address without permission": {one(`kind: http, url: "https://10.1.2.3/hidden"`), "checks.rules.a.url names this machine or a private network"},
		"a short secret":                       {one(`kind: http, url: "https://h.example", secret: "whsec_aGlkZGVu"`), "checks.rules.a.secret has 6 bytes"},
		"an unknown name":                      {"checks: {order: [b]}\n", "checks.order has the entry \"b\""},
		"a duplicate name":                     {one(`kind: words, words: [x]`) + "  order: [a, a]\n", "checks.order has the entry \"a\""},
		"a long hold-back":                     {"checks: {hold_back: 1m}\n", "checks.hold_back must be from 0s to 10s"},
		"a nameless duration":                  {"checks: {hold_back: 800}\n", "checks.hold_back must be a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, tt.text, nil)
			switch {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("the error is %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "hidden"):
				t.Errorf("the error has a secret: %v", err)
			}
		})
	}
}

// TestCheckRules: checks keep their order, and a pattern may contain commas.
func TestCheckRules(t *testing.T) {
	cfg, _, err := load(t, `checks:
  order: [b, a]
  rules:
    a: {kind: patterns, patterns: ['\d{1,2}', 'x'], outcome: replace, say: No., on_failure: block}
    b: {kind: words, words: [w]}
    c: {kind: words, words: [left out]}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range cfg.Checks.Names() {
		r := cfg.Checks.Rules[name].Rule(name)
		got = append(got, r.Name, string(r.Outcome))
		if name == "a" && (len(r.Patterns) != 2 || r.Patterns[0].String() != `\d{1,2}` || !r.Block || r.Say != "No." || r.Outcome != checks.Replace) {
			t.Errorf("the rule is %+v", r)
		}
	}
	if strings.Join(got, " ") != "b cut a replace" {
		t.Errorf("the checks are %s", got)
	}
}

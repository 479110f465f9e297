package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/checks"
	"voicegw/internal/webhook"
)

// Checks are checks of the assistant's words before the user gets them.
type Checks struct {
	// How long speech waits for its [checks](checks.md), up to 10 s; 0 lets it pass and stops it afterwards.
	HoldBack time.Duration `key:"hold_back" from:"0s" to:"10s"`
	// Names of the checks in their order, without the ones to leave out.
	Order []string `key:"order" unset:"all, by name" eg:"[cards, slurs]"`
	// The checks, by their names.
	Rules CheckRules `key:"rules"`
}

// CheckRules are checks, by their names.
type CheckRules map[string]*Check

// Check is one check.
type Check struct {
	// `patterns`, `words`, `claims` (that no tool call explains), `http` or `model`.
	Kind string `key:"kind" unset:"needed" words:"patterns,words,claims,http,model" eg:"words"`
	// Regular expressions (RE2) that must not match: `(?i)` ignores case. A list in a file; commas separate them elsewhere.
	Patterns []string `key:"patterns" eg:"['\\b\\d{4}( ?\\d{4}){3}\\b']"`
	// Words and phrases that must not occur, in any case.
	Words []string `key:"words" eg:"[darn, son of a gun]"`
	// [Endpoint](checks.md#an-endpoint) that decides, `https` unless `private`. Never printed or logged.
	URL setting.Secret `key:"url" eg:"https://checks.example.com/voicegw"`
	// Signs requests to it, [as for webhooks](webhooks.md#a-request).
	Secret setting.Secret `key:"secret" eg:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
	// Allows `http` and private addresses.
	Private bool `key:"private"`
	// [Question](checks.md#a-model) to a model about the words: a yes refuses them.
	Question string `key:"question" eg:"Does it promise a refund?"`
	// The model's Chat Completions endpoint.
	BaseURL string `key:"base_url" is:"url" unset:"as for chat" eg:"http://localhost:11434/v1"`
	// Its key.
	APIKey setting.Secret `key:"api_key" unset:"as for chat" eg:"your-key"`
	// Model.
	Model string `key:"model" unset:"as for chat" eg:"gpt-5.6-luna"`
	// What follows refused words: `replace` (with `say`), `cut`, or `end` (the conversation).
	Outcome string `key:"outcome"`
	// Words that the user gets instead, or as farewell.
	Say string `key:"say" eg:"I cannot talk about that."`
	// Whether words `pass` or are refused (`block`) if the check fails or is late.
	OnFailure string `key:"on_failure" words:"pass,block"`
	// Time for a request.
	Timeout time.Duration `key:"timeout" from:"100ms" to:"1m"`
}

const (
	checksPrefix = "checks.rules."
	onFailPass   = "pass"
	onFailBlock  = "block"
)

// The values of Check.Kind.
const (
	checkPatterns = "patterns"
	checkWords    = "words"
	checkClaims   = "claims"
	CheckHTTP     = "http"
	CheckModel    = "model"
)

// Names returns the names of the checks to make, in their order.
func (c Checks) Names() []string {
	if len(c.Order) > 0 {
		return c.Order
	}
	return slices.Sorted(maps.Keys(c.Rules))
}

// Rule returns the check, without a Remote. Load has checked the patterns.
func (c *Check) Rule(name string) *checks.Rule {
	r := &checks.Rule{Name: name, Outcome: checks.Outcome(c.Outcome), Say: c.Say, Block: c.OnFailure == onFailBlock, Timeout: c.Timeout}
	switch c.Kind {
	case checkPatterns:
		for _, text := range c.Patterns {
			if p, err := regexp.Compile(text); err == nil {
				r.Patterns = append(r.Patterns, p)
			}
		}
	case checkWords:
		r.Words = c.Words
	case checkClaims:
		r.Claims = true
	}
	return r
}

// Secrets returns the secrets that sign its requests. Load has checked them.
func (c *Check) Secrets() []webhook.Secret { return parseSecrets(c.Secret) }

func (v validator) validateChecks() {
	c := v.config.Checks
	names := slices.Sorted(maps.Keys(c.Rules))
	if len(names) > checks.MaxRules {
		v.bad(checksPrefix+names[checks.MaxRules]+".kind", "There are %d checks; at most %d are allowed.", len(names), checks.MaxRules)
	}
	for i, name := range c.Order {
		v.wrongIf(c.Rules[name] == nil || slices.Contains(c.Order[:i], name), "checks.order", "has the entry %s, which is not a check or "+
			"comes twice; the checks are %s", quote(name), strings.Join(names, ", "))
	}
	for _, name := range names {
		v.validateCheck(checksPrefix+name+".", c.Rules[name])
	}
}

func (v validator) validateCheck(prefix string, c *Check) {
	kinds := []string{checkPatterns, checkWords, CheckHTTP, CheckModel, checkClaims}
	given := map[string]bool{checkPatterns: len(c.Patterns) > 0, checkWords: len(c.Words) > 0, CheckHTTP: c.URL.IsSet(),
		CheckModel: c.Question != ""}
	key := map[string]string{checkPatterns: "patterns", checkWords: "words", CheckHTTP: "url", CheckModel: "question"}
	switch {
	case !slices.Contains(kinds, c.Kind):
		return // reported already
	case c.Kind == checkClaims:
		v.wrongIf(len(v.config.Claims.Languages) == 0, prefix+"kind", "is claims, but claims.languages is empty, so no claim would "+
			"be found; name the languages there")
	case !given[c.Kind]:
		v.wrong(prefix+key[c.Kind], "is missing; a check of the kind %s needs it", c.Kind)
	}
	for _, other := range kinds {
		v.wrongIf(other != c.Kind && given[other], prefix+key[other], "has no effect on a check of the kind %s; remove it, or make "+
			"another check", c.Kind)
	}
	for _, text := range c.Patterns {
		_, err := regexp.Compile(text)
		v.wrongIf(err != nil, prefix+"patterns", "has the entry %s, which is not a regular expression: %v", quote(text), err)
	}
	switch checks.Outcome(c.Outcome) {
	case checks.Replace:
		v.wrongIf(strings.TrimSpace(c.Say) == "", prefix+"say", "is missing; with outcome: replace the user gets these words instead")
	case checks.Cut, checks.End:
	case "ask":
		v.wrong(prefix+"outcome", "is ask, but no person can approve words while the user waits for them; use replace, cut or end")
	default:
		v.oneOf(prefix+"outcome", c.Outcome, string(checks.Replace), string(checks.Cut), string(checks.End))
	}
	if c.Kind == CheckHTTP && c.URL.IsSet() {
		v.validateReceiver(prefix+"url", c.URL.Reveal(), c.Private)
	}
	v.validateSigning(prefix+"secret", c.Secret)
}

package server

import (
	"cmp"
	"fmt"
	"log/slog"

	"voicegw/config"
	"voicegw/internal/checks"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// newChecks makes the checks of the assistant's words; nil without any. sim may be nil. chat answers questions of checks
// without a model of their own.
func newChecks(cfg *config.Config, sim *sim.Local, chat textmodel.Model, logger *slog.Logger) (*checks.Set, error) {
	var rules []*checks.Rule
	for _, name := range cfg.Checks.Names() {
		c := cfg.Checks.Rules[name]
		r := c.Rule(name)
		switch c.Kind {
		case config.CheckHTTP:
			r.Remote = checks.NewEndpoint(name, c.URL.Reveal(), c.Private, c.Secrets()...)
		case config.CheckModel:
			if c.BaseURL == "" && c.Model == "" && !c.APIKey.IsSet() {
				r.Remote = checks.NewQuestion(c.Question, chat)
				break
			}
			o := chatOptions(cfg, sim)
			if c.BaseURL != "" {
				o.BaseURL, o.APIKey, o.Reasoning = c.BaseURL, "", ""
			}
			o.APIKey, o.Model, o.Retries = cmp.Or(c.APIKey.Reveal(), o.APIKey), cmp.Or(c.Model, o.Model), -1
			model, err := textmodel.New(o)
			if err != nil {
				return nil, fmt.Errorf("checks.rules.%s: %w", name, err)
			}
			r.Remote = checks.NewQuestion(c.Question, model)
		}
		rules = append(rules, r)
	}
	set, err := checks.New(cfg.Checks.HoldBack, logger, rules...)
	if err != nil {
		return nil, fmt.Errorf("checks.rules: %w", err)
	}
	return set, nil
}

// warnOfLag warns of models whose words come later than the hold-back waits for them.
func warnOfLag(logger *slog.Logger, set *checks.Set, providers []session.Provider, models map[string]transport.Transport) {
	if set == nil || set.HoldBack == 0 {
		return
	}
	for _, p := range providers {
		if needs := int64(models[p.Name].Capabilities(p.Model).TranscriptLagMS); needs > set.HoldBack.Milliseconds() {
			logger.Warn("some words of this model come after the hold-back and are heard unchecked; raise checks.hold_back",
				"provider", p.Name, "model", p.Model, "hold_back_ms", set.HoldBack.Milliseconds(), "lag_ms", needs)
		}
	}
}

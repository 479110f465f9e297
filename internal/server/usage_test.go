package server

import (
	"log/slog"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/auth"
)

// TestLimitsOfPrincipals: the configured limits apply to a key and to a user of an issuer; other callers have no limits.
func TestLimitsOfPrincipals(t *testing.T) {
	t.Parallel()
	key := auth.NewAPIKey()
	cfg := config.Default()
	cfg.Auth.Keys["web"] = &config.AuthKey{ID: key.ID(), SHA256: key.Hash().String(), Scopes: []string{"voice"}, Limits: config.AuthLimits{Sessions: 3, CostPerDay: 1.5}}
	cfg.Auth.JWT["idp"] = &config.AuthIssuer{
		Issuer: "i", Audience: []string{"voicegw"}, HSSecret: setting.NewSecret("0123456789abcdef0123456789abcdef"), Limits: config.AuthLimits{MinutesPerDay: 60},
	}
	s := &Server{toolset: toolset{cfg: cfg}, logger: slog.New(slog.DiscardHandler)}
	cfg.APIKey = setting.NewSecret("0123456789abcdef")
	who, err := s.authenticator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.auth = auth.Only(who)
	defer who.Close()
	for id, want := range map[string]auth.Limits{
		"key:" + key.ID(): {Sessions: 3, CostPerDay: 1.5}, "jwt:idp:ada": {MinutesPerDay: 60},
		"key:0123abcd": {}, "jwt:other:ada": {}, "operator": {}, "local": {}, "": {},
	} {
		if got := s.principal(id).Limits; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"voicegw/config/setting"
)

func TestSecretIsHidden(t *testing.T) {
	const hush = "hush-hush-1234"
	c := Default()
	c.Providers["openai"].APIKey = setting.NewSecret(hush)
	secret := c.Providers["openai"].APIKey
	hidden := struct{ inner setting.Secret }{secret}

	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(h).Info("start", "key", secret, "config", c, "pointer", &secret, "hidden", hidden)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{"slog": logged.String(), "json": string(asJSON), "yaml": string(asYAML)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		outputs[verb] = fmt.Sprintf(strings.Repeat(verb+" ", 4), secret, &secret, c, hidden)
	}
	for name, out := range outputs {
		if strings.Contains(out, hush) || strings.Contains(out, fmt.Sprintf("%x", hush)) {
			t.Errorf("%s shows the secret: %s", name, out)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, secret); got != "[redacted]" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	if secret.Reveal() != hush || !secret.IsSet() || (setting.Secret{}).IsSet() || (setting.Secret{}).String() != "" {
		t.Error("Reveal or IsSet is wrong")
	}
}

func TestProblemsDoNotShowSecrets(t *testing.T) {
	_, _, err := load(t, "providers: {openai: {api_key: \"hush hush\"}}\n", []string{"GEMINI_API_KEY=hush\thush", "VOICEGW_PROVIDERS_GEMINI_BASE_URL=ftp://hush@x"})
	if err == nil {
		t.Fatal("no problem was found")
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("a problem shows a secret:\n%v", err)
	}
}

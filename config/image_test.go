package config

import (
	"strings"
	"testing"
	"time"
)

func TestImages(t *testing.T) {
	c := mustLoad(t, `
image: {provider: gemini, model: imagen-4, dir: pictures, life: 1h, max_count: 5, max_mb: 50}
`, []string{"VOICEGW_IMAGE_API_KEY=k"})
	if i := c.Image; i.Dir != "dir/pictures" || i.APIKey.Reveal() != "k" || i.Life != time.Hour || i.MaxCount != 5 || i.MaxMB != 50 || i.Model != "imagen-4" {
		t.Errorf("got %+v", i)
	}
}

// TestImageProblems: a setting that would send a key to the wrong server, or images to none, is reported at the start.
func TestImageProblems(t *testing.T) {
	const openaiKey, geminiKey = "providers.openai.api_key=secret", "providers.gemini.api_key=secret"
	for name, tc := range map[string]struct {
		set         []string
		where, want string
	}{
		"nothing":              {nil, "", ""},
		"simulated, named":     {[]string{"image.provider=openai"}, "", ""},
		"of the provider":      {[]string{openaiKey, "image.provider=openai"}, "", ""},
		"unknown":              {[]string{"image.provider=midway"}, "--set", "one of auto, gemini, openai"},
		"the other has no key": {[]string{geminiKey, "image.provider=openai"}, "--set", "OPENAI_API_KEY"},
		"its own key":          {[]string{geminiKey, "image.provider=openai", "image.api_key=secret"}, "", ""},
		"an ambiguous key":     {[]string{"image.api_key=secret"}, "VOICEGW_IMAGE_PROVIDER", "the right one"},
		"a server":             {[]string{"image.base_url=http://localhost:9/v1"}, "", ""},
		"no URL":               {[]string{"image.base_url=localhost:9"}, "--set", "whole URL"},
		"a password":           {[]string{"image.base_url=http://u:secret@localhost"}, "--set", "password"},
		"too short":            {[]string{"image.life=1s"}, "--set", "image.life"},
		"no room":              {[]string{"image.max_mb=1"}, "--set", "image.max_mb"},
		"none":                 {[]string{"image.max_count=0"}, "--set", "image.max_count"},
		"a home folder":        {[]string{"image.dir=~/images"}, "--set", "~"},
	} {
		t.Run(name, func(t *testing.T) {
			var flags []Flag
			for _, one := range tc.set {
				key, value, _ := strings.Cut(one, "=")
				flags = append(flags, Flag{"--set", key, value})
			}
			_, _, err := Load(Source{Flags: flags})
			if tc.want == "" {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.where) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("the error is %v, want %s: %s", err, tc.where, tc.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

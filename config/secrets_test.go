package config

import (
	"slices"
	"testing"

	"voicegw/config/setting"
)

// TestSecrets: every configured secret is found, in any section.
func TestSecrets(t *testing.T) {
	c := Default()
	if got := c.Secrets(); len(got) != 0 {
		t.Errorf("%d secrets are found without settings", len(got))
	}
	c.APIKey, c.Providers["gemini"].APIKey, c.Providers["openai"].APIKey = setting.NewSecret("one"), setting.NewSecret("two"), setting.NewSecret("three")
	c.Chat.APIKey, c.Calendar.CalDAV.Password = setting.NewSecret("four"), setting.NewSecret("five")
	got := c.Secrets()
	slices.Sort(got)
	if want := []string{"five", "four", "one", "three", "two"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

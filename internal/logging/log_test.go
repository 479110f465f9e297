package logging

import (
	"bytes"
	"strings"
	"testing"
)

// TestTheLogHasNoSecrets: both log formats hide configured secrets and those of a known form.
func TestTheLogHasNoSecrets(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		Open(&out, "debug", format, "a-configured-key").Debug("dialling a-configured-key", "url", "wss://host/?key=AbCdEf", "token", "opaque")
		for _, secret := range []string{"a-configured-key", "AbCdEf", "opaque"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s: %s", format, &out)
			}
		}
	}
}

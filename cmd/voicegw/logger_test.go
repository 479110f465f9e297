package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestTheLogHasNoSecrets: not the configured ones and none of a known form, in either format.
func TestTheLogHasNoSecrets(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		newLog(&out, "debug", format, "a-configured-key").logger.Debug("dialling a-configured-key", "url", "wss://host/?key=AbCdEf", "token", "opaque")
		for _, secret := range []string{"a-configured-key", "AbCdEf", "opaque"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s: %s", format, &out)
			}
		}
	}
}

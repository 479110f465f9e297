package wire

import (
	"regexp"
	"testing"
)

// TestVersions: a version is that of all requested APIs.
func TestVersions(t *testing.T) {
	google := regexp.MustCompile("^" + Versions(GeminiAPI) + "$")
	both := regexp.MustCompile("^" + Versions(GeminiAPI, VertexAI) + "$")
	for version, want := range map[string][2]bool{
		"v1": {true, true}, "v1beta": {true, true}, "v1alpha": {true, true}, "v1beta1": {false, true}, "v2": {}, "v1beta2": {}, "": {},
	} {
		if got := [2]bool{google.MatchString(version), both.MatchString(version)}; got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

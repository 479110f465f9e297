package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"voicegw/config/setting"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// anyTools are tools with the names of voicegw.example.yaml.
var anyTools = []registry.Entry{
	{Spec: spec.Spec{ToolID: "weather_lookup", Settings: map[string]spec.Setting{"api_key": {Type: spec.SettingString, Secret: true, Default: []byte(`""`)}}}},
	toolOf("weather_lookup_next", "weather_lookup"),
}

// aKeySet is a key set of an issuer.
const aKeySet = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","use":"sig","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}`

// TestExampleFile reads voicegw.example.yaml unchanged, and with every commented setting enabled.
func TestExampleFile(t *testing.T) {
	data, err := os.ReadFile("../voicegw.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": string(data)}.ReadFile, Tools: anyTools})
	if err != nil {
		t.Errorf("unchanged:\n%v", err)
	}
	setting := regexp.MustCompile(`(?m)^( *)#([a-z0-9_-]+:)`)
	all := setting.ReplaceAllString(string(data), "$1$2")
	fs := files{"voicegw.yaml": all, "issuer-keys.json": aKeySet, "my-core.md": "x", "my-voice.md": "x", "my-text.md": "x", "scenario.yaml": "x", "faults.yaml": "x"}
	_, _, err = Load(Source{File: "voicegw.yaml", ReadFile: fs.ReadFile, Tools: anyTools})
	if err != nil {
		t.Errorf("with everything enabled:\n%v", err)
	}
}

// text formats the field as in a file, for the documentation.
func (f field) text() string {
	switch v := f.value.Interface().(type) {
	case time.Duration:
		s := v.String()
		s = strings.TrimSuffix(s, "0s")
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		if s == "" || !strings.ContainsAny(s[len(s)-1:], "smh") {
			return v.String()
		}
		return s
	case setting.File:
		return v.Path
	case []string:
		return strings.Join(v, ", ")
	case Certificates:
		return strings.Trim(fmt.Sprint(v), "[]") // there is no default
	default:
		return fmt.Sprint(v)
	}
}

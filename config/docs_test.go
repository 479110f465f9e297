package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/config/setting"
)

var docRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_.<>]+)` \\| ([^|]*) \\| .")

var ofAnyName = regexp.MustCompile(`^(providers|auth\.keys|auth\.jwt|webhooks|tools)\.[a-z0-9_-]+\.`)

// anyTools are the tools of a program; the names are those of voicegw.example.yaml.
var anyTools = []ToolDeclaration{
	{ID: "weather_lookup", Settings: []ToolSetting{{Name: "api_key", Type: TypeSecret, Default: setting.Secret{}}}},
	{ID: "weather_lookup_next", VariantOf: "weather_lookup"},
}

// aKeySet is a set of keys as an issuer publishes it.
const aKeySet = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","use":"sig","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}`

// TestEveryKeyIsDocumented holds docs/configuration.md against the struct, in
// both directions and with the defaults.
func TestEveryKeyIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range docRow.FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = strings.Trim(strings.TrimSpace(row[2]), "`")
	}
	var keys []string
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	for _, key := range l.keys {
		f := l.fields[key]
		if l.secretFiles[key] != "" {
			continue // one sentence of the page is about all of them
		}
		key = ofAnyName.ReplaceAllString(key, "$1.<name>.")
		if key == "tools.<name>.api_key" {
			continue // a tool's own settings are in no page of ours
		}
		keys = append(keys, key)
		got, ok := documented[key]
		if !ok {
			t.Errorf("docs/configuration.md has no row for %s", key)
			continue
		}
		want := f.text()
		if want == "" || want == "0" || key == "providers.<name>.wire" {
			continue // described in words
		}
		if got != want {
			t.Errorf("docs/configuration.md says that the default of %s is %q; it is %q", key, got, want)
		}
	}
	for key := range documented {
		if !slices.Contains(keys, key) {
			t.Errorf("docs/configuration.md has a row for %s, which is no setting", key)
		}
	}
}

// TestExampleFile reads voicegw.example.yaml as it is, and once more with every
// commented setting switched on: it must name every key, and only keys.
func TestExampleFile(t *testing.T) {
	data, err := os.ReadFile("../voicegw.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": string(data)}.ReadFile, Tools: anyTools}); err != nil {
		t.Errorf("as it is:\n%v", err)
	}
	setting := regexp.MustCompile(`(?m)^( *)#([a-z0-9_-]+:)`)
	all := setting.ReplaceAllString(string(data), "$1$2")
	fs := files{"voicegw.yaml": all, "issuer-keys.json": aKeySet, "my-core.md": "x", "my-voice.md": "x", "my-text.md": "x", "scenario.yaml": "x", "faults.yaml": "x"}
	c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: fs.ReadFile, Tools: anyTools})
	if err != nil {
		t.Fatalf("with everything switched on:\n%v", err)
	}
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	l.parseFile("voicegw.yaml", []byte(all))
	named := map[string]bool{} // the settings of auth that the file gives to some key or issuer
	for key := range l.where {
		named[ofAnyName.ReplaceAllString(key, "$1.<name>.")] = true
	}
	for _, key := range l.keys {
		if l.secretFiles[key] != "" {
			continue
		}
		if strings.HasPrefix(key, "auth.") || strings.HasPrefix(key, webhooksPrefix) {
			if !named[ofAnyName.ReplaceAllString(key, "$1.<name>.")] {
				t.Errorf("voicegw.example.yaml gives no key or issuer a setting as %s", key)
			}
			continue
		}
		provider, setting, _ := strings.Cut(strings.TrimPrefix(key, providersPrefix), ".")
		if w := c.WireOf(provider); w != nil && slices.Contains(l.wireSettings(), setting) && !slices.Contains(w.Settings, setting) {
			continue
		}
		if l.where[key] == "" && provider != "azure-eu" {
			t.Errorf("voicegw.example.yaml does not name %s", key)
		}
	}
	if p := c.Providers["azure-eu"]; p == nil || !p.Configured() {
		t.Error("voicegw.example.yaml has no second provider of a wire")
	}
}

// text renders the field as it is written in a file, for the documentation.
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

package config

import (
	"reflect"
	"strings"
	"testing"

	"voicegw/config/setting"
)

// TestSecretsFromFiles reads each secret of every section from a file, by a setting and by a variable.
func TestSecretsFromFiles(t *testing.T) {
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	tried := 0
	for _, key := range l.keys {
		if l.fields[key].value.Type() != reflect.TypeFor[setting.Secret]() {
			continue
		}
		tried++
		const secret = "hush-hush-0123456789"
		for how, source := range map[string]Source{
			"a flag":     {Flags: []Flag{{Name: "--set", Key: key + "_file", Value: "s"}}},
			"a variable": {Environ: []string{env(key) + "_FILE=s"}},
		} {
			source.Wires, source.Tools, source.ReadFile = Wires(), anyTools, files{"s": "\n" + secret + " \n"}.ReadFile
			got := newLoader(source)
			got.readEnv()
			for _, in := range namedSections {
				got.introduce(&in, "any")
			}
			got.readEnv()
			got.readFlags()
			got.settle()
			if s, _ := got.fields[key].value.Interface().(setting.Secret); s.Reveal() != secret {
				t.Errorf("%s by %s: %q, %v", key, how, s.Reveal(), got.problems)
			}
			if !strings.Contains(strings.Join(got.config.Secrets(), " "), secret) {
				t.Errorf("%s by %s is not among the secrets hidden in logs", key, how)
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d secrets were found", tried)
	}
}

func TestSecretFileProblems(t *testing.T) {
	fs := files{"dir/voicegw.yaml": "chat: {model: m, base_url: 'http://h', api_key_file: key}\n", "dir/key": "hush-hush\n", "empty": " \n", "two": "hush hush"}
	c, _, err := Load(Source{File: "dir/voicegw.yaml", ReadFile: fs.ReadFile})
	if err != nil || c.Chat.APIKey.Reveal() != "hush-hush" {
		t.Errorf("relative to the file: %v", err)
	}
	c, _, err = Load(Source{Client: true, ReadFile: files{"key": "an-operators-key-0123"}.ReadFile, Environ: []string{"VOICEGW_API_KEY_FILE=key"}})
	if err != nil || c.APIKey.Reveal() != "an-operators-key-0123" {
		t.Errorf("for a client: %v", err)
	}
	for name, test := range map[string]struct {
		environ []string
		want    string
	}{
		"missing": {[]string{"VOICEGW_API_KEY_FILE=gone"}, "VOICEGW_API_KEY_FILE: api_key_file: the file gone does not exist"},
		"empty":   {[]string{"VOICEGW_API_KEY_FILE=empty"}, "the file empty is empty"},
		"invalid": {[]string{"VOICEGW_API_KEY_FILE=two"}, "the file two has a space"},
		"twice":   {[]string{"OPENAI_API_KEY=hush", "VOICEGW_PROVIDERS_OPENAI_API_KEY_FILE=dir/key"}, "providers.openai.api_key_file and providers.openai.api_key are both set (OPENAI_API_KEY)"},
	} {
		_, _, err := Load(Source{ReadFile: fs.ReadFile, Environ: test.environ})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

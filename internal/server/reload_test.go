package server

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
)

// TestKeysChanged: changed keys are tried once; a missing file or unchanged keys are not tried.
func TestKeysChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.pem")
	cfg := config.Default()
	cfg.Auth.JWT = map[string]*config.AuthIssuer{
		"people":   {KeysFile: setting.File{Path: file, Data: []byte("one")}},
		"machines": {JWKSURL: "https://id.example.com/keys"},
	}
	r, tried := &reloader{now: cfg}, map[string][sha256.Size]byte{}
	for _, step := range []struct {
		has     string
		changed bool
	}{{"", false}, {"one", false}, {"two", true}, {"two", false}, {"one", false}, {"three", true}, {strings.Repeat("x", 3<<20), true}} {
		if step.has != "" {
			if err := os.WriteFile(file, []byte(step.has), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.keysChanged(tried); got != step.changed {
			t.Errorf("the file has %.9q: changed is %t", step.has, got)
		}
	}
	if files := r.keyFiles(); len(files) != 1 || files[0] != file {
		t.Errorf("the files are %v", files)
	}
}

// Package deploy has the tests of the chart, the unit and the compose file. It is a module of its own, so that the
// gateway does not need their libraries.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestMain removes the program that tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built) // only a temporary folder
	}
	os.Exit(code)
}

// built is the folder of the program; set by program.
var built string

// program returns the path of voicegw: the variable VOICEGW, set by scripts/test, or a new build.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("VOICEGW"); path != "" {
		return path, nil
	}
	var err error
	if built, err = os.MkdirTemp("", "voicegw-deploy-"); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-euc", ". ./scripts/goenv.sh; work=$1; . ./scripts/program.sh", "sh", built)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building voicegw: %w\n%s", err, out)
	}
	return filepath.Join(built, "voicegw"), nil
})

func voicegw(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = environ, t.TempDir()
	return cmd
}

// checkConfig runs voicegw serve --check-config, which must accept the configuration and ignore no variable.
func checkConfig(t *testing.T, environ []string, args ...string) {
	t.Helper()
	out, err := voicegw(t, environ, append(args, "--check-config")...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "is not a setting") {
		t.Errorf("voicegw %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// write makes a file, and the folders above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

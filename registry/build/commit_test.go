package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommitOfTheTools: a commit that changes no tool does not change the registry.
func TestCommitOfTheTools(t *testing.T) {
	dir := t.TempDir()
	if got := CommitOf(t.Context(), dir); got != "" {
		t.Errorf("without a work tree: %q", got)
	}
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", name)
		return git("rev-parse", "HEAD")
	}
	git("init", "-q")
	commit("tools/alpha/guide.md")
	want := commit("tools/alpha/schema.json")
	commit("README.md")
	if got := CommitOf(t.Context(), dir); got != want {
		t.Errorf("the tools are of %q, want %q, which changed them last", got, want)
	}
}

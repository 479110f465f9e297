package build

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"voicegw/registry/spec"
)

// ToolDir splits the path of a tool's directory, PROJECT/tools/NAME.
func ToolDir(dir string) (project, name string, err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", dir, err)
	}
	parent := filepath.Dir(whole)
	if filepath.Base(parent) != "tools" {
		return "", "", fmt.Errorf("%s is not a tool: a tool is a directory of tools/", dir)
	}
	return filepath.Dir(parent), filepath.Base(whole), nil
}

// NextSteps lists the files that New has written, and the author's next steps.
func NextSteps(name string, category spec.Category, files []string) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f + "\n")
	}
	args := `{"query": "tea"}`
	if category == spec.CategoryAction || category == spec.CategoryUtility {
		args = `{"text": "tea"}`
	}
	id := strings.ReplaceAll(name, "-", "_")
	fmt.Fprintf(&b, "\nNow fill them in, and then:\n  make tools\n  ./bin/voicegw tools call %s '%s'\nSee %s.\n", id, args, Tutorial)
	return b.String()
}

// TimeOf returns the time of a build: epoch, the value of SOURCE_DATE_EPOCH for reproducible builds
// (reproducible-builds.org/specs/source-date-epoch), or now if it is empty.
func TimeOf(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now(), nil
	}
	s, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || s < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q and must be seconds since 1970", epoch)
	}
	return time.Unix(s, 0), nil
}

// CommitOf returns the last commit that changed the project's tools; may be empty. Other commits don't change the
// registry, so nothing is recompiled.
func CommitOf(ctx context.Context, dir string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "log", "-1", "--format=%H", "--", toolsDir).Output()
	if err != nil {
		return "" // no git, no work tree, no commit
	}
	return strings.TrimSpace(string(out))
}

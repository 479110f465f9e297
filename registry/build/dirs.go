package build

import (
	"fmt"
	"path/filepath"
	"strings"
)

// ToolDir takes the path of a tool's directory, PROJECT/tools/NAME, apart.
func ToolDir(dir string) (project, name string, err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", dir, err)
	}
	parent := filepath.Dir(whole)
	if filepath.Base(parent) != "tools" {
		return "", "", fmt.Errorf("%s is no tool: a tool is a directory of tools/", dir)
	}
	return filepath.Dir(parent), filepath.Base(whole), nil
}

// NextSteps tells an author which files New has written, and how to go on with them.
func NextSteps(name string, files []string) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f + "\n")
	}
	id := strings.ReplaceAll(name, "-", "_")
	fmt.Fprintf(&b, "\nNow fill them in, and then:\n  make tools\n  ./bin/voicegw tools call %s '{\"query\": \"tea\"}'\n%s tells more.\n", id, Docs)
	return b.String()
}

package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestContainerOfThePage gives the variables of the image, and those of the docker command in docs/installation.md, to
// the image's program.
func TestContainerOfThePage(t *testing.T) {
	file, err := os.ReadFile("image/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	env := regexp.MustCompile(`(?m)^ENV (.+)$`).FindStringSubmatch(string(file))
	cmd := regexp.MustCompile(`(?m)^CMD \["(.+)"\]$`).FindStringSubmatch(string(file))
	run := regexp.MustCompile(`(?s)docker run .*? voicegw:local\n`).FindString(installationPage(t))
	if env == nil || cmd == nil || run == "" {
		t.Fatalf("ENV %q, CMD %q, docker run %q", env, cmd, run)
	}
	environ := strings.Fields(env[1])
	for _, m := range regexp.MustCompile(`-e ([A-Z_]+)(=\S+)?`).FindAllStringSubmatch(run, -1) {
		if m[2] == "" {
			m[2] = "=a-key-of-a-provider"
		}
		environ = append(environ, m[1]+m[2])
	}
	checkConfig(t, environ, strings.Split(cmd[1], `", "`)...)
}

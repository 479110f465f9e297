package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// limit is the time that a test waits for another program.
const limit = 2 * time.Minute

// await polls until the answer is true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// output is the output of a program, for a test that fails.
type output struct {
	mu   sync.Mutex // guards the following field
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts a program that ends with the test.
func run(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its way to end
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, out)
		}
	})
	return out
}

// installed returns the path of a program, or skips the test.
func installed(t *testing.T, program, without string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + program)
	}
	if err != nil {
		t.Skipf("%s is not installed: %s", program, without)
	}
	return path
}

// freeAddress returns a free address of this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// environ returns the variables of a service of the compose file.
func environ(s types.ServiceConfig) (all []string) {
	for name, value := range s.Environment {
		if value != nil {
			all = append(all, name+"="+*value)
		}
	}
	slices.Sort(all)
	return all
}

// startGateway starts the program with the variables of the first gateway of the compose file, but alone and on this
// machine, and returns its address.
func startGateway(t *testing.T, p *types.Project) string {
	t.Helper()
	alone := slices.DeleteFunc(environ(p.Services["gateway-1"]), func(v string) bool {
		return strings.HasPrefix(v, "VOICEGW_CLUSTER_") || strings.HasPrefix(v, "VOICEGW_STORE_")
	})
	out := run(t, voicegw(t, append(alone, "VOICEGW_TRUSTED_PROXIES=127.0.0.1"), "serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--log-format", "json"))
	address := ""
	await(t, "the gateway serves", func() bool {
		lines := bufio.NewScanner(strings.NewReader(out.String()))
		for lines.Scan() {
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address = line.Addr
			}
		}
		return address != ""
	})
	return address
}

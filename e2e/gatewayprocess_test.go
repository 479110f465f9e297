package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/audit"
	"voicegw/internal/testutil"
	"voicegw/store"
)

// gatewayEnv makes this test binary a gateway: TestGatewayProcess.
const gatewayEnv = "VOICEGW_E2E_GATEWAY"

// urlMark begins the line with a gateway process's address.
const urlMark = "the gateway listens at "

// processSetting has the options of a gateway process.
type processSetting struct {
	// Provider is the wire, Base the provider's address.
	Provider, Base string
	// Dir contains the store, the audit and the tools' effects. Store is the address of a NATS server, which then has
	// the store, and the gateway is a node.
	Dir, Store string
	// Hold is a tool that hangs after its effect; may be empty.
	Hold string
	// HoldApproved hangs after an approval is recorded, before the action runs.
	HoldApproved bool
	// HoldReport hangs an answer over the API after its action ran, before the conversation gets the result.
	HoldReport bool
	// Scenario is the script of the text agent's model, Chat the address of another model; both empty without a text
	// agent.
	Scenario, Chat string
}

// auditFile and effectsFile are in the data folder.
const (
	auditFile   = "audit.jsonl"
	effectsFile = "effects"
)

// TestGatewayProcess is the gateway process of other tests, until its standard input ends or it is killed.
func TestGatewayProcess(t *testing.T) {
	config := os.Getenv(gatewayEnv)
	if config == "" {
		t.Skip("other tests start it")
	}
	var set processSetting
	if err := json.Unmarshal([]byte(config), &set); err != nil {
		t.Fatal(err)
	}
	where := store.Options{Dir: filepath.Join(set.Dir, "store")}
	if set.Store != "" {
		where = store.Options{URL: set.Store}
	}
	kept, err := store.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	if set.Store != "" {
		node, err := kept.Nodes.Join(t.Context(), store.Node{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer node.Leave()
	}
	defer func() {
		if err := kept.Close(); err != nil {
			t.Error("closing the store:", err)
		}
	}()
	t.Run("serve", func(t *testing.T) { // its cleanup precedes the close of the store
		tools := newStageOn(t, kept)
		tools.effects = appendTo(t, filepath.Join(set.Dir, effectsFile))
		if set.Hold != "" {
			tools.hold(set.Hold)
		}
		if set.HoldApproved {
			tools.box.questions = approvedAndHeld{kept.Confirmations}
		}
		tools.box.holdReport = set.HoldReport
		st := newStack(t, set.Provider, setting{tools: tools.box, base: set.Base, lines: appendTo(t, filepath.Join(set.Dir, auditFile)),
			text: set.Scenario != "" || set.Chat != "", scenario: set.Scenario, chat: set.Chat})
		fmt.Println(urlMark + st.url)
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			t.Error(err)
		}
	})
}

func appendTo(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// process is a gateway in its own process. Its stack has only a tap and a URL.
type process struct {
	*stack
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *lockedBuffer  // output of the process
	read  sync.WaitGroup // its reader
	over  bool
}

// startProcess starts a gateway on a data folder, with the provider behind tp.
func startProcess(t *testing.T, tp *tap, set processSetting) *process {
	t.Helper()
	set.Base = tp.url
	config, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stack: &stack{tap: tp}, dir: set.Dir, said: &lockedBuffer{}}
	p.cmd = exec.Command(os.Args[0], "-test.run=^TestGatewayProcess$", "-test.count=1")
	p.cmd.Env = append(os.Environ(), gatewayEnv+"="+string(config))
	p.cmd.Stderr = p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.over {
			p.kill(t)
		}
		if t.Failed() {
			t.Log("a gateway process said:", p.said.String())
		}
	})
	at := make(chan string, 1) // from the reader to this function: the URL; closed at the end of the output
	p.read.Go(func() {
		defer close(at)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), urlMark); ok {
				at <- url
			}
			fmt.Fprintln(p.said, lines.Text())
		}
	})
	url, ok := <-at
	if !ok {
		t.Fatal("the gateway process did not begin to serve")
	}
	p.url = url
	return p
}

// kill ends the process like a power failure.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error("killing the gateway process:", err)
	}
	p.read.Wait()
	p.over = true
	defer p.watch(t)
	if err := p.cmd.Wait(); err == nil {
		t.Error("the killed gateway process has ended on its own")
	}
}

// watch searches the files of an ended process for secrets.
func (p *process) watch(t *testing.T) {
	t.Helper()
	testutil.Check(testutil.Log, []byte(p.said.String()))
	testutil.CheckFolder(t, p.dir)
}

// leave ends the process normally.
func (p *process) leave(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	p.read.Wait()
	p.over = true
	defer p.watch(t)
	if err := p.cmd.Wait(); err != nil {
		t.Error("the gateway process:", err)
	}
}

// effects returns the lines written by the tools of all processes with this folder.
func (p *process) effects(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, effectsFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// records returns the audit's records about a tool, from all processes with this folder.
func (p *process) records(t *testing.T, tool string) []audit.Record {
	t.Helper()
	f, err := os.Open(filepath.Join(p.dir, auditFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []audit.Record
	report, err := audit.Read(f, func(r audit.Record, _ []byte) error {
		if r.ToolID == tool {
			out = append(out, r)
		}
		return nil
	})
	if err != nil || report.Foreign > 0 {
		t.Errorf("reading the audit: %v, %+v", err, report)
	}
	return out
}

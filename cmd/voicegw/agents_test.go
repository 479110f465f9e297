package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// asked is a request of an operator and the answer.
func (r *running) asked(method, path, body string, header ...string) (*http.Response, []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, got
}

// speaksWith starts a session with an agent.
func speaksWith(t *testing.T, addr, agent string) (*protocol.Conn, protocol.SessionStarted) {
	t.Helper()
	c := dial(t, addr, false)
	say(t, c, &protocol.Start{InputRate: 24000, OutputRate: 24000, Agent: agent})
	var began protocol.SessionStarted
	next(t, c, "session.started", &began)
	return c, began
}

// TestAgentsOfFiles: the gateway offers the agents of a folder; sessions and text messages get the agent that they name.
func TestAgentsOfFiles(t *testing.T) {
	t.Parallel()
	r := start(t, "--set", "agents.path=../../docs/agents", "--set", "agent.name=Front Desk")
	var offered struct{ Agents []string }
	if _, body := r.fetch("/v1/providers"); json.Unmarshal(body, &offered) != nil || !slices.Equal(offered.Agents, []string{"Front Desk", "billing", "reception"}) {
		t.Errorf("offered are %v", offered.Agents)
	}
	_, began := speaksWith(t, r.addr, "billing")
	if began.Agent != "billing" || began.Voice != "Kore" || !strings.HasPrefix(began.AgentsVersion, "1.0.") {
		t.Errorf("the session began as %+v", began)
	}
	var list struct {
		Sessions []struct {
			Agent        string
			AgentVersion string `json:"agent_version"`
		}
	}
	if _, body := r.asked("GET", "/v1/sessions", ""); json.Unmarshal(body, &list) != nil || len(list.Sessions) != 1 || list.Sessions[0].Agent != "billing" || len(list.Sessions[0].AgentVersion) != 8 {
		t.Errorf("the sessions are %+v", list.Sessions)
	}
	// The agent has the tool kb_search but not image_generate: no image is made.
	for _, m := range r.chat(`{"user":"ada","agent":"reception","message":"Generate an image of a fox reading a newspaper"}`) {
		if _, drawn := m.(*protocol.UIImage); drawn {
			t.Error("the agent used a tool that is not its own")
		}
	}
	if resp, body := r.asked("POST", "/v1/sessions", `{"user":"ada","agent":"nobody"}`); resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), `available: \"Front Desk\", \"billing\", \"reception\"`) {
		t.Errorf("a ticket for an unknown agent: %d %s", resp.StatusCode, body)
	}
}

// TestBrokenAgentsStopTheStart: the gateway does not start with broken agent files, and reports all problems of all
// files.
func TestBrokenAgentsStopTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "id: a\nname: A\nplaybook: x\ntools: [kb-search]\nprovider: gemini\nmodel: gpt-realtime\nvoices: {gemini: marin}\n", "b.yaml": "id: c\nname: B\nplaybok: y\n",
		"default.yaml": "id: default\nname: D\nplaybook: z\nswitch_to: [e]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, complaints console
	tools := registrytest.Project(t)
	code := Run(t.Context(), Process{
		Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--set", "agents.path=" + dir}, Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &out, Stderr: &complaints, Registry: func() ([]byte, error) { return tools, nil }},
	})
	said := complaints.String()
	for _, want := range []string{
		`a.yaml:4: there is no tool "kb-search" (did you mean "kb_search"?)`, `a.yaml:6: gemini does not support the model "gpt-realtime" for voice sessions`, `a.yaml:7: gemini has no voice "marin"`,
		`b.yaml: the file has the agent "c"`, `b.yaml:3: the agent has no key "playbok" (did you mean "playbook"?)`, `default.yaml:4: switch_to names the agent "e"`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not reported:\n%s", want, said)
		}
	}
	if code != exitUsage {
		t.Errorf("it ended with %d", code)
	}
}

// command runs a command of voicegw against a running gateway.
func (r *running) command(args ...string) (code int, out, said string) {
	r.t.Helper()
	var stdout, stderr console
	code = Run(r.t.Context(), Process{
		Args: append(args, "--url", "http://"+r.addr, "--data-dir", r.dataDir), Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &stdout, Stderr: &stderr},
	})
	return code, stdout.String(), stderr.String()
}

// TestAgentsCommands: the commands apply an agent, list it, change it during a session, and delete it.
func TestAgentsCommands(t *testing.T) {
	t.Parallel()
	r := start(t)
	path := filepath.Join(t.TempDir(), "shop.yaml")
	apply := func(text string) (int, string, string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.command("agents", "apply", path)
	}
	if code, out, said := apply("id: shop\nname: Shop\nplaybook: You sell.\ngreeting: Greet the caller\n"); code != exitOK || !strings.HasPrefix(out, "shop is created: version ") {
		t.Fatalf("%d %s %s", code, out, said)
	}
	if code, out, said := r.command("agents", "list"); code != exitOK || !strings.Contains(out, "shop") || !strings.Contains(out, "store") || !strings.Contains(out, "default") {
		t.Errorf("%d %s %s", code, out, said)
	}
	_, began := speaksWith(t, r.addr, "shop")
	if code, out, said := apply("id: shop\nname: Shop\nplaybook: You sell bicycles.\n"); code != exitOK || !strings.HasPrefix(out, "shop is changed") {
		t.Fatalf("%d %s %s", code, out, said)
	}
	_, young := speaksWith(t, r.addr, "shop")
	if began.AgentsVersion == "" || began.AgentsVersion == young.AgentsVersion {
		t.Errorf("the agents' versions are %s and %s", began.AgentsVersion, young.AgentsVersion)
	}
	var list struct {
		Sessions []struct {
			AgentVersion string `json:"agent_version"`
		}
	}
	if _, body := r.asked("GET", "/v1/sessions", ""); json.Unmarshal(body, &list) != nil || len(list.Sessions) != 2 || list.Sessions[0].AgentVersion == list.Sessions[1].AgentVersion {
		t.Errorf("the sessions are %+v", list.Sessions)
	}
	if code, _, said := apply("id: shop\nname: Shop\nplaybook: x\ntools: [kb-search]\nvoice: Kore\n"); code != exitFailure ||
		!strings.Contains(said, `shop.yaml:4: there is no tool "kb-search" (did you mean "kb_search"?)`) || !strings.Contains(said, `shop.yaml:5: the agent has no key "voice"`) {
		t.Errorf("%d %s", code, said)
	}
	if code, out, said := r.command("agents", "show", "shop"); code != exitOK || !strings.Contains(out, "You sell bicycles.") {
		t.Errorf("%d %s %s", code, out, said)
	}
	if code, out, said := r.command("agents", "delete", "shop"); code != exitOK || !strings.Contains(out, "shop is deleted") {
		t.Errorf("%d %s %s", code, out, said)
	}
	if code, _, said := r.command("agents", "show", "shop"); code != exitFailure || !strings.Contains(said, "There is no agent") {
		t.Errorf("%d %s", code, said)
	}
}

// TestAgentsOfThreeGateways: all gateways of a store offer an agent edited at one of them; a session after a takeover
// keeps the old agent.
func TestAgentsOfThreeGateways(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	gateways := make([]*running, 3)
	for i := range gateways {
		addr, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		gateways[i] = start(t, "--set", "store.url="+nats.ClientURL(), "--set", "cluster.listen="+addr,
			"--set", "cluster.url=http://"+addr, "--set", "cluster.secret=a-secret-that-all-gateways-have-in-common")
	}
	document := func(playbook string) string { return `{"id":"shop","name":"Shop","playbook":"` + playbook + `"}` }
	versionAt := func(r *running) (version string) {
		var shown struct{ Version string }
		if _, body := r.asked("GET", "/v1/agents/shop", ""); json.Unmarshal(body, &shown) == nil {
			version = shown.Version
		}
		return version
	}
	edit := func(i int, playbook string, header ...string) string {
		t.Helper()
		resp, body := gateways[i].asked("PUT", "/v1/agents/shop", document(playbook), header...)
		if resp.StatusCode >= 300 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		version, began := versionAt(gateways[i]), time.Now()
		for _, r := range gateways {
			testutil.WaitUntil(t, "all gateways have it", func() bool { return versionAt(r) == version })
		}
		t.Logf("all three gateways offered the edited agent after %v", time.Since(began))
		return version
	}
	first := edit(0, "One.", "If-None-Match", "*")
	c, began := speaksWith(t, gateways[1].addr, "shop")
	if began.Agent != "shop" || began.ResumeToken == "" {
		t.Fatalf("the session began as %+v", began)
	}
	if second := edit(2, "Two.", "If-Match", "*"); second == first {
		t.Error("the edit changed nothing")
	}
	gateways[1].signals <- syscall.SIGTERM // it gives up its session
	var moving protocol.SessionMoving
	seq := next(t, c, "session.moving", &moving)
	var back protocol.SessionStarted
	testutil.WaitUntil(t, "the client resumes", func() bool {
		c2 := visit(t, gateways[2].addr, &protocol.Resume{SessionID: began.SessionID, Token: began.ResumeToken, LastSeq: seq})
		f, err := c2.Read()
		return err == nil && json.Unmarshal(f.Data, &back) == nil && back.Resumed
	})
	var list struct {
		Sessions []struct {
			ID, Agent    string
			AgentVersion string `json:"agent_version"`
		}
	}
	_, body := gateways[2].asked("GET", "/v1/sessions/"+began.SessionID, "")
	if err := json.Unmarshal([]byte(`{"Sessions":[`+string(body)+`]}`), &list); err != nil || list.Sessions[0].Agent != "shop" || list.Sessions[0].AgentVersion != first {
		t.Errorf("the session continues with %s, and started with %s", body, first)
	}
}

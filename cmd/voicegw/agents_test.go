package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// asked is a request of an operator, and its answer.
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

// speaksWith begins a session with an agent.
func speaksWith(t *testing.T, addr, agent string) (*protocol.Conn, protocol.SessionStarted) {
	t.Helper()
	c, err := protocol.Dial(t.Context(), "ws://"+addr+"/v1/voice", protocol.DialOptions{Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	say(t, c, &protocol.Start{InputRate: 24000, OutputRate: 24000, Agent: agent})
	var began protocol.SessionStarted
	next(t, c, "session.started", &began)
	return c, began
}

// TestAgentsOfFiles: the agents of a folder are offered, and a session and a message in text get the one
// that they ask for.
func TestAgentsOfFiles(t *testing.T) {
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
	// kb_search is a tool of the agent, image_generate is not, so that nothing is drawn.
	for _, m := range r.chat(`{"user":"ada","agent":"reception","message":"Generate an image of a fox reading a newspaper"}`) {
		if _, drawn := m.(*protocol.UIImage); drawn {
			t.Error("the agent used a tool that is not its own")
		}
	}
	if resp, body := r.asked("POST", "/v1/sessions", `{"user":"ada","agent":"nobody"}`); resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), `there is \"Front Desk\", \"billing\", \"reception\"`) {
		t.Errorf("a ticket for an unknown agent: %d %s", resp.StatusCode, body)
	}
}

// TestBrokenAgentsKeepItFromStarting, with all problems of all files.
func TestBrokenAgentsKeepItFromStarting(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "id: a\nname: A\nplaybook: x\ntools: [kb-search]\nvoices: {gemini: Korra}\n", "b.yaml": "id: c\nname: B\nplaybok: y\n",
		"default.yaml": "id: default\nname: D\nplaybook: z\nswitch_to: [e]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, complaints console
	tools := registrytest.Project(t)
	code := Run(t.Context(), Process{
		Args:  []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--set", "agents.path=" + dir},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints, Registry: func() ([]byte, error) { return tools, nil },
	})
	said := complaints.String()
	for _, want := range []string{
		`a.yaml:4: there is no tool "kb-search" (did you mean "kb_search"?)`, `a.yaml:5: gemini has no voice "Korra" (did you mean "Kore"?)`,
		`b.yaml: the file holds the agent "c"`, `b.yaml:3: the agent has no key "playbok" (did you mean "playbook"?)`, `default.yaml:4: switch_to names the agent "e"`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not told:\n%s", want, said)
		}
	}
	if code != exitUsage {
		t.Errorf("it ended with %d", code)
	}
}

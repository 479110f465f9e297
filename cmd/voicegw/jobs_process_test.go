package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/testutil"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// jobsEnv names the folder of the slow tool, which appends a line for each attempt to "attempts" and waits until the file
// "go" exists.
const jobsEnv = "TEST_JOBS"

// jobPayload is the payload of the job.
type jobPayload struct {
	Year string `json:"ref"`
}

// jobHandlers returns the handlers of the tool, which works in a folder.
func jobHandlers(dir string) map[string]registry.Handler {
	begin := func(_ context.Context, call registry.Call[jobPayload, struct{}]) (registry.Result, error) {
		return registry.Result{Job: &registry.NewJob{Payload: call.Args, Told: "The report is being made."}}, nil
	}
	work := func(ctx context.Context, w registry.Work[jobPayload, struct{}]) (registry.Result, error) {
		if err := do(filepath.Join(dir, "attempts"), effect{w.Job, w.IdempotencyKey, w.Payload.Year, w.Attempt}); err != nil {
			return registry.Result{}, err
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
				return registry.Result{Data: map[string]any{"pages": 12, "attempt": w.Attempt}}, nil
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return registry.Result{}, ctx.Err()
			}
		}
	}
	return map[string]registry.Handler{"report_make": registry.BindWork(registry.Bind(begin), work)}
}

// jobRegistry writes the tool's registry into a file and returns its path.
func jobRegistry(t *testing.T) string {
	t.Helper()
	object := json.RawMessage(`{"type":"object","properties":{"ref":{"type":"string","minLength":1}},"required":["ref"],"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: "report_make", Version: "1.0.0", Description: "Makes a report.", Category: spec.CategoryAction,
		SideEffects: spec.SideEffectsWrites, AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice},
		LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object, Job: &spec.Job{Name: "Yearly report", Longest: "10m", AtOnce: 2},
	}
	path := filepath.Join(t.TempDir(), "tools.json")
	file := registrytest.File(t, registry.Entry{Spec: declared, Summary: declared.Description, Guide: "# report_make\n", Forms: registry.Forms{
		OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"ref":{"type":"STRING","minLength":"1"}},"required":["ref"]}`),
	}})
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reporter is a Chat Completions model that calls the tool for a user who asks for a report, and answers with a text
// otherwise. It records the requests.
type reporter struct {
	url string

	mu    sync.Mutex // guards the next field
	asked []string
}

func newReporter(t *testing.T) *reporter {
	t.Helper()
	m := &reporter{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request struct {
			Messages []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Errorf("the request to the model: %v", err)
		}
		m.mu.Lock()
		m.asked = append(m.asked, string(body))
		m.mu.Unlock()
		delta, finish := `{"content":"Very well."}`, "stop"
		if last := request.Messages[len(request.Messages)-1]; last.Role == "user" && strings.Contains(last.Content, "report, please") {
			delta, finish = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"report_make","arguments":"{\"ref\":\"2026\"}"}}]}`, "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, finish)
	}))
	t.Cleanup(srv.Close)
	m.url = srv.URL + "/v1"
	return m
}

// last returns the last request.
func (m *reporter) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

// TestJobOfAKilledGateway: a gateway is killed or stopped during a job. The next process on the data folder repeats the
// job under the same key, and the conversation gets the result once.
func TestJobOfAKilledGateway(t *testing.T) {
	for name, leaves := range map[string]bool{"killed": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, dir, folder, addr, tools := newReporter(t), t.TempDir(), t.TempDir(), freeAddrs(t, 1)[0], jobRegistry(t)
			config := filepath.Join(t.TempDir(), "voicegw.yaml")
			if err := os.WriteFile(config, []byte("chat:\n  base_url: "+model.url+"\n  model: m\n  api_key: k-of-the-model\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			serve := func() *child {
				c := startChild(t, "voicegw", []string{registryEnv + "=" + tools, jobsEnv + "=" + folder},
					"serve", "--config", config, "--listen", addr, "--data-dir", dir, "--log-format", "json", "--set", "store.sync=interval")
				c.logged("serving")
				return c
			}
			say := func(text string) {
				t.Helper()
				got := (&running{addr: addr}).message(fmt.Sprintf(`{"conversation_id":"c-0123456789abcdef0123456789","message":%q}`, text))
				if got.err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"completed"`) {
					t.Fatalf("%q: %+v", text, got)
				}
			}
			attempts := func() (all []effect) {
				for _, some := range (world{filepath.Join(folder, "attempts")}).effects(t) {
					all = append(all, some...)
				}
				return all
			}

			first := serve()
			say("The report, please.")
			if got := model.last(); !strings.Contains(got, "The report is being made.") || !strings.Contains(got, `job-`) {
				t.Errorf("the model got the result at once: %s", got)
			}
			testutil.WaitUntil(t, "the work begins", func() bool { return len(attempts()) == 1 })
			if leaves {
				first.signal(syscall.SIGTERM)
				first.exits()
			} else {
				first.kill()
			}

			second := serve()
			testutil.WaitUntil(t, "the work begins again", func() bool { return len(attempts()) == 2 })
			say("Is it done?")
			if strings.Contains(model.last(), "has ended") {
				t.Errorf("the model got the result too early: %s", model.last())
			}
			if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			second.logged("job ended")
			for _, text := range []string{"And now?", "Thank you."} {
				say(text)
				if n := strings.Count(model.last(), "has ended. This is its result"); n != 1 || !strings.Contains(model.last(), `pages`) {
					t.Errorf("after %q the conversation has the result %d times: %s", text, n, model.last())
				}
			}
			second.signal(syscall.SIGTERM)
			second.exits()
			got := attempts()
			again := map[bool]int{true: 1, false: 2}[leaves] // a stopped process does not count as a failed attempt
			if len(got) != 2 || got[0].Tool != got[1].Tool || got[0].Ref != got[1].Ref || got[0].Ref == "" || got[1].PID != again {
				t.Errorf("the attempts: %+v", got)
			}
			var events []audit.Event
			if _, err := audit.ReadFiles(t.Context(), filepath.Join(dir, "audit", "audit.jsonl"), func(r audit.Record, _ []byte) error {
				if r.Job != "" {
					events = append(events, r.Event)
				}
				return nil
			}); err != nil || !slices.Equal(events, []audit.Event{audit.EventJobStarted, audit.EventJobEnded, audit.EventJobTold}) {
				t.Errorf("the audit has %v, %v", events, err)
			}
		})
	}
}

// testHandlers are the tool handlers of a test's gateway; nil means those of the project.
func testHandlers() map[string]registry.Handler {
	if dir := os.Getenv(jobsEnv); dir != "" {
		return jobHandlers(dir)
	}
	return worldHandlers(os.Getenv(worldEnv))
}

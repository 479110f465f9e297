package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// worldEnv names the file that the tools of gateway processes change: the world. Without it a process has the tools of
// the project.
const worldEnv = "TEST_WORLD"

// The tools of the world. Both write; book has a business key, note does not. linger waits a while after its side effect,
// so that its gateway can be killed in between.
const (
	toolBook   = "book"
	toolNote   = "note"
	toolLinger = "linger"
)

// lingers is the time that linger waits after its side effect.
const lingers = 700 * time.Millisecond

// worldArgs are the arguments of each tool.
type worldArgs struct {
	// Ref names the side effect; each is wanted once.
	Ref string `json:"ref"`
}

// effect is a side effect: a line of the file.
type effect struct {
	Tool    string `json:"tool"`
	Ref     string `json:"ref"`
	Session string `json:"session"`
	PID     int    `json:"pid"`
}

// worldHandlers are the tools' handlers; nil without a path.
func worldHandlers(path string) map[string]registry.Handler {
	if path == "" {
		return nil
	}
	h := registry.Bind(func(_ context.Context, call registry.Call[worldArgs, struct{}]) (registry.Result, error) {
		if err := do(path, effect{call.Tool, call.Args.Ref, call.Session.ID, os.Getpid()}); err != nil {
			return registry.Result{}, err
		}
		if call.Tool == toolLinger {
			<-time.After(lingers) // the side effect has happened
		}
		return registry.Result{Data: map[string]string{"ref": call.Args.Ref}}, nil
	})
	return map[string]registry.Handler{toolBook: h, toolNote: h, toolLinger: h}
}

// do changes the world. One write appends the line: lines of several processes stay intact, and the side effect of a
// process that is killed afterwards counts.
func do(path string, d effect) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// worldRegistry writes the registry of the tools into a file, and returns its path.
func worldRegistry(t *testing.T, dir string) string {
	t.Helper()
	object := json.RawMessage(`{"type":"object","properties":{"ref":{"type":"string","minLength":1}},"required":["ref"],"additionalProperties":false}`)
	gemini := json.RawMessage(`{"type":"OBJECT","properties":{"ref":{"type":"STRING","minLength":"1"}},"required":["ref"]}`)
	var entries []registry.Entry
	for _, id := range []string{toolBook, toolLinger, toolNote} {
		declared := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryAction,
			SideEffects: spec.SideEffectsWrites, AllowedModes: []spec.Mode{spec.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
		}
		if id != toolNote {
			declared.IdempotencyKey = "{ref}"
		}
		entries = append(entries, registry.Entry{
			Spec: declared, Summary: declared.Description, Guide: "# " + id + "\n",
			Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: gemini},
		})
	}
	path := filepath.Join(dir, "tool_registry.json")
	if err := os.WriteFile(path, registrytest.File(t, entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// world is the side effects of the tools of all gateways.
type world struct{ path string }

// effects returns the side effects, by tool and ref.
func (w world) effects(t *testing.T) map[string][]effect {
	t.Helper()
	all := map[string][]effect{}
	f, err := os.Open(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var d effect
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("the world has %q: %v", lines.Text(), err)
		}
		all[d.Tool+" "+d.Ref] = append(all[d.Tool+" "+d.Ref], d)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// once checks that no side effect happened twice, neither in the world nor in the audit of all gateways. It returns the
// side effects, and the number of those that the audit lacks.
func (w world) once(t *testing.T, audits []string) (done map[string][]effect, unaudited int) {
	t.Helper()
	done = w.effects(t)
	audited := map[string][]string{}
	for _, path := range audits {
		_, err := audit.ReadFiles(t.Context(), path, func(r audit.Record, line []byte) error {
			var args worldArgs
			if r.Event != audit.EventTool || json.Unmarshal(r.Args, &args) != nil {
				return nil
			}
			if key := r.ToolID + " " + args.Ref; r.OK && !r.CacheHit {
				audited[key] = append(audited[key], strings.TrimSpace(string(line)))
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the audit %s: %v", path, err)
		}
	}
	for key, times := range done {
		if len(times) > 1 {
			t.Errorf("%s happened %d times: %+v", key, len(times), times)
		}
		if len(audited[key]) == 0 {
			unaudited++
		}
	}
	for key, lines := range audited {
		if len(lines) > 1 {
			t.Errorf("the audit has %d times %s:\n%s", len(lines), key, strings.Join(lines, "\n"))
		}
		if len(done[key]) == 0 {
			t.Errorf("the audit has %s, which did not happen: %s", key, lines[0])
		}
	}
	return done, unaudited
}

// worldScenario is the scenario of the simulated model. Speech arrives as text when another connection of the model gets
// the conversation.
var worldScenario = `
name: several gateways
rules:
  - when: {utterance: any}
    heard: ` + spokenWords + `
    do: [{say: "` + spokenAnswer + `"}]
  - when: {text: 'harbour'}
    do: [{say: "` + spokenAnswer + `"}]
` + worldRules() + `  - when: {text: '^my colour is'}
    do: [{say: "Noted."}]
  - when: {text: 'what is my colour', remembers: '^user: my colour is (\w+)'}
    do: [{say: "It is ${1}."}]
  - when: {text: 'what is my colour'}
    do: [{say: "I do not know."}]
  - when: {text: 'broke off', remembers: ['^model: It( is)?$', '^user: my colour is (\w+)']}
    do: [{say: "${1}."}]
  - when: {text: 'broke off', remembers: '^model: (The harbour[a-z ]*)$'}
    do: [{say: "I go on after ${1}."}]
  - when: {text: 'waiting for an answer', remembers: '^user: .*harbour'}
    do: [{say: "` + spokenAnswer + `"}]
  - when: {text: any}
    do: [{say: "Let us go on."}]
`

// worldRules are those for the tools.
func worldRules() (rules string) {
	for _, tool := range []string{toolBook, toolNote, toolLinger} {
		rules += `  - when: {text: '^` + tool + ` (?P<ref>\S+)$'}
    do:
      - call: {tool: ` + tool + `, args: {ref: "${ref}"}}
      - then: [{say: "` + worldDone + `, ${ref}."}]
      - on_error: [{say: "That did not work."}]
`
	}
	return rules
}

const (
	worldDone    = "Done"
	spokenWords  = "What is new at the harbour?"
	spokenAnswer = "The harbour is quiet today, and the ferry is late."
)

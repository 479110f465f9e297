// Package callstest holds conversations about tool calls in which voice and text must agree. The tests of package
// calls, of the voice step and of the text turn play each of them and compare the client's messages.
package callstest

import (
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

//go:embed testdata/*.txtar
var scripts embed.FS

// update rewrites the conversations; only the tests of package calls may use it.
var update = flag.Bool("update-calls", false, "rewrite the conversations of orchestrator/calls/callstest")

// Call is a tool call that the model makes.
type Call struct{ ID, Tool, Args string }

// Player plays one conversation. Each method returns the client's new messages in order, and the started tools, as
// "tool arguments".
type Player interface {
	// Say makes the user speak: a turn begins.
	Say() (messages []protocol.ServerMessage, begun []string)
	// Call makes the model call tools in one answer. Questions are recorded at once.
	Call(batch []Call) (messages []protocol.ServerMessage, begun []string)
	// Finish ends the tool that runs with these arguments.
	Finish(begun string, ok bool) (messages []protocol.ServerMessage, more []string)
	// Nest makes the tool that runs with these arguments call another one, which ends at once. It returns "ok" or the
	// error type.
	Nest(begun, tool, args string) string
	// Answer gives the user's answer to the latest question.
	Answer(token string, approved bool) (messages []protocol.ServerMessage, begun []string)
}

// Rules returns the rules of the conversations for a mode.
func Rules(mode spec.Mode) calls.Policy {
	return calls.Policy{
		Mode: mode, Budget: calls.Budget{Retrieval: 2, Total: 6, TopK: 3, ToolTime: -1}, Confirm: []string{"write"},
		Questions: calls.Questions{PerTool: 2, Total: 3},
	}
}

// Data is the answer of a successful tool.
const Data = "done"

// Failed is the answer of a failing tool.
func Failed() *registry.ToolError {
	return &registry.ToolError{Type: registry.ErrorPermanent, Message: "It failed."}
}

// Play plays all conversations, each with a new player.
func Play(t *testing.T, play func(t *testing.T, run func(Player))) {
	t.Helper()
	files, err := fs.Glob(scripts, "testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		data, err := scripts.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ar := txtar.Parse(data)
		t.Run(strings.TrimSuffix(path.Base(file), ".txtar"), func(t *testing.T) {
			play(t, func(p Player) {
				got := (&script{t: t, p: p, names: map[string]int{}}).play(string(ar.Files[0].Data))
				hold(t, file, ar, got)
			})
		})
	}
}

func hold(t *testing.T, file string, ar *txtar.Archive, got string) {
	t.Helper()
	if *update {
		ar.Files[1].Data = []byte(got)
		if err := os.WriteFile(filepath.Join("callstest", file), txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(ar.Files[1].Data), got); diff != "" {
		t.Errorf("the conversation differs (-want +got):\n%s", diff)
	}
}

type script struct {
	t     *testing.T
	p     Player
	out   strings.Builder
	names map[string]int // calls, numbered as they begin
	token string         // the token of the latest question
}

func (s *script) play(text string) string {
	s.t.Helper()
	var batch []Call
	flush := func() {
		if len(batch) > 0 {
			s.write(s.p.Call(batch))
			batch = nil
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		if verb != "call" {
			flush()
		}
		s.out.WriteString(line + "\n")
		switch verb {
		case "call":
			fields := strings.Fields(rest)
			id := ""
			if len(fields) == 3 {
				id = fields[2]
			}
			batch = append(batch, Call{ID: id, Tool: fields[0], Args: fields[1]})
		case "next": // the model's answer
		case "say":
			s.write(s.p.Say())
		case "done", "failed":
			s.write(s.p.Finish(rest, verb == "done"))
		case "inside": // look {"id":"a"} > search {"query":"x"}
			begun, inner, _ := strings.Cut(rest, " > ")
			tool, args, _ := strings.Cut(inner, " ")
			s.out.WriteString("    it is answered " + s.p.Nest(begun, tool, args) + "\n")
		case "approve", "decline":
			s.write(s.p.Answer(s.token, verb == "approve"))
		default:
			s.t.Fatalf("unknown verb %q", verb)
		}
	}
	flush()
	return s.out.String()
}

func (s *script) write(messages []protocol.ServerMessage, begun []string) {
	for _, m := range messages {
		if line := s.show(m); line != "" {
			s.out.WriteString("    " + line + "\n")
		}
	}
	slices.Sort(begun) // tools that start together start in any order
	for _, call := range begun {
		s.out.WriteString("    runs " + call + "\n")
	}
}

// show prints a message about a call; it returns "" for any other message.
func (s *script) show(m protocol.ServerMessage) string {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		s.names[m.CallID] = len(s.names) + 1
		return fmt.Sprintf("%d begins: %s (%s)", s.names[m.CallID], m.Tool, m.Category)
	case *protocol.ConfirmationRequest:
		s.token = m.Token
		return fmt.Sprintf("asks: %s %s %q", m.Tool, m.Args, m.Preview)
	case *protocol.ConfirmationEnded:
		return fmt.Sprintf("the question about %s is %s", m.Tool, m.Outcome)
	case *protocol.ToolEnded:
		how := "ok"
		if !m.OK {
			var e registry.Error
			if err := json.Unmarshal(m.Error, &e); err != nil {
				s.t.Fatal(err)
			}
			how = string(e.Type)
		}
		if m.Deduplicated {
			how += ", as before"
		}
		if m.Clamped != nil {
			how += " lowered " + string(m.Clamped)
		}
		return fmt.Sprintf("%d ends: %s", s.names[m.CallID], how)
	}
	return ""
}

// Tools returns the tools of the conversations, for both modes. A nil handler means that the tools do not run, or
// that the player runs them.
func Tools(t testing.TB, handler func(ctx context.Context, tool, args string, tools registry.Tools) (registry.Result,
	error)) *registry.Snapshot {
	t.Helper()
	declare := func(id, params string, change func(*spec.Spec)) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice},
			LatencyBudgetMS: 60_000, TimeoutMS: 60_000,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + params + `},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{}}`)}}
	}
	writes := func(s *spec.Spec) {
		s.Category, s.SideEffects = spec.CategoryAction, spec.SideEffectsWrites
	}
	entries := []registry.Entry{
		declare("search", `"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5}`, func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Idempotent = spec.CategoryRetrieval, spec.SideEffectsReadOnly, true
		}),
		declare("look", `"id":{"type":"string"}`, func(*spec.Spec) {}),
		declare("write", `"text":{"type":"string"}`, writes),
		declare("book", `"who":{"type":"string"},"note":{"type":"string"}`, func(s *spec.Spec) { writes(s); s.IdempotencyKey = "{who}" }),
		declare("pay", `"amount":{"type":"integer"}`, func(s *spec.Spec) {
			writes(s)
			s.RequiresConfirmation, s.Preview = true, "Pay {amount}"
		}),
		declare("order", `"amount":{"type":"integer"},"guests":{"type":"array","items":{"type":"string"}}`, func(s *spec.Spec) {
			writes(s)
			s.RequiresConfirmation, s.Preview = true, "Order for {amount}[ with {guests|list}]"
			s.ConfirmWhen = []spec.ConfirmWhen{{Argument: "amount", Above: new(json.Number("100"))},
				{Argument: "guests", Empty: new(false)}}
		}),
	}
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = registry.Bind(func(ctx context.Context, c registry.Call[json.RawMessage, needs]) (registry.Result, error) {
			if handler == nil {
				return registry.Result{Data: Data}, nil
			}
			return handler(ctx, c.Tool, string(c.Args), c.Needs.Tools)
		})
	}
	r, err := registry.Load(registrytest.File(t, entries...),
		registry.Options{Handlers: handlers, SessionCapabilities: registry.CallCapabilities()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Snapshot()
}

type needs struct{ Tools registry.Tools }

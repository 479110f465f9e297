package orchestrator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/registry"
	"voicegw/transport"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

// epoch is when every golden conversation begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The two sorts of models that the conversations are held with.
var (
	capsHearing = transport.Capabilities{SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true, ToolsOff: true}
	capsDeaf    = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true}
)

// TestGoldenConversations replays the conversations of testdata. Each is prose
// that says what it pins, a script of inputs at their times in ms, and the actions
// that followed.
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, section(ar, "script"))
			if *update {
				setSection(ar, "want", got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(section(ar, "want"), got); diff != "" {
				t.Errorf("the conversation went another way (-want +got):\n%s", diff)
			}
		})
	}
}

func section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(ar *txtar.Archive, name, data string) {
	for i := range ar.Files {
		if ar.Files[i].Name == name {
			ar.Files[i].Data = []byte(data)
			return
		}
	}
	ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(data)})
}

// replay runs a script. Ticks that fall due between two lines are taken when they
// are due, as the session's clock would.
func replay(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	var s State
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		w := parseWords(line)
		if w.at < 0 {
			s = NewState(capsOf(t, w), policyOf(w), epoch)
			continue
		}
		at := epoch.Add(time.Duration(w.at) * time.Millisecond)
		for due := s.WakeAt(); !due.IsZero() && due.Before(at); due = s.WakeAt() {
			s = take(&out, s, due, Tick{}, "tick")
			if next := s.WakeAt(); !next.After(due) && !next.IsZero() {
				t.Fatalf("at %s a tick left itself due", due.Sub(epoch))
			}
		}
		s = take(&out, s, at, w.input(t), line[strings.IndexByte(line, ' ')+1:])
	}
	return out.String()
}

func take(out *strings.Builder, s State, at time.Time, in Input, name string) State {
	next, actions := Step(s, at, in)
	if _, ok := in.(Tick); ok && len(actions) == 0 {
		return next
	}
	fmt.Fprintf(out, "%d %s\n", at.Sub(epoch).Milliseconds(), name)
	for _, a := range actions {
		fmt.Fprintf(out, "    %s\n", show(a))
	}
	return next
}

// show prints an action as a line.
func show(a Action) string {
	switch a := a.(type) {
	case Command:
		if r, ok := a.Command.(transport.ToolResult); ok {
			return fmt.Sprintf("> ToolResult %s %s", r.Call, r.Output)
		}
		return fmt.Sprintf("> %s%+v", strings.TrimPrefix(fmt.Sprintf("%T", a.Command), "transport."), a.Command)
	case Transcript:
		return fmt.Sprintf("Transcript turn=%d %s %s %q final=%t since=%d", a.Turn, a.ID, a.Role, a.Text, a.Final, a.StartedAt.Sub(epoch).Milliseconds())
	case TurnEnded:
		line := fmt.Sprintf("TurnEnded %d %s tokens=%d/%d", a.Turn, a.Status, a.Usage.Input, a.Usage.Output)
		if a.Latency != nil {
			line += fmt.Sprintf(" latency=%dms provider=%dms gateway=%dms", a.Latency.Total.Milliseconds(), a.Latency.Provider.Milliseconds(), a.Latency.Gateway.Milliseconds())
		}
		return line
	case ToolEnded:
		b, _ := json.Marshal(a.Envelope.Error)
		return fmt.Sprintf("ToolEnded %d %s %s ok=%t delivered=%t %s", a.Turn, a.Call, a.Tool, a.Envelope.OK, a.Delivered, b)
	case RunTool:
		return fmt.Sprintf("RunTool %d %s %s id=%q %s", a.Turn, a.Call, a.Tool, a.ProviderID, a.Args)
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "orchestrator.")
	}
}

// words is one line of a script: a time in ms (or "caps"), a verb, key=value pairs.
type words struct {
	at   int
	verb string
	args map[string]string
}

func parseWords(line string) words {
	fields := strings.Fields(line)
	w := words{at: -1, args: make(map[string]string)}
	if n, err := strconv.Atoi(fields[0]); err == nil {
		w.at, w.verb = n, fields[1]
		fields = fields[1:]
	} else {
		w.verb = fields[0]
	}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		w.args[key] = strings.ReplaceAll(value, "_", " ")
	}
	return w
}

func (w words) id(key string) string { return strings.ReplaceAll(w.args[key], " ", "_") }

func (w words) num(key string) int64 {
	n, _ := strconv.ParseInt(w.args[key], 10, 64)
	return n
}

func capsOf(t *testing.T, w words) transport.Capabilities {
	t.Helper()
	if _, ok := w.args["hearing"]; ok {
		return capsHearing
	}
	if _, ok := w.args["deaf"]; ok {
		return capsDeaf
	}
	t.Fatalf("the first line must be caps hearing or caps deaf")
	return transport.Capabilities{}
}

func policyOf(w words) Policy {
	return Policy{MaxIdle: time.Duration(w.num("idle")) * time.Millisecond, MaxLength: time.Duration(w.num("length")) * time.Millisecond}
}

// envelope builds a tool's answer: ok unless it names an error, with an intent if
// it names one.
func (w words) envelope() registry.Envelope {
	if w.args["error"] != "" {
		return registry.NotFound(w.id("call"), "1.0.0", 0)
	}
	env := registry.Envelope{OK: true, Data: json.RawMessage(`{}`)}
	switch w.id("intent") {
	case "end":
		env.Intents = []registry.Intent{registry.EndVoiceSession(registry.EndAfter(w.id("after")))}
	case "suppress":
		env.Intents = []registry.Intent{registry.SuppressAudio(true)}
	case "pending":
		env.Intents = []registry.Intent{registry.SetPendingMessage("remember the milk")}
	}
	return env
}

// input builds the input that a line names.
func (w words) input(t *testing.T) Input {
	t.Helper()
	at := func(key string) time.Time { return epoch.Add(time.Duration(w.num(key)) * time.Millisecond) }
	model := func(ev transport.Event) Input { return FromModel{ev} }
	switch w.verb {
	case "begin":
		return Began{PendingRequest: w.args["pending"], Greeting: w.args["greeting"]}
	case "speech.started":
		return UserSpeechStarted{Item: w.id("item"), AudioMS: w.num("ms"), At: at("ms")}
	case "speech.stopped":
		return UserSpeechStopped{Item: w.id("item"), AudioMS: w.num("ms"), EndAt: at("end"), SpeechMS: w.num("spoken")}
	case "audio.began":
		return AudioBegan{w.id("item")}
	case "audio.sent":
		return AudioSent{w.id("item")}
	case "audio.ended":
		return AudioEnded{Item: w.id("item"), AudioMS: w.num("ms")}
	case "text":
		return UserText{ID: w.id("id"), Text: w.args["text"]}
	case "stop":
		return UserInterrupt{}
	case "press":
		return UserActivity{Active: true, AudioMS: w.num("ms")}
	case "release":
		return UserActivity{AudioMS: w.num("ms")}
	case "played":
		return Played{Item: w.id("item"), MS: w.num("ms"), Done: w.args["done"] == "yes"}
	case "finished":
		return ToolFinished{Call: w.id("call"), Envelope: w.envelope()}
	case "hangup":
		return HungUp{}
	case "tick":
		return Tick{}
	case "committed":
		return model(transport.InputCommitted{Item: w.id("item")})
	case "response":
		return model(transport.ResponseStarted{ID: w.id("id")})
	case "done":
		ev := transport.ResponseDone{ID: w.id("id"), Status: transport.ResponseStatus(w.args["status"])}
		if ev.Status == transport.ResponseFailed {
			ev.Err = &transport.Error{Provider: "p", Op: "response", Kind: transport.KindQuota, Err: errors.New("none left")}
		}
		return model(ev)
	case "interrupted":
		return model(transport.Interrupted{})
	case "transcript":
		return model(transport.Transcript{Item: w.id("item"), Role: transport.Role(w.args["role"]), Text: w.args["text"], Final: w.args["final"] == "yes"})
	case "call":
		return model(transport.ToolCall{Call: w.id("call"), ID: w.id("id"), Name: w.id("name"), Args: json.RawMessage(`{}`)})
	case "cancelled":
		return model(transport.ToolCancelled{Calls: []string{w.id("call")}})
	case "usage":
		return model(transport.Usage{Tokens: transport.Tokens{Input: w.num("in"), Output: w.num("out")}})
	case "goaway":
		return model(transport.GoAway{TimeLeft: time.Duration(w.num("ms")) * time.Millisecond})
	case "problem":
		return model(transport.Problem{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}})
	}
	t.Fatalf("a script has no verb %q", w.verb)
	return nil
}

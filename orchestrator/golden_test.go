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

	"voicegw/audit"
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
	// capsAside is a deaf one that goes on while tools run which say so.
	capsAside = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true, Tools: transport.ToolsDeclared, Scheduling: true}
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
			s = NewState(capsOf(t, w), policyOf(w), toolbox(), epoch)
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
			var env registry.Envelope
			if err := json.Unmarshal(r.Output, &env); err != nil {
				return "> ToolResult that is none: " + err.Error()
			}
			return strings.TrimSpace(fmt.Sprintf("> ToolResult %s %s %s", r.Call, showEnvelope(env), r.Scheduling))
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
		return fmt.Sprintf("ToolEnded %d %s %s delivered=%t %s", a.Turn, a.Call, a.Tool, a.Delivered, showEnvelope(a.Envelope))
	case RunTool:
		return strings.TrimSpace(fmt.Sprintf("RunTool %d %s %s %s key=%s %s", a.Turn, a.Call, a.Prepared.Tool().ToolID, a.Prepared.Args(), a.Keys.Idempotency, a.Confirmation))
	case AskConfirmation:
		return fmt.Sprintf("AskConfirmation %d %s %s %s", a.Turn, a.Call, a.Prepared.Tool().ToolID, a.Prepared.Args())
	case ConfirmationRequest:
		return fmt.Sprintf("ConfirmationRequest %d %s %s %s %q until=%d", a.Turn, a.Token, a.Tool, a.Args, a.Preview, a.ExpiresAt.Sub(epoch).Milliseconds())
	case Audit:
		return showRecord(a.Record)
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "orchestrator.")
	}
}

// showEnvelope prints what matters of an answer.
func showEnvelope(env registry.Envelope) string {
	s := "ok " + string(env.Data)
	if e := env.Error; e != nil {
		s = fmt.Sprintf("%s %q", e.Type, e.Message)
		if e.ConfirmationRequest != nil {
			s += " token=" + e.ConfirmationRequest.Token + " " + string(e.Details)
		}
		if e.PartialSideEffects {
			s += " partial"
		}
	}
	for _, i := range env.Intents {
		s += " intent=" + string(i.Type)
	}
	for name, c := range env.Meta.Clamped {
		s += fmt.Sprintf(" clamped=%s:%s->%d", name, c.Requested, c.Applied)
	}
	if env.Meta.CacheHit {
		s += fmt.Sprintf(" cached=turn%d", env.Meta.OriginalTurn)
	}
	if env.Meta.Budget != nil {
		s += " budget=" + string(env.Meta.Budget)
	}
	return s
}

// showRecord prints what the audit adds to what the actions beside it show.
func showRecord(r audit.Record) string {
	s := fmt.Sprintf("Audit %s %d %s %s", r.Event, r.TurnID, r.CallID, r.ToolID)
	for _, f := range []struct{ name, value string }{
		{"error", string(r.ErrorType)}, {"confirmation", r.Confirmation}, {"by", r.ConfirmedBy}, {"not_delivered", r.NotDelivered}, {"why", r.Why},
	} {
		if f.value != "" {
			s += fmt.Sprintf(" %s=%s", f.name, f.value)
		}
	}
	if len(r.Intents)+len(r.Refused) > 0 {
		s += fmt.Sprintf(" intents=%v refused=%v", r.Intents, r.Refused)
	}
	return s
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
	if _, ok := w.args["aside"]; ok {
		return capsAside
	}
	t.Fatalf("the first line must be caps hearing or caps deaf")
	return transport.Capabilities{}
}

func policyOf(w words) Policy {
	_, spoken := w.args["spoken"]
	p := Policy{
		MaxIdle: time.Duration(w.num("idle")) * time.Millisecond, MaxLength: time.Duration(w.num("length")) * time.Millisecond,
		SpokenConfirmation: spoken,
	}
	if tool := w.id("confirm"); tool != "" {
		p.Tools.Confirm = []string{tool}
	}
	return p
}

// envelope builds a tool's answer: ok unless it names an error, with an intent if
// it names one.
func (w words) envelope() registry.Envelope {
	if e := w.id("error"); e != "" {
		return registry.Envelope{Error: &registry.Error{Type: registry.ErrorType(e), Message: "It failed."}}
	}
	env := registry.Envelope{OK: true, Data: json.RawMessage(`{}`), Meta: registry.Meta{DurationMS: w.num("took")}}
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
	case "asked":
		return ConfirmationAsked{Call: w.id("call"), Token: w.id("token"), Reference: w.id("ref"), ExpiresAt: at("until")}
	case "answer":
		return ConfirmationAnswer{Token: w.id("token"), Approved: w.id("approved") == "yes"}
	case "resolved":
		return ConfirmationResolved{Token: w.id("token"), Outcome: Outcome(w.id("outcome")), By: ConfirmedBy(w.id("by"))}
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
		return model(transport.ToolCall{Call: w.id("call"), ID: w.id("id"), Name: w.id("name"), Args: json.RawMessage(w.id("args"))})
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

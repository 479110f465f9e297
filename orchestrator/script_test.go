package orchestrator

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// The kinds of models in the conversations.
var (
	// capsHearing reports the user's speech, waits to be asked, and withdraws nothing.
	capsHearing = transport.Capabilities{SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true, ToolsOff: true}
	// capsDeaf reports interruptions, answers on its own, and withdraws its calls.
	capsDeaf = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true}
	// capsStopped is a deaf one that can be stopped.
	capsStopped = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true, Cancel: true}
	// capsAside is a deaf one that continues during tools that allow it.
	capsAside = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true, Tools: transport.ToolsDeclared, Scheduling: true}
)

// words is one line of a script: a time in ms (or "caps"), a verb, key=value pairs. An underscore in a text is a
// space.
type words struct {
	t     *testing.T
	at    int
	verb  string
	state State // when the line is read
	args  map[string]string
}

func parseWords(t *testing.T, line string) words {
	fields := strings.Fields(line)
	w := words{t: t, at: -1, args: make(map[string]string)}
	if n, err := strconv.Atoi(fields[0]); err == nil {
		w.at, w.verb = n, fields[1]
		fields = fields[1:]
	} else {
		w.verb = fields[0]
	}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		w.args[key] = value
	}
	return w
}

func (w words) has(key string) bool { _, ok := w.args[key]; return ok }

func (w words) id(key string) string { return w.args[key] }

func (w words) text(key string) string { return strings.ReplaceAll(w.args[key], "_", " ") }

func (w words) num(key string) int64 {
	w.t.Helper()
	if !w.has(key) {
		return 0
	}
	n, err := strconv.ParseInt(w.args[key], 10, 64)
	if err != nil {
		w.t.Fatalf("%s of %s: %v", key, w.verb, err)
	}
	return n
}

func (w words) ms(key string) time.Duration { return time.Duration(w.num(key)) * time.Millisecond }

// kind is the kind of a failure, by default that of a broken connection.
func (w words) kind() transport.Kind {
	for _, k := range transport.Kinds() {
		if k.String() == w.id("kind") {
			return k
		}
	}
	return transport.KindRetry
}

func (w words) time(key string) time.Time { return epoch.Add(w.ms(key)) }

// caps is the kind of model named by the first line of a script.
func (w words) caps() transport.Capabilities {
	w.t.Helper()
	for name, caps := range map[string]transport.Capabilities{"hearing": capsHearing, "deaf": capsDeaf, "aside": capsAside, "stopped": capsStopped} {
		if w.has(name) {
			caps.Resume = w.has("resume")
			if w.has("live") {
				caps.Reconfigure = transport.ReconfigureLive
			}
			caps.AddItem = map[string]transport.AddItemForm{"live": transport.AddItemLive, "idle": transport.AddItemIdle}[w.id("items")]
			caps.AddItemBeside, caps.PlaysExact = w.has("beside"), uint8(w.num("plays"))
			if w.has("replay") {
				caps.History = transport.HistoryItems
			}
			return caps
		}
	}
	w.t.Fatal("the first line must be caps hearing, caps deaf, caps stopped or caps aside")
	return transport.Capabilities{}
}

// policy is the operator's rules in the first line.
func (w words) policy() Policy {
	p := Policy{RefuseUnsaid: w.has("refuse"), ResumeGrace: w.ms("grace"), Relink: w.has("replay"), Failover: w.has("failover"), MaxIdle: w.ms("idle"), MaxLength: w.ms("length"), MaxCost: cost.Micros(w.num("cost")), SpokenConfirmation: w.has("spoken")}
	p.HoldsBack = w.has("held")
	p.Tools.Budget.Total = int(w.num("total"))
	p.Tools.Questions = calls.Questions{PerTool: int(w.num("questions")), Total: int(w.num("questions_in_all"))}
	if w.has("claims") {
		var err error
		if p.Claims, err = calls.ParseClaimLanguages(strings.Split(w.id("claims"), ",")); err != nil {
			w.t.Fatal(err)
		}
	}
	if tool := w.id("confirm"); tool != "" {
		p.Tools.Confirm = []string{tool}
	}
	return p
}

// envelope builds a tool's answer: ok unless it names an error, with its intents.
func (w words) envelope() registry.Envelope {
	w.t.Helper()
	meta := registry.Meta{DurationMS: w.num("took")}
	if e := w.id("error"); e != "" {
		return registry.Envelope{Error: &registry.Error{Type: registry.ErrorType(e), Message: "It failed.", PartialSideEffects: w.has("partial")}, Meta: meta}
	}
	env := registry.Envelope{OK: true, Data: json.RawMessage(`{}`), Meta: meta}
	if data := w.id("data"); data != "" {
		env.Data = json.RawMessage(data)
	}
	if !w.has("intent") {
		return env
	}
	for name := range strings.SplitSeq(w.id("intent"), ",") {
		env.Intents = append(env.Intents, w.intent(name))
	}
	return env
}

func (w words) intent(name string) registry.Intent {
	w.t.Helper()
	switch name {
	case "end":
		return registry.EndVoiceSession(registry.EndAfter(w.id("after")))
	case "suppress":
		return registry.SuppressAudio(true)
	case "unsuppress":
		return registry.SuppressAudio(false)
	case "off_the_record":
		return registry.SuppressTranscript(true)
	case "pending":
		return registry.SetPendingMessage("remember the milk")
	case "switch":
		return registry.SwitchAgent(w.id("to"), "their task", w.text("words"))
	case "say":
		return registry.SayExactly("It costs twenty euros.", w.has("must"))
	case "dance":
		return registry.Intent{Type: "DANCE"}
	}
	w.t.Fatalf("a script has no intent %q", name)
	return registry.Intent{}
}

// input builds the input of a line.
func (w words) input() Input {
	w.t.Helper()
	switch w.verb {
	case "begin":
		return Began{PendingRequest: w.text("pending"), Context: w.text("context"), Greeting: w.text("greeting"), Notice: w.text("notice")}
	case "ready":
		return ExactReady{ID: w.id("id"), AudioMS: w.num("ms")}
	case "unready":
		return ExactFailed{ID: w.id("id")}
	case "speech.started":
		return UserSpeechStarted{Item: w.id("item"), AudioMS: w.num("ms"), At: w.time("ms")}
	case "speech.stopped":
		return UserSpeechStopped{Item: w.id("item"), AudioMS: w.num("ms"), EndAt: w.time("end"), SpeechMS: w.num("spoken"), Unsure: w.has("unsure")}
	case "quiet":
		return UserQuiet{EndAt: w.time("end")}
	case "heard":
		return UserHeard{AudioMS: w.num("ms"), Sustained: w.has("sustained")}
	case "audio.began":
		return AudioBegan{w.id("item")}
	case "audio.sent":
		return AudioSent{Item: w.id("item"), Sent: w.ms("ms")}
	case "audio.ended":
		return AudioEnded{Item: w.id("item"), AudioMS: w.num("ms")}
	case "text":
		return UserText{ID: w.id("id"), Text: w.text("text")}
	case "context":
		return UserContext{Text: w.text("text"), Role: transport.Role(w.id("role")), Known: w.has("known")}
	case "ask":
		return UserAsk{Instructions: w.text("instructions")}
	case "stopped":
		return AnswerStopped{checks.Stop{Item: w.id("item"), Why: checks.Matched, Text: w.text("claim"),
			Rule: &checks.Rule{Name: "rude", Claims: w.has("claim"), Outcome: checks.Outcome(w.id("outcome")), Say: w.text("say")}}}
	case "stop":
		return UserInterrupt{}
	case "press":
		return UserActivity{Active: true, AudioMS: w.num("ms")}
	case "release":
		return UserActivity{AudioMS: w.num("ms")}
	case "played":
		return Played{Item: w.id("item"), MS: w.num("ms"), Done: w.id("done") == "yes"}
	case "finished":
		done := calls.Finished{Call: w.id("call"), Envelope: w.envelope()}
		if w.has("begun") {
			done.BegunAt = w.time("begun")
		}
		return OfCall{done}
	case "asked":
		if w.has("error") {
			env := w.envelope()
			return OfCall{calls.Recorded{Call: w.id("call"), Refused: &env}}
		}
		return OfCall{calls.Recorded{Call: w.id("call"), Token: w.id("token"), Name: w.id("token"), Reference: w.id("ref"), ExpiresAt: w.time("until")}}
	case "answer":
		return ConfirmationAnswer{Token: w.id("token"), Approved: w.id("approved") == "yes"}
	case "progress":
		fraction := -1.0
		if w.has("percent") {
			fraction = float64(w.num("percent")) / 100
		}
		return OfCall{calls.Progressed{Call: w.id("call"), Text: w.text("text"), Fraction: fraction}}
	case "resolved":
		return OfCall{calls.Resolved{Token: w.id("token"), Outcome: calls.Outcome(w.id("outcome")), By: calls.By(w.id("by"))}}
	case "expiring":
		return LinkExpiring{From: w.time("from"), By: w.time("by")}
	case "move":
		return Move{By: w.time("by")}
	case "lost":
		return LinkLost{Kind: w.kind(), After: w.ms("after")}
	case "back":
		caps := w.state.caps
		if w.has("no_items") {
			caps.AddItem = transport.AddItemNone
		}
		return LinkBack{Caps: caps, How: LinkHow(w.id("how")), Kept: w.has("kept")}
	case "failed":
		return LinkFailed{Kind: w.kind(), After: w.ms("after")}
	case "agent":
		return AgentFound{w.agent()}
	case "switch":
		return SwitchAgent{w.agent(), "an operator"}
	case "job":
		return JobEnded{Job: w.id("id"), Tool: w.id("tool"), Name: w.text("name"), Result: json.RawMessage(`{"ok":true,"data":{"pages":12}}`)}
	case "restored":
		return w.restored()
	case "client.lost":
		return ClientLost{}
	case "client.back":
		return w.clientBack()
	case "usage":
		return Used{Tokens: transport.Tokens{Input: w.num("in"), Output: w.num("out")}, Cost: cost.Amount{Micros: cost.Micros(w.num("cost")), Unpriced: w.num("unpriced")}}
	case "guessed":
		return Guessed{Cost: cost.Amount{Micros: cost.Micros(w.num("cost")), Estimated: 1}}
	case "spending":
		return Spending{Near: w.has("near"), Over: w.has("over")}
	case "lapse":
		return Lapse{At: w.time("at")}
	case "hangup":
		return HungUp{}
	case "over":
		return Over{}
	case "tick":
		return Tick{}
	}
	return FromModel{w.event()}
}

// agent is the target of a switch: from=name name=name, tools=name,... for its tools, elsewhere for an agent of
// another provider.
func (w words) agent() *NextAgent {
	tools := box(w)
	if w.has("tools") {
		tools = toolbox().Only(strings.Split(w.id("tools"), ",")).Switching(targets)
	}
	return &NextAgent{From: w.id("from"), Name: w.id("name"), Tools: tools, Budget: calls.Budget{Total: int(w.num("total"))}, Instructions: "You are " + w.id("name") + ".", Elsewhere: w.has("elsewhere")}
}

// targets are the agents of the scripts.
var targets = []registry.SwitchTarget{{ID: "desk", Name: "Desk"}, {ID: "billing", Name: "Billing"}, {ID: "tech", Name: "Support"}}

// box is the toolbox of a script, with agent_switch if its first line has switches.
func box(w words) *registry.Snapshot {
	if w.has("switches") || w.verb != "caps" {
		return toolbox().Switching(targets)
	}
	return toolbox()
}

// restored is a session after a takeover: turns=n; open=n if that turn was open, with worded, spoke or told=text;
// call=name or read=name for a running call of pay or search; question=token for an open question. given: the other
// process has handed it over; again: the client replays unhandled input. answered instead of open: the turn's answer
// is complete; untold: the client does not know that it has ended. spoken=item:turn:ms,... are the latest items: +
// marks one that has not ended, ! one that was cut off. has=item:ms and seq=n are the data that the client has
// received.
func (w words) restored() Input {
	m := Memory{Turn: int(w.num("turns")), Phase: PhaseActive, Unanswered: w.has("unanswered"), Worded: w.has("unanswered") && !w.has("wordless")}
	m.Cost.Micros = cost.Micros(w.num("spent"))
	if w.has("phase") {
		m.Phase = Phase(w.id("phase"))
	}
	if w.has("open") {
		m.Open = &OpenTurn{Number: int(w.num("open")), Worded: w.has("worded"), Spoke: w.has("spoke"), Told: w.text("told")}
	}
	if w.has("answered") {
		m.Answered = &OpenTurn{Number: int(w.num("answered")), Worded: w.has("worded"), Spoke: true, Told: w.text("told"), Untold: w.has("untold")}
	}
	for one := range strings.FieldsFuncSeq(w.id("spoken"), func(r rune) bool { return r == ',' }) {
		m.Spoken = append(m.Spoken, w.spoken(one))
	}
	args := json.RawMessage(`{"name":"Ada","time":"8"}`)
	for _, kind := range []string{"writes", "reads"} {
		if w.has(kind) {
			m.Calls.Open = append(m.Calls.Open, calls.OpenCall{Call: w.id(kind), Turn: m.Turn, Tool: "write", Runs: "write", Args: args, Key: "provider:before", Writes: kind == "writes"})
		}
	}
	if w.has("question") {
		m.Calls.Questions = []calls.OpenQuestion{{Token: w.id("question"), Name: "n", Reference: "ABC234", Call: "call_1", Turn: m.Turn, Tool: "write", Runs: "write", Version: w.id("version"), Args: args, PutAt: epoch, ExpiresAt: epoch.Add(time.Minute)}}
	}
	if w.has("notice") {
		m.Notices = []Notice{{Text: w.text("notice")}}
		if w.has("result") {
			m.Notices[0].Record = &audit.Record{Event: audit.EventTool, TurnID: m.Turn, ToolCall: audit.ToolCall{CallID: w.id("result")}, ToolID: "write", OK: true}
		}
	}
	for text := range strings.FieldsFuncSeq(w.text("contexts"), func(r rune) bool { return r == ',' }) {
		m.Contexts = append(m.Contexts, text)
	}
	if w.has("exact") {
		m.Exacts = []Exact{{Text: w.text("exact"), MustHear: true, Notice: w.has("held")}}
		m.Held = []Held{{Began: &Began{Greeting: w.text("held")}}, {Text: &UserText{Text: "hello"}}}
	}
	if w.has("unsent") {
		m.Unsent = []*audit.Record{{Event: audit.EventTool, TurnID: m.Turn, ToolCall: audit.ToolCall{CallID: w.id("unsent")}, ToolID: "write", OK: true, Delivered: true}}
	}
	var unheard []Unheard
	if w.has("seq") {
		item, ms := w.itemMS("has")
		m, unheard = m.Heard(Received{Item: item, MS: ms, Seq: w.num("seq")})
	}
	return Restored{Memory: m, StartedAt: epoch.Add(-time.Hour), Epoch: 2, Given: w.has("given"), Handle: w.id("handle"), Unheard: len(unheard) > 0, SaidAgain: w.has("again")}
}

// spoken is an item: its name, its turn, and its length in ms, with a + if it has not ended, and a ! if it was cut
// off.
func (w words) spoken(text string) SpokenItem {
	w.t.Helper()
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		w.t.Fatalf("an item is name:turn:ms, not %q", text)
	}
	ms, cut := strings.CutSuffix(parts[2], "!")
	ms, more := strings.CutSuffix(ms, "+")
	turn, err := strconv.Atoi(parts[1])
	length, err2 := strconv.ParseInt(ms, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	return SpokenItem{Item: parts[0], Turn: turn, MS: length, Ended: !more, Cut: cut, Seq: int64(10 * turn)}
}

// itemMS is an item and a position in it; empty without the key.
func (w words) itemMS(key string) (item string, ms int64) {
	w.t.Helper()
	item, text, ok := strings.Cut(w.id(key), ":")
	if !ok {
		return "", 0
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return item, ms
}

// clientBack is the return of the client: has=item:ms,... is incomplete audio of the client, gone=item,... are items
// that it has lost.
func (w words) clientBack() Input {
	var in ClientBack
	if w.has("gone") {
		in.Gone = strings.Split(w.id("gone"), ",")
	}
	for one := range strings.FieldsFuncSeq(w.id("has"), func(r rune) bool { return r == ',' }) {
		item, ms, _ := strings.Cut(one, ":")
		n, err := strconv.Atoi(ms)
		if err != nil {
			w.t.Fatal(err)
		}
		in.Again = append(in.Again, Again{Item: item, Has: time.Duration(n) * time.Millisecond})
	}
	return in
}

// event builds the model's event of a line.
func (w words) event() transport.Event {
	w.t.Helper()
	switch w.verb {
	case "committed":
		return transport.InputCommitted{Item: w.id("item")}
	case "response":
		return transport.ResponseStarted{ID: w.id("id"), Exact: w.has("exact")}
	case "done":
		ev := transport.ResponseDone{ID: w.id("id"), Status: transport.ResponseStatus(w.id("status"))}
		switch {
		case w.has("kind"):
			ev.Err = &transport.Error{Provider: "p", Op: "response", Kind: w.kind(), RetryAfter: w.ms("wait"), Err: errors.New("it failed")}
		case ev.Status == transport.ResponseFailed:
			ev.Err = &transport.Error{Provider: "p", Op: "response", Kind: transport.KindQuota, Err: errors.New("none left")}
		}
		return ev
	case "interrupted":
		return transport.Interrupted{}
	case "nothing":
		return transport.NothingSaid{}
	case "transcript":
		return transport.Transcript{Item: w.id("item"), Role: transport.Role(w.id("role")), Text: w.text("text"), Final: w.id("final") == "yes"}
	case "call":
		return transport.ToolCall{Call: w.id("call"), ID: w.id("id"), Name: w.id("name"), Args: json.RawMessage(w.id("args"))}
	case "cancelled":
		return transport.ToolCancelled{Calls: strings.Split(w.id("call"), ",")}
	case "handle":
		return transport.ResumeHandle{Handle: w.id("value"), Resumable: w.has("value")}
	case "reconfigured":
		if w.has("error") {
			return transport.Reconfigured{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}}
		}
		return transport.Reconfigured{}
	case "working":
		return transport.Interaction{InProgress: !w.has("no_more")}
	case "goaway":
		return transport.GoAway{TimeLeft: w.ms("ms")}
	case "transcript.failed":
		return transport.TranscriptFailed{Item: w.id("item"), Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}}
	case "problem":
		return transport.Problem{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}}
	}
	w.t.Fatalf("a script has no verb %q", w.verb)
	return nil
}

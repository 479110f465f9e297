package orchestrator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// talk is a random conversation: it simulates the user, the client, the model, the tools and the store, and has every
// step checked.
type talk struct {
	rng    *rand.Rand
	state  State
	at     time.Time
	watch  *watcher
	page   *rand.Rand // for the page's texts, separate so that the rest of a conversation does not change
	leaves bool       // the client is lost sometimes, and returns
	twice  bool       // every step is made twice, and the results compared
	moves  bool       // another process takes over sometimes
	epoch  uint64
	fresh  func() State // of a new process

	serial    int      // for unique names
	preparing []string // exact sentences whose audio is being made
	calls     []string // the adapter's names of all calls
	ids       []string // provider's ids used so far
	running   []string // calls that run
	asking    []string // calls whose question is being recorded
	resolving []calls.Resolve
	tokens    []string // of all questions
	refs      []string
	response  string   // the model's current response
	audio     []string // items that have begun and not ended
	played    []string // ended items
	sent      map[string]time.Duration
	clock     PlayClock
}

// takenOver is the first sort of conversations with takeovers.
const takenOver = 224

// newTalk begins a conversation: sort chooses the model and the operator's rules.
func newTalk(t *testing.T, seed uint64, sort uint8) *talk {
	rng := rand.New(rand.NewPCG(seed, 3))
	caps := []transport.Capabilities{capsHearing, capsDeaf, capsAside, capsStopped}[sort%4]
	p := Policy{SpokenConfirmation: sort/4%2 == 1}
	if sort/8%2 == 1 {
		p.Tools.Confirm = []string{"write", "book"}
	}
	p.Tools.Budget.Total = []int{0, 9, 1}[sort/16%3]
	p.Tools.Questions = calls.Questions{PerTool: 2, Total: 4}
	if sort/48%2 == 1 {
		p.Relink, caps.History, caps.Resume = true, transport.HistoryItems, sort%3 == 0
	}
	moves := sort >= takenOver
	if moves {
		p.Relink, caps.History = true, transport.HistoryItems
	}
	caps.AddItem = []transport.AddItemForm{transport.AddItemIdle, transport.AddItemLive, transport.AddItemNone}[seed%3]
	caps.AddItemBeside = seed%2 == 0
	p.ResumeGrace = 2 * time.Minute
	if sort%5 == 4 {
		p.MaxCost = 100
	}
	tk := &talk{rng: rng, page: rand.New(rand.NewPCG(seed, 5)), at: epoch, watch: newWatcher(t, caps, p), sent: map[string]time.Duration{}, moves: moves, epoch: 1}
	tk.fresh = func() State { return NewState(caps, NewRules(p), toolbox(), testMark, tk.at) }
	tk.state, tk.leaves = tk.fresh(), sort/96%2 == 1
	begin := Began{}
	if seed%7 == 3 {
		begin = Began{Notice: "This call is recorded.", Greeting: "Say hello."}
	}
	tk.take(begin)
	return tk
}

// take makes one step and carries out its actions.
func (tk *talk) take(in Input) {
	if asked, ok := bareInput(in).(calls.Recorded); ok && asked.Token != "" {
		tk.tokens, tk.refs = append(tk.tokens, asked.Token), append(tk.refs, asked.Reference)
	}
	next, actions := tk.oneStep(in)
	by, due := tk.state.move.by, tk.state.link.by
	if move, ok := in.(Move); ok {
		by = move.By
	}
	tk.state = next
	tk.watch.see(tk.at, in, actions, next.phase)
	tk.watch.bounded(next)
	tk.watch.sentences(next)
	tk.watch.contextsGiven(next)
	for _, a := range actions {
		switch a := bare(a).(type) {
		case FlushItem:
			tk.clock.Cut(tk.at)
		case calls.Run:
			tk.running = append(tk.running, a.Call)
		case calls.Ask:
			tk.asking = append(tk.asking, a.Call)
		case calls.Resolve:
			tk.resolving = append(tk.resolving, a)
		case PrepareExact:
			tk.preparing = append(tk.preparing, a.ID)
		case PlayExact:
			tk.played = append(tk.played, a.Item)
		case SwitchLink:
			tk.replacedInCall(in, a, due)
		case Moving:
			if n := next.calls.UnderWay(); n > 0 && tk.at.Before(by) {
				tk.watch.fail("the session moves %[2]s early, while %[1]d calls run", n, by.Sub(tk.at))
			}
		}
	}
}

// replacedInCall: no planned replacement takes the connection from a call before its deadline, due, unless an input
// brings the deadline forward.
func (tk *talk) replacedInCall(in Input, a SwitchLink, due time.Time) {
	_, sooner := in.(LinkExpiring)
	if ev, ok := in.(FromModel); ok {
		_, goes := ev.Event.(transport.GoAway)
		sooner = sooner || goes
	}
	if a.Reason == LinkExpired && a.Calls > 0 && !sooner && tk.at.Before(due) {
		tk.watch.fail("the connection was replaced %v early, during %d calls", due.Sub(tk.at), a.Calls)
	}
}

// oneStep is Step, made twice if the talk checks that it is pure.
func (tk *talk) oneStep(in Input) (State, []Action) {
	if !tk.twice {
		return Step(tk.state, tk.at, in)
	}
	before := dump(tk.state)
	one, actionsOne := Step(tk.state, tk.at, in)
	two, actionsTwo := Step(tk.state, tk.at, in)
	if dump(tk.state) != before {
		tk.watch.fail("%T changed the state it was given", in)
	}
	if dump(one)+showAll(actionsOne) != dump(two)+showAll(actionsTwo) {
		tk.watch.fail("%T had two outcomes", in)
	}
	return one, actionsOne
}

// pass advances the time and performs the events that become due.
func (tk *talk) pass(d time.Duration) {
	until := tk.at.Add(d)
	for due := tk.state.WakeAt(); !due.IsZero() && !due.After(until); due = tk.state.WakeAt() {
		if due.After(tk.at) {
			tk.at = due
		}
		tk.take(Tick{})
		tk.watch.wakes(tk.at, tk.state.WakeAt())
	}
	tk.at = until
	for tk.state.down() && tk.state.phase != PhaseEnded && !tk.at.Before(tk.state.link.lostAt.Add(linkPatience)) {
		tk.take(LinkFailed{Kind: transport.KindRetry}) // the session limits each attempt
		tk.at = tk.at.Add(longestPause)
	}
}

// step performs one random event.
func (tk *talk) step() {
	d := time.Duration(tk.rng.IntN(400)) * time.Millisecond
	if tk.rng.IntN(60) == 0 {
		d *= 100
	}
	tk.pass(d)
	tk.pageSends()
	tk.toolsReport()
	tk.prepareOne()
	if tk.state.replaceable() && tk.rng.IntN(20) == 0 {
		tk.take(tk.linkInput())
		return
	}
	if tk.leaves && tk.rng.IntN(10) == 0 {
		tk.leaveOrReturn()
		return
	}
	if tk.moves && tk.rng.IntN(15) == 0 && tk.state.phase == PhaseActive {
		tk.takeOver()
		return
	}
	switch n := tk.rng.IntN(10); {
	case n < 3 && len(tk.running) > 0:
		tk.finishOne(true)
	case n < 4 && len(tk.asking) > 0:
		tk.askOne()
	case n < 5 && len(tk.resolving) > 0:
		tk.resolveOne()
	case n < 6:
		tk.take(tk.toolInput())
	default:
		tk.take(tk.speechInput())
	}
}

// linkInput is about the connection to the model.
func (tk *talk) linkInput() Input {
	switch n := tk.rng.IntN(12); {
	case tk.state.down() && n == 0 && tk.rng.IntN(8) == 0:
		return LinkFailed{Kind: transport.Kinds()[tk.rng.IntN(len(transport.Kinds()))]}
	case tk.state.down() && tk.state.ending():
		return Tick{} // no new connection was requested
	case tk.state.down():
		return tk.back()
	case n < 3:
		return LinkLost{Kind: transport.KindRetry}
	case n < 4:
		return Move{By: tk.at.Add(time.Duration(tk.rng.IntN(20)) * time.Second)}
	case n < 6:
		return LinkExpiring{From: tk.at.Add(time.Duration(tk.rng.IntN(5)) * time.Second), By: tk.at.Add(time.Duration(tk.rng.IntN(20)) * time.Second)}
	default:
		return FromModel{transport.ResumeHandle{Handle: "handle", Resumable: n < 10}}
	}
}

// back is a new connection, on which the model has said nothing yet.
func (tk *talk) back() Input {
	tk.response = ""
	how := []LinkHow{LinkReplayed, LinkFresh, LinkResumed}[tk.rng.IntN(3)]
	if how == LinkResumed && !tk.state.caps.Resume {
		how = LinkReplayed
	}
	return LinkBack{Caps: tk.state.caps, How: how, Kept: tk.rng.IntN(2) == 0}
}

// leaveOrReturn disconnects the client, or lets it return with nothing or a part of the sent audio.
func (tk *talk) leaveOrReturn() {
	if !tk.state.away() {
		tk.take(ClientLost{})
		return
	}
	var in ClientBack
	for _, it := range tk.state.line.items {
		if it.done {
			continue // the client has heard it
		}
		switch tk.rng.IntN(3) {
		case 0:
			in.Gone = append(in.Gone, it.id)
		case 1:
			has := time.Duration(tk.rng.Int64N(int64(it.sent) + 1))
			in.Again = append(in.Again, Again{Item: it.id, Has: has})
			tk.sent[it.id] = has
		}
	}
	tk.take(in)
}

// pick takes an element out of list, or sometimes leaves it there if twice is set.
func pick[T any](rng *rand.Rand, list *[]T, twice bool) T {
	i := rng.IntN(len(*list))
	one := (*list)[i]
	if !twice || rng.IntN(8) > 0 {
		*list = append((*list)[:i:i], (*list)[i+1:]...)
	}
	return one
}

func (tk *talk) finishOne(twice bool) {
	env := registry.Envelope{OK: tk.rng.IntN(4) > 0, Data: json.RawMessage(`{}`)}
	env.Meta.DurationMS = int64(tk.rng.IntN(800))
	if tk.rng.IntN(3) == 0 {
		env.Intents = []registry.Intent{tk.intent()}
	}
	for range tk.page.IntN(12) / 9 {
		env.Intents = append(env.Intents, registry.SayExactly("It costs twenty euros.", tk.page.IntN(2) == 0))
	}
	if !env.OK {
		env.Error = &registry.Error{Type: registry.ErrorTransient, Message: "It failed."}
	}
	done := calls.Finished{Call: pick(tk.rng, &tk.running, twice), Envelope: env}
	if tk.rng.IntN(4) > 0 {
		done.BegunAt = tk.at.Add(-time.Duration(tk.rng.IntN(2000)) * time.Millisecond)
	}
	tk.take(OfCall{done})
}

func (tk *talk) intent() registry.Intent {
	switch tk.rng.IntN(14) {
	case 0:
		return registry.EndVoiceSession(registry.EndAfterFarewellSpoken)
	case 1:
		return registry.EndVoiceSession(registry.EndAfterCurrentTurn)
	case 2:
		if tk.rng.IntN(4) > 0 {
			break
		}
		return registry.EndVoiceSession(registry.EndNow)
	case 3, 4:
		return registry.SuppressAudio(tk.rng.IntN(3) == 0)
	case 5, 6:
		return registry.SuppressTranscript(tk.rng.IntN(2) == 0)
	case 7:
		return registry.Intent{Type: "DANCE"}
	}
	return registry.SetPendingMessage("more")
}

func (tk *talk) askOne() {
	call := pick(tk.rng, &tk.asking, false)
	tk.serial++
	in := calls.Recorded{Call: call, Token: fmt.Sprint("token", tk.serial), Name: fmt.Sprint("name", tk.serial), Reference: fmt.Sprint("ref", tk.serial),
		ExpiresAt: tk.at.Add(time.Duration(1+tk.rng.IntN(60)) * time.Second)}
	if tk.rng.IntN(6) == 0 {
		in.Token = ""
	}
	if tk.rng.IntN(6) == 0 {
		in = calls.Recorded{Call: call, Refused: &registry.Envelope{Error: &registry.Error{Type: registry.ErrorValidation, Message: "It cannot be."}}}
	}
	tk.take(OfCall{in})
}

func (tk *talk) resolveOne() {
	r := pick(tk.rng, &tk.resolving, true)
	in := calls.Resolved{Token: r.Token, Outcome: calls.OutcomeDenied, By: r.By}
	switch {
	case tk.rng.IntN(8) == 0:
		in.Outcome = calls.OutcomeFailed
	case tk.rng.IntN(8) == 0:
		in.Outcome = calls.OutcomeUsed
	case r.Approved:
		in.Outcome = calls.OutcomeApproved
	case r.By == calls.ByClock:
		in.Outcome = calls.OutcomeExpired
	}
	tk.take(OfCall{in})
}

// toolInput is about calls and questions.
func (tk *talk) toolInput() Input {
	switch n := tk.rng.IntN(20); {
	case n < 15:
		return FromModel{tk.call()}
	case n < 17:
		return FromModel{transport.ToolCancelled{Calls: []string{tk.oneOf(tk.calls, 3), tk.oneOf(tk.calls, 20)}}}
	case n < 18 || n < 19 && len(tk.tokens) > 0:
		return ConfirmationAnswer{Token: tk.oneOf(tk.tokens, 4), Approved: tk.rng.IntN(3) > 0}
	case tk.rng.IntN(2) == 0: // over the API, or with an invented token
		return OfCall{calls.Resolved{Token: tk.oneOf(tk.tokens, 4), Outcome: calls.OutcomeApproved, By: calls.ByAPI}}
	default:
		return OfCall{calls.Finished{Call: fmt.Sprint("call_", tk.rng.IntN(tk.serial+1)), Envelope: registry.Envelope{OK: true}}}
	}
}

// oneOf is one of the last elements of a list, or a value that was never in it.
func (tk *talk) oneOf(list []string, last int) string {
	n := min(last, len(list))
	if n == 0 || tk.rng.IntN(8) == 0 {
		return "nothing"
	}
	return list[len(list)-1-tk.rng.IntN(n)]
}

// randomTools are the model's calls, with valid and invalid arguments.
var randomTools = []struct {
	name string
	args []string
}{
	{"kb_search", []string{`{"query":"x"}`, `{"query":"x","top_k":10}`, `{"query":"y","top_k":2,"limit":99}`, `{"top_k":"many"}`, `{"top_k":1e9}`}},
	{"kb_get", []string{`{"id":"1"}`, `{"id":"2"}`, ` { "id" : "1" } `, `nonsense`}},
	{"book", []string{`{"name":"Ada","time":"8"}`, `{"time":"8","name":"Ada","note":"n"}`, `{"name":"Ada","time":"9"}`, `{"who":"Ada"}`}},
	{"write", []string{`{"name":"Ada"}`, `{"name":"Bob"}`, `[]`}},
	{"pay", []string{`{"amount":5,"to":"Bob"}`, `{"to":"Bob","amount":5}`, `{"amount":6,"to":"Bob"}`, `{"amount":7,"to":"Eve"}`, `{"amount":5,"token":"token1"}`}},
	{"report", []string{`{}`}}, {"note", []string{``}}, {"slow_one", []string{`{}`}}, {"get_time", []string{`{}`, `{"a":1}`}},
	{"text_only", []string{`{}`}}, {"launch_rocket", []string{`{}`}}, {"remember", []string{``}},
	{"end_voice_session", []string{`{}`}},
}

func (tk *talk) call() transport.ToolCall {
	tk.serial++
	c := transport.ToolCall{Call: fmt.Sprint("model", tk.serial)}
	if tk.rng.IntN(6) == 0 && len(tk.refs) > 0 {
		c.Name = calls.ConfirmAction
		c.Args = json.RawMessage(fmt.Sprintf(`{"reference":%q,"approved":%t}`, tk.oneOf(tk.refs, 3), tk.rng.IntN(4) > 0))
	} else {
		tool := randomTools[tk.rng.IntN(len(randomTools))]
		c.Name, c.Args = tool.name, json.RawMessage(tool.args[tk.rng.IntN(len(tool.args))])
	}
	switch tk.rng.IntN(6) {
	case 0: // no id
	case 1:
		c.ID = fmt.Sprint("short", tk.rng.IntN(3))
	case 2:
		c.ID = fmt.Sprint("tmp-0000000", tk.rng.IntN(3))
	case 3, 4:
		c.ID = fmt.Sprintf("call_%010d", tk.serial)
		tk.ids = append(tk.ids, c.ID)
	default:
		c.ID = tk.oneOf(tk.ids, 2)
	}
	tk.calls = append(tk.calls, c.Call)
	return c
}

// speechInput covers everything but tools, sometimes in a nonsensical order.
func (tk *talk) speechInput() Input {
	switch n := tk.rng.IntN(20); {
	case n < 13:
		return tk.modelSpeaks()
	case n < 17:
		return tk.userActs()
	case n < 19:
		return tk.strange()
	default:
		return Tick{}
	}
}

// modelSpeaks is the next event of an orderly answer.
func (tk *talk) modelSpeaks() Input {
	tk.serial++
	switch n := tk.rng.IntN(10); {
	case tk.response == "":
		tk.response = fmt.Sprint("resp", tk.serial)
		return FromModel{transport.ResponseStarted{ID: tk.response}}
	case n < 3:
		tk.audio = append(tk.audio, fmt.Sprint("audio", tk.serial))
		return AudioBegan{tk.audio[len(tk.audio)-1]}
	case n < 4 && len(tk.audio) > 0:
		return tk.sends(tk.audio[tk.rng.IntN(len(tk.audio))], time.Duration(tk.rng.IntN(2000))*time.Millisecond)
	case n < 7 && len(tk.audio) > 0:
		item := pick(tk.rng, &tk.audio, true)
		tk.played = append(tk.played, item)
		if tk.rng.IntN(3) > 0 {
			return AudioEnded{Item: item, AudioMS: tk.sent[item].Milliseconds()}
		}
		// Part of it still waits, and leaves later or never.
		return AudioEnded{Item: item, AudioMS: tk.sent[item].Milliseconds() + int64(tk.rng.IntN(500))}
	case n < 9:
		done := transport.ResponseDone{ID: tk.response, Status: tk.status()}
		tk.response = ""
		return FromModel{done}
	default:
		return tk.clientPlays()
	}
}

// sends sends more of an item to the client.
func (tk *talk) sends(item string, more time.Duration) Input {
	tk.sent[item] += more
	return AudioSent{Item: item, Sent: tk.sent[item], Until: tk.clock.Add(tk.at, more)}
}

func (tk *talk) status() transport.ResponseStatus {
	switch tk.rng.IntN(10) {
	case 0:
		return transport.ResponseFailed
	case 1, 2:
		return transport.ResponseInterrupted
	case 3:
		return transport.ResponseIncomplete
	}
	return transport.ResponseCompleted
}

func (tk *talk) clientPlays() Input {
	all := append(append([]string(nil), tk.audio...), tk.played...)
	if tk.rng.IntN(4) == 0 && len(tk.played) > 0 {
		return tk.sends(tk.played[len(tk.played)-1], 500*time.Millisecond)
	}
	return Played{Item: tk.oneOf(all, 4), MS: int64(tk.rng.IntN(4000)) - 500, Done: tk.rng.IntN(2) == 0}
}

func (tk *talk) userActs() Input {
	item := fmt.Sprint("item", tk.rng.IntN(6))
	lately := tk.at.Add(-time.Duration(tk.rng.IntN(600)) * time.Millisecond)
	switch tk.rng.IntN(13) {
	case 12:
		return UserHeard{AudioMS: 500, Sustained: tk.rng.IntN(2) == 0}
	case 0, 1:
		return UserSpeechStarted{Item: item, AudioMS: 100, At: lately}
	case 2, 3, 4:
		return UserSpeechStopped{Item: item, AudioMS: 900, EndAt: lately, SpeechMS: int64(tk.rng.IntN(2000))}
	case 5:
		return FromModel{transport.InputCommitted{Item: item}}
	case 6:
		return UserText{Text: "hi"}
	case 7:
		return UserInterrupt{}
	case 8:
		return UserActivity{Active: tk.rng.IntN(2) == 0, AudioMS: tk.at.Sub(epoch).Milliseconds()}
	case 9:
		return FromModel{transport.Transcript{Item: item, Role: transport.RoleUser, Text: "x"}}
	default:
		return tk.clientPlays()
	}
}

// strange is an input that fits no state.
func (tk *talk) strange() Input {
	resp := fmt.Sprint("resp", tk.rng.IntN(tk.serial+1))
	switch tk.rng.IntN(6) {
	case 0:
		return FromModel{transport.Interrupted{}}
	case 1:
		return FromModel{transport.ResponseStarted{ID: resp}}
	case 2:
		return FromModel{transport.ResponseDone{ID: resp, Status: tk.status()}}
	case 3:
		return tk.used()
	case 4:
		if n := tk.rng.IntN(3); n > 0 {
			return FromModel{transport.Interaction{InProgress: n == 1}}
		}
		return FromModel{transport.Transcript{Item: "said", Role: transport.RoleAssistant, Text: "x"}}
	default:
		return FromModel{transport.GoAway{TimeLeft: time.Minute}}
	}
}

// used is a usage report of the model, or the user's usage elsewhere.
func (tk *talk) used() Input {
	switch n := tk.rng.IntN(40); n {
	case 3:
		if tk.rng.IntN(20) > 0 {
			return Lapse{} // or hardly any conversation would continue
		}
		return Lapse{At: tk.at.Add(time.Duration(tk.rng.IntN(120)) * time.Second)}
	case 0:
		return Spending{Near: true}
	case 1:
		return Spending{Near: true, Over: true}
	case 2:
		return Spending{}
	case 5:
		return JobEnded{Job: fmt.Sprintf("job-%d", tk.rng.IntN(4)), Tool: "report", Name: "Report", Result: json.RawMessage(`{"ok":true}`)}
	case 4:
		return Guessed{Cost: cost.Amount{Micros: 4, Estimated: 1}}
	default:
		return Used{Tokens: transport.Tokens{Input: 1}, Cost: cost.Amount{Micros: cost.Micros(n)}}
	}
}

// finish ends everything in progress, during or after the session.
func (tk *talk) finish() {
	late := tk.rng.IntN(3) == 0
	if late {
		tk.take(HungUp{})
	}
	if tk.state.down() && !tk.state.ending() {
		tk.take(tk.back())
	}
	tk.finishAll()
	if late || tk.state.phase == PhaseEnded {
		return
	}
	tk.take(ClientBack{})
	tk.take(UserActivity{AudioMS: tk.at.Sub(epoch).Milliseconds()}) // a button that is held delays the end
	tk.hearExacts()
	if tk.state.phase == PhaseEnded {
		return
	}
	tk.watch.settled()
	tk.sendRest()
	tk.pass(3*time.Minute + workPatience)
	if tk.state.phase == PhaseEnded {
		return
	}
	if s := tk.state; s.turn != nil || s.user.speaks() || s.Audible(tk.at) || len(s.notices) > 0 || s.sayings.first() != nil {
		tk.watch.fail("after five idle minutes turn %d is open, the user speaks: %t, %d items play, %d notices wait", s.Turn(), s.user.speaks(), len(s.line.items), len(s.notices))
	}
	tk.take(HungUp{})
}

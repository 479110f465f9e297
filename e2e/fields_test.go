package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/auth"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
)

// field is a member of one kind of provider event.
type field struct{ event, path string }

// kindsOfValues has a value of each JSON type, including a whole and a fractional number.
var kindsOfValues = []string{`null`, `true`, `7`, `1.5`, `"text"`, `[]`, `{}`}

// jsonType returns the JSON type of a value.
func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// eventName identifies the kind of an event: OpenAI's type, or the keys of Gemini's message and of its content.
func eventName(m map[string]any) string {
	if t, ok := m["type"].(string); ok {
		return t
	}
	keys := slices.Sorted(maps.Keys(m))
	if content, ok := m["serverContent"].(map[string]any); ok {
		keys = append(keys, slices.Sorted(maps.Keys(content))...)
	}
	return strings.Join(keys, "+")
}

// walk replaces each member of a value by visit's result. The elements of a list are one member.
func walk(path string, v any, visit func(path string, v any) any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = walk(path+"."+key, visit(path+"."+key, member), visit)
		}
	case []any:
		for i, element := range v {
			v[i] = walk(path+"[]", visit(path+"[]", element), visit)
		}
	}
	return v
}

// tamperer is between the gateway and the simulator, replaces one member of the provider's events, and records all
// members.
type tamperer struct {
	upstream *http.Client
	replace  field
	by       any

	mu    sync.Mutex
	seen  map[field]map[string]bool // the JSON types of each member
	times int                       // number of replacements
}

func (tm *tamperer) tamper(data []byte) []byte {
	var m map[string]any
	if json.Unmarshal(data, &m) != nil {
		return data
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	name, changed := eventName(m), false
	walk("", m, func(path string, v any) any {
		f := field{name, path}
		if tm.seen[f] == nil {
			tm.seen[f] = map[string]bool{}
		}
		tm.seen[f][jsonType(v)] = true
		if f == tm.replace {
			changed = true
			return tm.by
		}
		return v
	})
	if !changed {
		return data
	}
	tm.times++
	out, err := json.Marshal(m)
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	return out
}

func (tm *tamperer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	up, _, err := websocket.Dial(r.Context(), "http://sim"+r.URL.RequestURI(), &websocket.DialOptions{HTTPClient: tm.upstream, HTTPHeader: upgradeFree(r.Header)})
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer up.CloseNow()
	down, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer down.CloseNow()
	var both sync.WaitGroup
	both.Go(func() { pass(down, up, noting(func([]byte) {})) })
	both.Go(func() { pass(up, down, tm.tamper) })
	both.Wait()
}

// outcome is the result of one of the client's questions.
type outcome struct {
	over   string // "turn.ended completed", an error's code, "session.ended"; empty without an end
	spoken bool
	took   time.Duration // in the bubble
}

const fieldScenario = `
name: fields
rules:
  - when: {text: weather}
    do:
      - call: {tool: forecast, args: {city: Paris}}
      - then:
          - say: It rains.
  - when: {text: any}
    do:
      - say: Good morning to you.
`

// converse asks questions on a wire, in a bubble, with the tamperer at work. It returns the results and the number of
// tool runs.
func converse(t *testing.T, wire string, tm *tamperer, questions ...string) (answers []outcome, ran int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := sim.Options{Seed: 1, Speed: -1, FirstAudioMS: -1, PlaybackSpeed: -1}
		var err error
		if o.Scenario, err = scenario.Parse("fields.yaml", []byte(fieldScenario)); err != nil {
			t.Fatal(err)
		}
		provider := sim.New(o)
		var served sync.WaitGroup
		serve := func(h http.Handler) (*testutil.PipeListener, *http.Client) {
			l := testutil.ListenPipe()
			srv := &http.Server{Handler: h, ConnContext: gateway.ConnContext}
			served.Go(func() { _ = srv.Serve(l) })
			tr := &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}
			t.Cleanup(func() { _ = srv.Close() })
			return l, &http.Client{Transport: tr}
		}
		_, tm.upstream = serve(provider)
		_, client := serve(tm)
		network := client.Transport.(*http.Transport)
		tr := transportOver(t, wire, network)
		forecast := testTool(t, "forecast", `"city":{"type":"string"}`, `"city"`, func(*spec.Spec) {})
		var mu sync.Mutex
		tools, err := registry.Load(registrytest.File(t, forecast), registry.Options{Handlers: map[string]registry.Handler{
			"forecast": registry.Bind(func(context.Context, registry.Call[anyArgs, struct{}]) (registry.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				ran++
				return registry.Result{Data: map[string]any{"weather": "rain"}}, nil
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		tools.Lock()
		m, err := session.NewManager(session.Options{
			Transports: map[string]transport.Transport{wire: tr}, Provider: wire, Tools: tools.Snapshot,
			Limits: session.Limits{ExemptLoopback: true}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, callers := serve(gateway.New(gateway.Options{Sessions: m, Auth: auth.Operators(operatorsKey)}))
		t.Cleanup(func() {
			m.Close()
			if err := provider.Close(); err != nil {
				t.Error(err)
			}
		})
		conn, err := protocol.Dial(t.Context(), "ws://localhost/v1/voice", protocol.DialOptions{Client: callers})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		answers = ask(t, conn, questions)
		mu.Lock()
		defer mu.Unlock()
	})
	return answers, ran
}

// transportOver is the Transport of a wire, with the provider on an in-memory network.
func transportOver(t *testing.T, wire string, network *http.Transport) transport.Transport {
	t.Helper()
	for _, w := range config.Wires() {
		if w.Name != wire {
			continue
		}
		tr, err := w.New(transport.Provider{Name: wire, APIKey: secret, BaseURL: map[string]string{"openai": "http://tamperer/v1", "gemini": "http://tamperer"}[wire], HTTPClient: &http.Client{Transport: network}})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	t.Fatalf("there is no wire %s", wire)
	return nil
}

// questionTime limits the wait for the end of a question's turn, in the bubble: longer than all waits of the gateway.
const questionTime = 3 * time.Minute

// ask asks the questions in order and returns their results.
func ask(t *testing.T, conn *protocol.Conn, questions []string) []outcome {
	t.Helper()
	say := func(m protocol.ClientMessage) {
		text, err := protocol.EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.WriteText(text) // after the session's end, the reader reports it
	}
	heard := make(chan protocol.ServerMessage, 1<<12)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(heard)
		for {
			f, err := conn.Read()
			if err != nil {
				return
			}
			if f.Audio {
				continue
			}
			m, err := protocol.ParseServer(f.Data)
			if err != nil {
				t.Error(err)
				return
			}
			if end, ok := m.(*protocol.AudioEnd); ok {
				say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: end.AudioMS, Done: true})
			}
			heard <- m
		}
	})
	defer reading.Wait()
	defer conn.Abort()
	say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	var answers []outcome
	for _, question := range questions {
		if question == spokenQuestion {
			speech := append(testutil.Tone(16000, 300, -12, time.Second), testutil.Silence(16000, 2*time.Second)...)
			for piece := range slices.Chunk(speech, 16000*2/50) {
				_ = conn.WriteAudio(piece)
				<-time.After(20 * time.Millisecond) // in the bubble
			}
		} else {
			say(&protocol.InputText{Text: question})
		}
		answers = append(answers, next(heard))
		if strings.HasPrefix(answers[len(answers)-1].over, "session") {
			break
		}
	}
	return answers
}

// next waits for the end of a turn or of the session.
func next(heard <-chan protocol.ServerMessage) outcome {
	var a outcome
	began := time.Now()
	late := time.NewTimer(questionTime)
	defer late.Stop()
	for {
		select {
		case m, open := <-heard:
			a.took = time.Since(began)
			if !open {
				a.over = "session closed"
				return a
			}
			switch m := m.(type) {
			case *protocol.AudioStart:
				a.spoken = true
			case *protocol.TurnEnded:
				a.over = "turn.ended " + m.Status
				return a
			case *protocol.SessionEnded:
				a.over = "session.ended " + m.Reason
				return a
			}
		case <-late.C:
			return a
		}
	}
}

// fieldQuestions get a spoken answer, an answer after a tool, an answer to speech, and a final turn.
var fieldQuestions = []string{"hello", "weather", spokenQuestion, "hello again"}

// spokenQuestion is a second of sound and two of silence.
const spokenQuestion = "(sound)"

// essential reports whether an event is meaningless without the member. The turn may then end late or with an error,
// but it ends.
func essential(f field, by string) bool {
	switch {
	case f.path == ".type", f.path == ".delta", f.event == "session.created", f.event == "session.updated":
		return true
	case f.path == ".item.arguments":
		return by == `{}` // no arguments
	case f.event == "toolCall":
		return f.path != ".toolCall.functionCalls[].id"
	case strings.HasPrefix(f.path, ".serverContent.modelTurn"), f.path == ".serverContent", f.path == ".setupComplete":
		return true
	}
	return false
}

// fieldSample is the number of replacements in a test run without the race detector; FIELDS=all tries all.
const fieldSample = 40

// alwaysReplaced lists members that once caused faults; they are in every sample.
var alwaysReplaced = map[string][]field{
	"openai": {
		{"response.created", ".response.id"}, {"response.done", ".response.id"}, {"response.done", ".response.status_details"},
		{"response.output_audio.delta", ".item_id"}, {"response.output_item.done", ".item.id"}, {"response.output_item.done", ".item.call_id"},
	},
	"gemini": {
		{"voiceActivity", ".voiceActivity"}, {"serverContent+usageMetadata+interactionStatus+turnComplete", ".serverContent.turnComplete"},
	},
}

// TestFieldsOfOtherTypes: whatever value replaces a member of a provider event, the turn ends, and the session
// continues or ends with an error. Unless the member is essential, the answer is heard and a tool runs once.
func TestFieldsOfOtherTypes(t *testing.T) {
	t.Parallel()
	for _, wire := range providers {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			all := &tamperer{seen: map[field]map[string]bool{}}
			plain, ran := converse(t, wire, all, fieldQuestions...)
			if len(plain) != len(fieldQuestions) || ran != 1 || slices.ContainsFunc(plain, func(a outcome) bool { return a.over != "turn.ended completed" || !a.spoken }) {
				t.Fatalf("with nothing replaced: %+v, and the tool ran %d times", plain, ran)
			}
			type change struct {
				field
				by string
			}
			var changes []change
			for f, types := range all.seen {
				for _, value := range kindsOfValues {
					var v any
					if err := json.Unmarshal([]byte(value), &v); err != nil {
						t.Fatal(err)
					}
					if !types[jsonType(v)] || value == "1.5" {
						changes = append(changes, change{f, value})
					}
				}
			}
			slices.SortFunc(changes, func(a, b change) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			seed := uint64(time.Now().UnixNano())
			t.Logf("%d changes; seed %d", len(changes), seed)
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
			if os.Getenv("FIELDS") != "all" {
				changes = changes[:min(testutil.SampleUnderRace(fieldSample), len(changes))]
			}
			for _, c := range changes {
				judge(t, wire, c.field, c.by)
			}
			for _, f := range alwaysReplaced[wire] {
				judge(t, wire, f, `null`)
				judge(t, wire, f, `7`)
			}
		})
	}
}

// judge checks a conversation with one replaced member.
func judge(t *testing.T, wire string, f field, by string) {
	t.Helper()
	tm := &tamperer{seen: map[field]map[string]bool{}, replace: f}
	if err := json.Unmarshal([]byte(by), &tm.by); err != nil {
		t.Fatal(err)
	}
	answers, ran := converse(t, wire, tm, fieldQuestions...)
	fine := len(answers) == len(fieldQuestions) && ran == 1
	for i, a := range answers {
		if a.over == "" {
			t.Errorf("%s %s = %s: question %d has no end", f.event, f.path, by, i+1)
		}
		fine = fine && a.over == "turn.ended completed" && a.spoken
	}
	if ran > 1 || !fine && !essential(f, by) {
		t.Errorf("%s %s = %s: %+v, and the tool ran %d times", f.event, f.path, by, answers, ran)
	}
}

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/store"
)

// chatModel is a Chat Completions model that a test can hold: it calls a tool and then comments on the result.
type chatModel struct {
	url     string
	reached chan struct{} // from its requests to the test: one is held; never closed

	mu      sync.Mutex // guards the following fields
	hold    point
	release chan struct{} // closed to release held requests
	prompts []string
}

// point is a place where a request can be held.
type point string

// The points at which a gateway is killed.
const (
	inTheAnswer      point = "while the model answers"
	inTheTool        point = "in a tool that writes"
	afterTheTool     point = "after the tool"
	whileItIsAsked   point = "while a user is asked"
	afterTheAnswer   point = "after the answer"
	nowhere          point = ""
	calledInTheStory       = `{"text":"hello"}`
)

func newChatModel(t *testing.T) *chatModel {
	t.Helper()
	m := &chatModel{reached: make(chan struct{}, mostRuns), release: make(chan struct{})}
	srv := httptest.NewServer(m)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	m.url = srv.URL + "/v1"
	return m
}

// holdAt holds requests at this point from now on, and releases held ones.
func (m *chatModel) holdAt(p point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.release)
	m.hold, m.release = p, make(chan struct{})
}

// requests returns the number of requests.
func (m *chatModel) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.prompts)
}

// lastPrompt returns the newest prompt.
func (m *chatModel) lastPrompt() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prompts[len(m.prompts)-1]
}

// ServeHTTP answers a request, or waits until its client is gone.
func (m *chatModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	prompt, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(prompt, &body) != nil || len(body.Messages) == 0 {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.prompts = append(m.prompts, string(prompt))
	hold, release := m.hold, m.release
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		w.(http.Flusher).Flush()
	}
	wait := func(at ...point) bool {
		if !slices.Contains(at, hold) {
			return false
		}
		m.reached <- struct{}{}
		select {
		case <-release:
			return false
		case <-r.Context().Done():
			return true
		}
	}
	last := body.Messages[len(body.Messages)-1]
	switch {
	case last.Role == "user" && strings.HasSuffix(last.Content, "Hello"):
		chunk(`{"role":"assistant","content":"Hello."}`, `"stop"`)
	case last.Role == "user":
		tool, args := "write", calledInTheStory
		if strings.HasSuffix(last.Content, "pay") {
			tool, args = "pay", paid
		}
		chunk(`{"role":"assistant","content":"One moment."}`, `null`)
		if wait(inTheAnswer) {
			return
		}
		call, _ := json.Marshal(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_of_the_story_1", "type": "function", "function": map[string]string{"name": tool, "arguments": args}}}})
		chunk(string(call), `null`)
		chunk(`{}`, `"tool_calls"`)
	default:
		if wait(afterTheTool, whileItIsAsked) {
			return
		}
		said := "It failed."
		switch {
		case strings.Contains(last.Content, `"ok":true`):
			said = "It is done."
		case strings.Contains(last.Content, "CONFLICT"):
			said = "Nobody knows."
		case strings.Contains(last.Content, "CONFIRMATION_REQUIRED"):
			said = "Please approve it."
		}
		chunk(`{"content":"`+said+`"}`, `null`)
		chunk(`{}`, `"stop"`)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// tryMessage sends a request once and returns the whole answer or the error.
func (st *stack) tryMessage(r sent) (string, error) { return st.follow(r, io.Discard) }

// follow is tryMessage and copies the answer as it arrives.
func (st *stack) follow(r sent, as io.Writer) (string, error) {
	req, err := http.NewRequest(http.MethodPost, st.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+operatorsKey)
	if r.id != "" {
		req.Header.Set("Idempotency-Key", r.id)
	}
	req.Close = true // nothing outlives the test
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.TeeReader(resp.Body, as))
	switch {
	case err != nil:
		return string(body), err
	case resp.StatusCode != http.StatusOK:
		return string(body), fmt.Errorf("%s: %s", resp.Status, body)
	case !strings.Contains(string(body), `"status":"completed"`) && !strings.Contains(string(body), `"finish_reason":"stop"`):
		return string(body), errors.New("the answer has no end")
	}
	return string(body), nil
}

// tokens matches confirmation tokens.
var tokens = regexp.MustCompile(`cf_[A-Z2-7]{26}`)

// sent is a client's message.
type sent struct{ path, id, body string }

// waysToSend returns the forms in which a client marks a repeated message.
func waysToSend(text string) map[string]sent {
	return map[string]sent{
		"an id":                         {"/v1/chat", "id-of-the-story", `{"user":"ada","message":"` + text + `"}`},
		"the words in a conversation":   {"/v1/chat", "", `{"user":"ada","conversation_id":"c-story","message":"` + text + `"}`},
		"the words of a first message":  {"/v1/chat", "", `{"user":"ada","message":"` + text + `"}`},
		"a conversation of the clients": {"/v1/chat/completions", "", `{"user":"ada","model":"default","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},{"role":"user","content":"` + text + `"}]}`},
	}
}

// TestKilledInAMessage: a gateway is killed with SIGKILL during a text message and restarted with the same data folder;
// the client repeats the message. It gets an answer, and the tool's action runs once.
func TestKilledInAMessage(t *testing.T) {
	t.Parallel()
	const done = "write " + calledInTheStory
	for at, want := range map[point]struct {
		before []string // the effects at the kill
		says   string   // answer to the repeated message
		asks   int      // number of requests to the model for it
	}{
		inTheAnswer:    {nil, "It is done.", 2},
		inTheTool:      {[]string{done}, "Nobody knows.", 1},
		afterTheTool:   {[]string{done}, "It is done.", 1},
		afterTheAnswer: {[]string{done}, "It is done.", 0},
	} {
		for way, message := range waysToSend("write") {
			t.Run(string(at)+", "+way, func(t *testing.T) {
				t.Parallel()
				model := newChatModel(t)
				model.holdAt(at)
				tp := newProvider(t, setting{})
				set := processSetting{Provider: "openai", Dir: t.TempDir(), Chat: model.url}
				holding := set
				if at == inTheTool {
					holding.Hold = "write"
				}
				first := startProcess(t, tp, holding)
				answered := make(chan error, 1) // from the message that is cut off
				go func() {
					_, err := first.tryMessage(message)
					answered <- err
				}()
				switch at {
				case inTheTool:
					testutil.WaitUntil(t, "the effect", func() bool { return slices.Equal(first.effects(t), want.before) })
				case afterTheAnswer:
					if err := <-answered; err != nil {
						t.Fatal(err)
					}
				default:
					<-model.reached
				}
				if got := first.effects(t); strings.Join(got, "\n") != strings.Join(want.before, "\n") {
					t.Errorf("the effects at the kill are %q", got)
				}
				first.kill(t)
				if at != afterTheAnswer {
					if err := <-answered; err == nil {
						t.Error("the message to a killed gateway was answered")
					}
				}

				model.holdAt(nowhere)
				before := model.requests()
				second := startProcess(t, tp, set)
				for range 2 {
					answer, err := second.tryMessage(message)
					if err != nil || !strings.Contains(answer, want.says) {
						t.Errorf("repeated: %v: %s", err, answer)
					}
				}
				if got := model.requests() - before; got != want.asks {
					t.Errorf("the model was asked %d times for the repeated message", got)
				}
				second.leave(t)
				if got := second.effects(t); !slices.Equal(got, []string{done}) {
					t.Errorf("the effects are %q", got)
				}
			})
		}
	}
}

// TestKilledWhileAMessageAsks: a gateway is killed during an approval request, and the message is repeated: the user is
// asked again. With either approval, or both, the tool runs once.
func TestKilledWhileAMessageAsks(t *testing.T) {
	t.Parallel()
	for way, message := range waysToSend("pay") {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			model := newChatModel(t)
			model.holdAt(whileItIsAsked)
			tp := newProvider(t, setting{})
			set := processSetting{Provider: "openai", Dir: t.TempDir(), Chat: model.url}
			first := startProcess(t, tp, set)
			var received lockedBuffer
			over := make(chan struct{}) // closed when the message is cut off
			stream := message
			if strings.Contains(message.path, "completions") {
				stream.body = strings.Replace(message.body, `"model"`, `"stream":true,"model"`, 1)
			}
			go func() {
				defer close(over)
				if _, err := first.follow(stream, &received); err == nil {
					t.Error("the message to a killed gateway was answered")
				}
			}()
			<-model.reached
			was := ""
			testutil.WaitUntil(t, "the question", func() bool { was = tokens.FindString(received.String()); return was != "" })
			first.kill(t)
			<-over

			model.holdAt(nowhere)
			second := startProcess(t, tp, set)
			answer, err := second.tryMessage(stream)
			is := tokens.FindString(answer)
			if err != nil || is == "" || is == was || !strings.Contains(answer, "Please approve it.") {
				t.Fatalf("repeated: %v: %s", err, answer)
			}
			for _, token := range []string{is, was} {
				if status, body := second.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+token+`","approved":true}`); status != http.StatusOK || !strings.Contains(body, `"ok":true`) {
					t.Errorf("approved: %d %s", status, body)
				}
			}
			second.leave(t)
			if got := second.effects(t); !slices.Equal(got, []string{"pay " + paid}) {
				t.Errorf("the effects are %q", got)
			}
		})
	}
}

// TestApprovedInTheFirstTurn: a backend approves over the API during the answer to the requesting message, before its
// conversation is stored. The model gets the result in the next turn, once.
func TestApprovedInTheFirstTurn(t *testing.T) {
	t.Parallel()
	model := newChatModel(t)
	model.holdAt(whileItIsAsked)
	tools := newStage(t)
	st := newStack(t, "openai", setting{tools: tools.box, text: true, chat: model.url})
	var received lockedBuffer
	over := make(chan struct{}) // closed when the first message is answered
	go func() {
		defer close(over)
		if _, err := st.follow(waysToSend("pay")["the words in a conversation"], &received); err != nil {
			t.Error(err)
		}
	}()
	<-model.reached
	token := ""
	testutil.WaitUntil(t, "the question", func() bool { token = tokens.FindString(received.String()); return token != "" })
	if status, body := st.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+token+`","approved":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	model.holdAt(nowhere)
	<-over
	for range 2 {
		if _, err := st.tryMessage(waysToSend("Hello")["the words in a conversation"]); err != nil {
			t.Fatal(err)
		}
		prompt := model.lastPrompt()
		if at := strings.Index(prompt, "The user approved pay"); strings.Count(prompt, "The user approved pay") != 1 || at < strings.Index(prompt, "CONFIRMATION_REQUIRED") {
			t.Errorf("the model got %s", prompt)
		}
	}
	tools.ran(t, "pay", 1)
}

// TestKilledBeforeReport: a gateway is killed with SIGKILL after an approved action ran and before the conversation got
// the result. Its next turn gets it, once.
func TestKilledBeforeReport(t *testing.T) {
	t.Parallel()
	model := newChatModel(t)
	tp := newProvider(t, setting{})
	set := processSetting{Provider: "openai", Dir: t.TempDir(), Chat: model.url}
	holding := set
	holding.HoldReport = true
	first := startProcess(t, tp, holding)
	answer, err := first.tryMessage(waysToSend("pay")["the words in a conversation"])
	token := tokens.FindString(answer)
	if err != nil || token == "" {
		t.Fatal(err, answer)
	}
	over := make(chan struct{}) // closed when the approval is cut off
	go func() {
		defer close(over)
		if _, err := first.tryMessage(sent{path: "/v1/confirmations", body: `{"token":"` + token + `","approved":true}`}); err == nil {
			t.Error("the approval was answered by a killed gateway")
		}
	}()
	testutil.WaitUntil(t, "the approval", func() bool { return strings.Contains(first.said.String(), heldMark) })
	first.kill(t)
	<-over

	second := startProcess(t, tp, set)
	for range 2 {
		if _, err := second.tryMessage(waysToSend("Hello")["the words in a conversation"]); err != nil {
			t.Fatal(err)
		}
		if prompt := model.lastPrompt(); strings.Count(prompt, "The user approved pay") != 1 || !strings.Contains(prompt, "and it was run") {
			t.Errorf("the model got %s", prompt)
		}
	}
	second.leave(t)
	if got := second.effects(t); !slices.Equal(got, []string{"pay " + paid}) {
		t.Errorf("the effects are %q", got)
	}
	kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(set.Dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if open, err := kept.Approvals.OpenIn(t.Context(), "c-story", time.Now()); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// heldModel is a Chat Completions model that begins each answer and waits to be released.
type heldModel struct {
	url     string
	reached chan struct{} // gets a value for each started answer; never closed
	release chan struct{} // closed when answers may end
}

func newHeldModel(t *testing.T) *heldModel {
	t.Helper()
	m := &heldModel{reached: make(chan struct{}, 8), release: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(text, finish string) {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, finish)
			w.(http.Flusher).Flush()
		}
		chunk("One ", "null")
		m.reached <- struct{}{}
		select {
		case <-m.release:
		case <-r.Context().Done():
			return
		}
		chunk("moment.", `"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	m.url = srv.URL + "/v1"
	return m
}

// args are those of a gateway with this model.
func (m *heldModel) args(t *testing.T, dir, timeout string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "voicegw.yaml")
	text := "chat:\n  base_url: " + m.url + "\n  model: m\n  api_key: k-of-the-model\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path, "--data-dir", dir, "--drain-timeout", timeout}
}

// posted is an answer to a message.
type posted struct {
	status int
	header http.Header
	body   string
	err    error
}

// message sends a text message.
func (r *running) message(body string) posted {
	req, err := http.NewRequest(http.MethodPost, "http://"+r.addr+"/v1/chat", strings.NewReader(body))
	if err != nil {
		return posted{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return posted{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return posted{resp.StatusCode, resp.Header, string(text), err}
}

const textMessage = `{"conversation_id":"c-of-the-story-0123456789","message_id":"m1","message":"Hello"}`

// TestTextAnswersContinueAfterASignal: after a signal to the program, a running answer continues to its end, while new
// messages are refused with a retry elsewhere.
func TestTextAnswersContinueAfterASignal(t *testing.T) {
	t.Parallel()
	model, dir := newHeldModel(t), t.TempDir()
	r := start(t, model.args(t, dir, "1m")...)
	answered := make(chan posted, 1) // from the message
	go func() { answered <- r.message(textMessage) }()
	<-model.reached
	r.signals <- syscall.SIGTERM
	r.logged("draining")
	if late := r.message(`{"message":"Too late"}`); late.status != http.StatusServiceUnavailable || late.header.Get("Retry-After") == "" || !strings.Contains(late.body, `"draining"`) {
		t.Errorf("a new message: %+v", late)
	}
	close(model.release)
	if a := <-answered; a.err != nil || !strings.Contains(a.body, "One moment.") || !strings.Contains(a.body, `"status":"completed"`) {
		t.Errorf("the answer: %+v", a)
	}
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
}

// TestTextAnswersThatTakeTooLong: after the time limit, or a second signal, an answer ends with an error and a done; the
// user's message is stored, and the next program continues the conversation at once.
func TestTextAnswersThatTakeTooLong(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"after the time": false, "with a second signal": true} {
		t.Run(name, func(t *testing.T) {
			model, dir, timeout := newHeldModel(t), t.TempDir(), "100ms"
			if second {
				timeout = "1m"
			}
			r := start(t, model.args(t, dir, timeout)...)
			answered := make(chan posted, 1) // from the message
			go func() { answered <- r.message(textMessage) }()
			<-model.reached
			r.signals <- syscall.SIGTERM
			if second {
				r.signals <- syscall.SIGINT
			}
			a := <-answered
			if a.err != nil || !strings.Contains(a.body, "event: error") || !strings.Contains(a.body, `"code":"draining"`) ||
				!strings.Contains(a.body, `"status":"failed"`) {
				t.Errorf("the answer: %+v", a)
			}
			if code := r.ended(); code != exitOK {
				t.Errorf("exit code %d\n%s", code, r.err.String())
			}
			close(model.release)
			next := start(t, model.args(t, dir, "1m")...)
			if a := next.message(`{"conversation_id":"c-of-the-story-0123456789","message_id":"m2","message":"Are you there?"}`); a.err != nil || !strings.Contains(a.body, `"status":"completed"`) {
				t.Errorf("the next message: %+v", a)
			}
			if kept := next.conversation("c-of-the-story-0123456789"); strings.Count(kept, `"Hello"`) != 1 {
				t.Errorf("stored is %s", kept)
			}
		})
	}
}

// conversation reads the stored part of a conversation.
func (r *running) conversation(id string) string {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+r.addr+"/v1/conversations/"+id, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Errorf("the conversation: %s %v", resp.Status, err)
	}
	return string(text)
}

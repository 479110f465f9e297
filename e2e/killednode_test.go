package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// natsServer is a NATS server with JetStream for several gateways.
func natsServer(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(testutil.WaitLimit) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// users returns the user's messages in a conversation.
func users(c conversation.Conversation) (said []string) {
	for _, e := range c.Entries {
		if e.Role == conversation.RoleUser {
			said = append(said, e.Text)
		}
	}
	return said
}

// TestKilledNodeFreesItsConversation: a gateway is killed with SIGKILL while it answers a text message. Another gateway
// with the same store continues the conversation at once, despite the lease, with another message and with the same
// one.
func TestKilledNodeFreesItsConversation(t *testing.T) {
	t.Parallel()
	model := newChatModel(t)
	model.holdAt(inTheAnswer)
	tp := newProvider(t, setting{})
	set := processSetting{Provider: "openai", Dir: t.TempDir(), Chat: model.url, Store: natsServer(t)}
	first, second := startProcess(t, tp, set), startProcess(t, tp, set)
	message := sent{"/v1/chat", "m1", `{"user":"ada","conversation_id":"c-story","message":"write"}`}
	cut := make(chan error, 1) // from the message that is cut off
	go func() {
		_, err := first.tryMessage(message)
		cut <- err
	}()
	<-model.reached
	other := sent{"/v1/chat", "m2", `{"user":"ada","conversation_id":"c-story","message":"Hello"}`}
	if _, err := second.tryMessage(other); err == nil || !strings.Contains(err.Error(), "conversation_busy") {
		t.Errorf("while the first gateway answers: %v", err)
	}
	first.kill(t)
	if err := <-cut; err == nil {
		t.Error("the message to the killed gateway was answered")
	}
	model.holdAt(nowhere)
	if answer, err := second.tryMessage(other); err != nil {
		t.Errorf("another message: %v: %s", err, answer)
	}
	if answer, err := second.tryMessage(message); err != nil || !strings.Contains(answer, "It is done.") {
		t.Errorf("the same message: %v: %s", err, answer)
	}
	if got := fmt.Sprint(users(second.conversation(t, "c-story"))); got != "[Hello write]" {
		t.Errorf("the user's words are %s", got)
	}
	second.leave(t)
}

// TestKilledNodeKeepsTranscript: a gateway is killed with SIGKILL in a call. Its conversation contains the transcript
// up to the last ended turn, and continues by voice on another gateway at once.
func TestKilledNodeKeepsTranscript(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			tp := newProvider(t, setting{scenario: survivalRules, speed: 50, playback: 50, firstAudioMS: 10})
			set := processSetting{Provider: provider, Dir: t.TempDir(), Store: natsServer(t)}
			first, second := startProcess(t, tp, set), startProcess(t, tp, set)
			o := first.offer(t, `{"user":"ada","conversation_id":"c-7"}`)
			c := first.dial(t, o.Ticket, "")
			c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
			waitFor[*protocol.SessionStarted](c)
			for i, text := range []string{"book noon", "book one"} {
				if m := c.typed(text).call(t); !m.OK {
					t.Errorf("%s: %s", text, m.Error)
				}
				// It is available during the call.
				testutil.WaitUntil(t, "the transcript is stored", func() bool {
					status, _ := second.http(t, http.MethodGet, "/v1/conversations/c-7", "")
					return status == http.StatusOK && len(users(second.conversation(t, "c-7"))) == i+1
				})
			}
			if status, body := second.http(t, http.MethodPost, "/v1/sessions", `{"user":"ada","conversation_id":"c-7"}`); status != http.StatusConflict || !strings.Contains(body, "voice_active") {
				t.Errorf("while the first gateway talks: %d %s", status, body)
			}
			first.kill(t)
			next := second.offer(t, `{"user":"ada","conversation_id":"c-7"}`)
			d := second.dial(t, next.Ticket, "")
			d.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
			waitFor[*protocol.SessionStarted](d)
			talk := second.conversation(t, "c-7")
			if got := fmt.Sprint(users(talk)); got != "[book noon book one]" {
				t.Errorf("the user's words are %s", got)
			}
			if said := fmt.Sprintf("%+v", talk.Entries); strings.Count(said, "That is how it is.") != 2 || strings.Count(said, "Tool:book") != 2 {
				t.Errorf("stored is %s", said)
			}
			d.say(&protocol.End{})
			waitFor[*protocol.SessionEnded](d)
			second.leave(t)
		})
	}
}

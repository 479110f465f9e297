package checks

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/internal/webhook"
	"voicegw/prompts"
	"voicegw/transport/textmodel"
)

// endpoint is a Remote that posts JSON, signed like a webhook.
type endpoint struct {
	url     string // never logged: it may hold a secret
	secrets []webhook.Secret
	out     *bounded.Outbound
}

const (
	maxVerdict = 4 << 10  // bytes of an endpoint's answer
	maxSent    = 32 << 10 // bytes at the end of a text that a Remote gets
)

// NewEndpoint returns a Remote that posts {"session_id", "conversation_id", "text", "new"} to url and reads
// {"pass": true} or {"pass": false}. private allows loopback and private addresses. secrets may be empty.
func NewEndpoint(name, url string, private bool, secrets ...webhook.Secret) Remote {
	return &endpoint{url: url, secrets: secrets, out: bounded.NewOutbound(private, maxAtOnce, bounded.Limits{
		Service: "the check " + name, Format: bounded.JSON, Bytes: maxVerdict, Elements: 64, Depth: 8})}
}

func (e *endpoint) Check(ctx context.Context, t Text) (bool, error) {
	body, err := json.Marshal(map[string]string{"session_id": t.SessionID, "conversation_id": t.ConversationID,
		"text": ending(t.Text), "new": ending(t.New)})
	if err != nil {
		return false, fmt.Errorf("encoding the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the url is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "voicegw")
	if len(e.secrets) > 0 {
		webhook.Sign(req.Header, "chk_"+rand.Text(), time.Now(), body, e.secrets...)
	}
	resp, err := e.out.Do(req)
	if err != nil {
		return false, bounded.Bare(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the endpoint answered with status %d instead of 200", resp.StatusCode)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, bounded.Bare(err)
	}
	return verdictOf(data)
}

// verdictOf reads an endpoint's answer. Unknown members are ignored.
func verdictOf(data []byte) (bool, error) {
	var answer struct {
		Pass *bool `json:"pass"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Pass == nil {
		return false, errors.New(`the endpoint's answer is not {"pass": true} or {"pass": false}`)
	}
	return *answer.Pass, nil
}

func ending(text string) string { return text[runeStart(text, len(text)-maxSent):] }

type question struct {
	text  string
	model textmodel.Model
}

// NewQuestion returns a Remote that asks a model a question about the text. The text passes if the answer is no.
func NewQuestion(text string, model textmodel.Model) Remote { return &question{text, model} }

// maxAnswer bounds a model's answer in tokens: one word, and its thoughts before.
const maxAnswer = 1024

func (q *question) Check(ctx context.Context, t Text) (bool, error) {
	reply, err := q.model.Complete(ctx, textmodel.Prompt{MaxOutput: maxAnswer, Messages: []textmodel.Message{
		{Role: textmodel.RoleSystem, Text: prompts.CheckQuestion(q.text)},
		{Role: textmodel.RoleUser, Text: prompts.CheckedText(ending(t.Text))},
	}}, func(string) {})
	if err != nil {
		return false, err //nolint:wrapcheck // it says what failed
	}
	return decided(reply.Text)
}

func decided(answer string) (pass bool, err error) {
	switch strings.ToLower(strings.Trim(answer, " \t\r\n.!*\"'`")) {
	case "no":
		return true, nil
	case "yes":
		return false, nil
	}
	return false, errors.New("the model answered neither yes nor no")
}

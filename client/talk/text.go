package talk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"voicegw/internal/bounded"
	"voicegw/protocol"
)

// TextTurn is one turn of a text conversation: the body of POST /v1/chat. It has a Message or a Confirmation.
type TextTurn struct {
	// ConversationID is the conversation to continue; empty begins one.
	ConversationID string `json:"conversation_id,omitempty"`
	TimeZone       string `json:"time_zone,omitempty"`
	Message        string `json:"message,omitempty"`
	// Agent answers and continues the conversation; empty means the conversation's or the gateway's default.
	Agent        string      `json:"agent,omitempty"`
	User         string      `json:"user,omitempty"`
	Confirmation *TextAnswer `json:"confirmation,omitempty"`
}

// TextAnswer answers a confirmation.request.
type TextAnswer struct {
	Token    string `json:"token"`
	Approved bool   `json:"approved"`
}

// TextClient calls a gateway's text agent. It is safe for concurrent use.
type TextClient struct {
	// BaseURL is the gateway's address without a path, such as http://127.0.0.1:8080.
	BaseURL string
	APIKey  string
	// Client makes the requests, with limits; nil means bounded.Shared. It must have no Timeout: a turn takes as long
	// as its tools do.
	Client *http.Client
}

// TextRefused is a gateway's refusal of a turn.
type TextRefused struct {
	// Status is the HTTP status, Code the gateway's error code.
	Status  int
	Code    string
	Message string
}

// Error returns the gateway's message.
func (e *TextRefused) Error() string {
	return fmt.Sprintf("the gateway answered %d (%s): %s", e.Status, e.Code, e.Message)
}

// maxEvent bounds an event and a refusal, in bytes.
const maxEvent = 4 << 20

// limits bound a gateway's response. An event may be long, because it may have a tool's answer.
var limits = bounded.Limits{
	Service: "the gateway", Format: bounded.Events, Bytes: 64 << 20, Piece: maxEvent, Idle: 5 * time.Minute, Whole: time.Hour,
}

// Turn runs a turn and calls event, if set, with each message of the answer on this goroutine. It returns the last
// message. The error wraps ErrConnect (a *TextRefused if the gateway refused), ErrLost or ErrProtocol, or is the
// cause of ctx.
func (c *TextClient) Turn(ctx context.Context, turn TextTurn, event func(protocol.ServerMessage)) (*protocol.Done, error) {
	resp, err := c.post(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var done *protocol.Done
	events := ssestream.NewDecoder(resp)
	for events.Next() {
		m, err := protocol.ParseServer(bytes.TrimSpace(events.Event().Data)) // it includes the event's type
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		if event != nil {
			event(m)
		}
		done, _ = m.(*protocol.Done)
	}
	err = events.Err()
	over, bound := bounded.As(err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case bound && !over.Passing():
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	case done == nil:
		return nil, fmt.Errorf("%w: the answer ended without its last message", ErrLost)
	}
	return done, nil
}

func (c *TextClient) post(ctx context.Context, turn TextTurn) (*http.Response, error) {
	body, err := json.Marshal(turn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.BaseURL, "/")+"/v1/chat", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	r.Header = protocol.Bearer(c.APIKey)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := bounded.Client(c.Client, limits).Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if at, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
			err = at.Err
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrConnect, c.BaseURL, err)
	}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // only read
	return nil, fmt.Errorf("%w: %w", ErrConnect, refusal(resp))
}

func refusal(resp *http.Response) error {
	var answer struct {
		Error struct{ Code, Message string }
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(body, &answer) != nil || answer.Error.Code == "" {
		return fmt.Errorf("the server is not a voicegw gateway with a text agent (%s)", resp.Status)
	}
	return &TextRefused{Status: resp.StatusCode, Code: answer.Error.Code, Message: answer.Error.Message}
}

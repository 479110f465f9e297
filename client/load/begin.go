package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/talk"
	"voicegw/client/wire"
	"voicegw/internal/bounded"
	"voicegw/protocol"
)

const beginTime = time.Minute

// begin gets the ticket that the script asks for; zero if it asks for none.
func (k *Caller) begin(ctx context.Context) (ticket, error) {
	b := k.set.Script.Begin
	if b == nil {
		return ticket{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	base, err := BaseURL(k.set.URL)
	if err != nil {
		return ticket{}, err
	}
	user := k.fill(k.set.Script.User, 1)
	if b.Chat != "" {
		return k.chat(ctx, base, user, k.fill(b.Chat, 1))
	}
	return k.order(ctx, base, user, k.fill(b.PendingRequest, 1))
}

// BaseURL derives the base address of a gateway's HTTP endpoints from its voice endpoint.
func BaseURL(voice string) (string, error) {
	u, err := url.Parse(voice)
	if err != nil {
		return "", fmt.Errorf("the address %q: %w", voice, err)
	}
	scheme := map[string]string{"ws": "http", "wss": "https", "http": "http", "https": "https"}[u.Scheme]
	for _, w := range wire.Wires() {
		if path, ok := strings.CutSuffix(strings.TrimSuffix(u.Path, "/"), w.Path); ok {
			return scheme + "://" + u.Host + path, nil
		}
	}
	return "",
		fmt.Errorf("the address %q does not end in /v1/voice or another wire's path, so the gateway's other endpoints are unknown", voice)
}

func (k *Caller) chat(ctx context.Context, base, user, text string) (ticket, error) {
	client := talk.TextClient{BaseURL: base, APIKey: k.set.APIKey, Client: k.set.HTTP}
	began := time.Now()
	first := true
	var got ticket
	_, err := client.Turn(ctx, talk.TextTurn{Message: text, User: user}, func(m protocol.ServerMessage) {
		switch m := m.(type) {
		case *protocol.TextDelta:
			if first {
				first = false
				k.set.Collector.Record(report.TextFirst, time.Since(began))
			}
		case *protocol.VoiceSessionStart:
			got = ticket{secret: m.Ticket, at: time.Now()}
		}
	})
	switch {
	case err != nil:
		return ticket{}, fmt.Errorf("the text agent: %w", err)
	case got.secret == "":
		return ticket{}, fmt.Errorf("the text agent gave no ticket for a voice session after %q", text)
	}
	return got, nil
}

var orderLimits = bounded.Limits{Service: "the gateway", Format: bounded.JSON, Bytes: 1 << 20}

func (k *Caller) order(ctx context.Context, base, user, request string) (ticket, error) {
	body, err := json.Marshal(map[string]string{"user": user, "pending_request": request})
	if err != nil {
		return ticket{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/sessions", bytes.NewReader(body))
	if err != nil {
		return ticket{}, err
	}
	r.Header = protocol.Bearer(k.set.APIKey)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := bounded.Client(k.set.HTTP, orderLimits).Do(r)
	if err != nil {
		return ticket{}, fmt.Errorf("order a voice session: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return ticket{}, fmt.Errorf("order a voice session: %w", err)
	}
	at := time.Now()
	var made struct {
		Ticket string
		Error  struct{ Code, Message string }
	}
	if err := json.Unmarshal(answer, &made); err != nil || resp.StatusCode != http.StatusCreated || made.Ticket == "" {
		return ticket{}, fmt.Errorf("order a voice session: the gateway answered %s %s", resp.Status,
			strings.TrimSpace(made.Error.Code+" "+made.Error.Message))
	}
	k.set.Collector.Record(report.Ticket, at.Sub(began))
	return ticket{secret: made.Ticket, at: at}, nil
}

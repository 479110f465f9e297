package talk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

const turnStream = "id: 1\nevent: text.delta\ndata: {\"type\":\"text.delta\",\"seq\":1,\"turn\":1,\"item_id\":\"t\",\"text\":\"Hi\"}\n\n" +
	": a comment\n\nid: 2\nevent: done\ndata: {\"type\":\"done\",\"seq\":2,\"turn\":1,\"conversation_id\":\"conv-1\",\"status\":\"completed\"}\n\n"

// TestTextTurn checks the request and the order of messages.
func TestTextTurn(t *testing.T) {
	var body, key string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body, key = string(raw), r.Header.Get("Authorization")
		if r.URL.Path != "/v1/chat" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s, %v", r.URL, r.Header)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, turnStream)
	}))
	defer srv.Close()
	var types []string
	c := &TextClient{BaseURL: srv.URL + "/", APIKey: "k", Client: srv.Client()}
	done, err := c.Turn(t.Context(), TextTurn{ConversationID: "conv-1", Confirmation: &TextAnswer{Token: "cf_1"}}, func(m protocol.ServerMessage) {
		types = append(types, protocol.HeaderOf(m).Type)
	})
	if err != nil || done.ConversationID != "conv-1" || done.Status != protocol.DoneCompleted {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"text.delta", "done"}, types); diff != "" {
		t.Error(diff)
	}
	if body != `{"conversation_id":"conv-1","confirmation":{"token":"cf_1","approved":false}}` || key != "Bearer k" {
		t.Errorf("%s with %q", body, key)
	}
}

func TestTextTurnFails(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		kind   string
		body   string
		want   error
		says   string
	}{
		"busy":                    {409, "application/json", `{"error":{"code":"conversation_busy","message":"Wait."}}`, ErrConnect, "409 (conversation_busy): Wait."},
		"another server":          {200, "text/html", "<html>", ErrConnect, "not a voicegw gateway"},
		"an old gateway":          {404, "application/json", `{}`, ErrConnect, "not a voicegw gateway"},
		"cut off":                 {200, "text/event-stream", turnStream[:len(turnStream)-1], ErrLost, "last message"},
		"empty":                   {200, "text/event-stream", "", ErrLost, "last message"},
		"no message":              {200, "text/event-stream", "data: {}\n\n", ErrProtocol, ""},
		"a message after the end": {200, "text/event-stream", turnStream + "data: {\"type\":\"pong\",\"seq\":3,\"t\":1}\n\n", ErrLost, "last message"},
		"too long":                {200, "text/event-stream", "data: " + strings.Repeat("x", maxEvent), ErrProtocol, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			_, err := (&TextClient{BaseURL: srv.URL, Client: srv.Client()}).Turn(t.Context(), TextTurn{Message: "x"}, nil)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Error(err)
			}
			var refused *TextRefused
			if errors.As(err, &refused) != (tc.status == 409) {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := (&TextClient{BaseURL: "http://127.0.0.1:1"}).Turn(t.Context(), TextTurn{Message: "x"}, nil)
	if !errors.Is(err, ErrConnect) || strings.Contains(err.Error(), "/v1/chat") {
		t.Error(err)
	}
	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(left)
	if _, err := (&TextClient{BaseURL: "http://127.0.0.1:1"}).Turn(ctx, TextTurn{Message: "x"}, nil); !errors.Is(err, left) {
		t.Error(err)
	}
}

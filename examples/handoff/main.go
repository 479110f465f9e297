// Command handoff requests a voice session for a conversation, holds it, and reads the conversation afterwards.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/coder/websocket"
)

type offer struct {
	ConversationID string `json:"conversation_id"`
	Ticket         string `json:"ticket"`
	URL            string `json:"url"`
}

type message struct {
	Type     string `json:"type"`
	Role     string `json:"role"`
	Text     string `json:"text"`
	Final    bool   `json:"final"`
	Message  string `json:"message"`
	ItemID   string `json:"item_id"`
	AudioMS  int    `json:"audio_ms"`
	Handback *struct {
		Summary string `json:"summary"`
	} `json:"handback"`
}

func main() {
	gateway := os.Args[1] // such as http://127.0.0.1:8080
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// 1. The backend asks for a session.
	var made offer
	call(ctx, http.MethodPost, gateway+"/v1/sessions", map[string]any{
		"user": "ada", "pending_request": "When is the robotics lab open?",
		"messages": []map[string]string{{"role": "user", "content": "I like robots."},
			{"role": "assistant", "content": "Then see the lab."}},
	}, &made)

	// 2. The client connects with the ticket.
	conn, _, err := websocket.Dial(ctx, made.URL, &websocket.DialOptions{Subprotocols: []string{"voicegw.v1"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	say(ctx, conn, map[string]any{"type": "session.start", "ticket": made.Ticket, "input_rate": 16000, "output_rate": 24000})
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			break // the session is over
		}
		if kind == websocket.MessageBinary {
			continue // the answer in speech: PCM16, mono, 24 kHz
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			log.Fatal(err)
		}
		switch m.Type {
		case "transcript":
			if m.Final {
				fmt.Println(m.Role+":", m.Text)
			}
		case "audio.end":
			say(ctx, conn, map[string]any{"type": "playback", "item_id": m.ItemID, "played_ms": m.AudioMS, "done": true})
		case "turn.ended":
			say(ctx, conn, map[string]any{"type": "session.end"})
		case "error":
			log.Fatal(m.Message)
		case "session.ended":
			if m.Handback != nil {
				fmt.Println("handback:", m.Handback.Summary)
			}
		}
	}

	// 3. The backend reads what was said.
	var talk struct {
		Entries []struct{ Side, Role, Text string }
	}
	call(ctx, http.MethodGet, gateway+"/v1/conversations/"+made.ConversationID, nil, &talk)
	for _, e := range talk.Entries {
		fmt.Printf("%s %s: %s\n", e.Side, e.Role, e.Text)
	}
}

func say(ctx context.Context, conn *websocket.Conn, m map[string]any) {
	text, err := json.Marshal(m)
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, text)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func call(ctx context.Context, method, url string, body, into any) {
	text, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("VOICEGW_API_KEY"); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		log.Fatal(resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		log.Fatal(err)
	}
}

package openai

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// TestHistoryIsRefused: an error event about an item ends Connect, with an error that names the history.
func TestHistoryIsRefused(t *testing.T) {
	s := newServer(t)
	s.greet = func(p *peer) {
		p.usualGreeting()
		p.expect("conversation.item.create")
		p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"invalid_value","message":"no","param":"item.content"}}`)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := s.Transport(s.opts.HTTPClient).Connect(ctx, transport.Setup{History: []transport.Past{transport.PastUser{Text: "hello"}}})
	te, _ := err.(*transport.Error)
	if te == nil || te.Op != transport.OpHistory || te.Kind != transport.KindInvalid {
		t.Errorf("Connect: %v", err)
	}
}

// TestHistoryOfOtherIDs: a server with its own item ids has confirmed the history after the same number of items.
func TestHistoryOfOtherIDs(t *testing.T) {
	s := newServer(t)
	s.greet = func(p *peer) {
		p.usualGreeting()
		for _, id := range []string{"its_own_1", "its_own_2"} {
			p.expect("conversation.item.create")
			p.send(`{"type":"conversation.item.created","event_id":"e","item":{"id":%q}}`, id)
		}
	}
	conn, p := s.connect(transport.Setup{History: []transport.Past{transport.PastUser{Text: "hello"}}, Reanchor: "Go on."})
	p.quiet(conn)
}

// TestHistoryIsNotConfirmed: Connect does not wait for a provider that does not confirm the items.
func TestHistoryIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := dialRaw(t, &rawProvider{heard: func([]byte) {}}, transport.Provider{}, transport.Setup{Reanchor: "Go on."})
		te, _ := err.(*transport.Error)
		if te == nil || te.Op != transport.OpHistory || te.Kind != transport.KindTimeout || te.Code != "history_unconfirmed" {
			t.Errorf("Connect: %v", err)
		}
		if waited := time.Since(begun); waited != historyPatience {
			t.Errorf("it waited %v", waited)
		}
	})
}

// TestHistoryOfABetaService: Voice Live still has the beta's kind of content.
func TestHistoryOfABetaService(t *testing.T) {
	for host, want := range map[string]string{"/voice-live/realtime": "text", "": "output_text"} {
		items, err := dialectOf("", "x", host).history(transport.Setup{History: []transport.Past{transport.PastAssistant{Text: "hello"}}})
		if err != nil || len(items) != 1 {
			t.Fatal(items, err)
		}
		if got := string(items[0].frame); !strings.Contains(got, `"content":[{"type":"`+want+`","text":"hello"}]`) {
			t.Errorf("%q: %s", host, got)
		}
	}
}

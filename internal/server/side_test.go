package server

import (
	"log/slog"
	"net/http"
	"testing"

	"voicegw/session"
	"voicegw/transport"
)

// TestSideServer: a side server answers until it is closed.
func TestSideServer(t *testing.T) {
	m, err := session.NewManager(session.Options{Provider: "fake", Transports: map[string]transport.Transport{"fake": unreachable{}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{sessions: m, logger: slog.New(slog.DiscardHandler)}
	if err := s.openDebug(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	b := s.debug
	address := "http://" + b.listener.Addr().String() + "/debug/vars"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(address); err == nil {
		t.Error("it still serves after close")
	}
	var none *sideServer
	if err := none.close(); err != nil {
		t.Error(err)
	}
}

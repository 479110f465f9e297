package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTheLogHasRoutes: a refused request is logged with the pattern of its route, without its URL.
func TestTheLogHasRoutes(t *testing.T) {
	var log bytes.Buffer
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) {
		o.Blocks, o.Auth = &fakeBlocks{}, operators("key")
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r := httptest.NewRequest(http.MethodDelete, "/v1/blocks/somebody-secret?key=hidden", nil)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	s.ServeHTTP(httptest.NewRecorder(), r)
	if text := log.String(); !strings.Contains(text, "/v1/blocks/{user}") || strings.Contains(text, "somebody-secret") || strings.Contains(text, "hidden") {
		t.Error(text)
	}
}

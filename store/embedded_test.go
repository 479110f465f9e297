package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestDiagnose: when the server misses its own limit of 1 ms it is asked again; any other fault is returned at once.
func TestDiagnose(t *testing.T) {
	late := server.HealthzError{Type: server.HealthzErrorConn, Error: "startup did not complete"}
	lost := server.HealthzError{Type: server.HealthzErrorStream, Error: "a stream is gone"}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx   context.Context
		finds [][]server.HealthzError
		says  string // the whole error; empty for nil
	}{
		"healthy":          {t.Context(), [][]server.HealthzError{nil}, ""},
		"late, then good":  {t.Context(), [][]server.HealthzError{{late}, {late}, nil}, ""},
		"late, then lost":  {t.Context(), [][]server.HealthzError{{late}, {lost}}, "a stream is gone"},
		"two are lost":     {t.Context(), [][]server.HealthzError{{lost, lost}}, "a stream is gone; a stream is gone"},
		"late and no time": {ended, [][]server.HealthzError{{late}}, "startup did not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			err := diagnose(test.ctx, func() *server.HealthStatus {
				asked++
				return &server.HealthStatus{Errors: test.finds[asked-1]}
			})
			if asked != len(test.finds) {
				t.Errorf("it was asked %d times, want %d", asked, len(test.finds))
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != test.says {
				t.Errorf("error: %q, want %q", said, test.says)
			}
		})
	}
}

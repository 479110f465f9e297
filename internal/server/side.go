package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"voicegw/internal/process"
)

// Timeouts of the HTTP server.
const (
	headerTime = 10 * time.Second // for a request's header
	idleTime   = 2 * time.Minute  // for the next request on a connection
	// headerBytes limits a request's header, to within 4 KiB.
	headerBytes = 32 << 10
)

// openDebug serves profiles; an empty address means not to.
func (s *Server) openDebug(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	h := process.DebugHandler(s.host.Version, s.sessions.Running)
	b, err := listenSide(ctx, address, "profiles", "serve", "--debug-listen", h, s.logger)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.debug = b
	b.serve(b.listener, s.logger, "the debug listener stopped")
	s.logger.Info("debug listener", "addr", b.listener.Addr().String())
	return nil
}

// sideServer serves something on its own address, separate from the gateway's.
type sideServer struct {
	// Fixed after listenSide.
	what     string // for the error of close
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
}

// listenSide opens the address, which setting names; to completes "cannot". Requests wait until serve.
func listenSide(ctx context.Context, address, what, to, setting string, h http.Handler, logger *slog.Logger) (*sideServer, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot %s on %s: %w; choose another address with %s", to, address, err, setting)
	}
	return &sideServer{what: what, listener: listener, http: NewHTTP(h, logger)}, nil
}

// NewHTTP returns a server with the time limits and the bounds of a gateway.
func NewHTTP(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// serve answers connections of on, a listener over b.listener, until close. If that fails, it logs stopped.
func (b *sideServer) serve(on net.Listener, logger *slog.Logger, stopped string) {
	b.serving.Go(func() {
		if err := b.http.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(stopped, "error", err)
		}
	})
}

// close stops the server and its requests. b may be nil.
func (b *sideServer) close() error {
	if b == nil {
		return nil
	}
	err := b.http.Close()
	if unserved := b.listener.Close(); err == nil && !errors.Is(unserved, net.ErrClosed) {
		err = unserved
	}
	b.serving.Wait()
	if err != nil {
		return fmt.Errorf("the listener for %s: %w", b.what, err)
	}
	return nil
}

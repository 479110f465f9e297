package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

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
	return &sideServer{what: what, listener: listener, http: newHTTP(h, logger)}, nil
}

// newHTTP makes a server with the limits of all servers of the gateway.
func newHTTP(h http.Handler, logger *slog.Logger) *http.Server {
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

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

// listenSide opens the address. Requests wait until serve.
func listenSide(ctx context.Context, address, what string, server *http.Server) (*sideServer, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what cannot be served
	}
	return &sideServer{what: what, listener: listener, http: server}, nil
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

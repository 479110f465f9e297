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

// beside serves something on an address of its own, beside what the gateway serves.
type beside struct {
	// Fixed after listenBeside.
	what     string // for the error of close
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
}

// listenBeside takes the address; nothing is answered before serve.
func listenBeside(ctx context.Context, address, what string, server *http.Server) (*beside, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what cannot be served
	}
	return &beside{what: what, listener: listener, http: server}, nil
}

// serve answers what comes to a listener over b.listener, until close. The log gets stopped if that fails.
func (b *beside) serve(on net.Listener, logger *slog.Logger, stopped string) {
	b.serving.Go(func() {
		if err := b.http.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(stopped, "error", err)
		}
	})
}

// close ends it, and breaks off what is being asked. A nil beside has nothing to close.
func (b *beside) close() error {
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

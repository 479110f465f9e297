package gateway

import (
	"context"
	"net"
	"sync"

	"voicegw/transport"
)

// quiet is a model that accepts everything and sends nothing.
type quiet struct{ caps transport.Capabilities }

func (quiet) Name() string                                 { return "fake" }
func (quiet) Model() string                                { return "" }
func (quiet) Voices(string) []string                       { return nil }
func (quiet) Models() []string                             { return nil }
func (quiet) Refuses(string) bool                          { return false }
func (q quiet) Capabilities(string) transport.Capabilities { return q.caps }

// Connect opens a connection at once.
func (q quiet) Connect(_ context.Context, setup transport.Setup) (transport.Conn, error) {
	info := transport.Info{Provider: "fake", Model: setup.Model, Capabilities: q.caps, InputRate: 16000, OutputRate: 24000}
	return &quietConn{info: info, closed: make(chan struct{})}, nil
}

// quietConn is one of its connections.
type quietConn struct {
	info   transport.Info
	closed chan struct{} // closed by Close
	once   sync.Once
}

func (*quietConn) Send(context.Context, transport.Command) error { return nil }
func (*quietConn) Ready() bool                                   { return true }
func (c *quietConn) Info() transport.Info                        { return c.info }
func (*quietConn) Stats() transport.Stats                        { return transport.Stats{} }

// Notify calls f at once, and for the last time after Close.
func (c *quietConn) Notify(f func()) {
	go func() {
		f()
		<-c.closed
		f()
	}()
}

// Recv returns nothing until the connection is closed.
func (c *quietConn) Recv() (transport.Event, error) {
	select {
	case <-c.closed:
		return nil, &transport.Error{Provider: "fake", Op: "recv", Kind: transport.KindClosed, Err: net.ErrClosed}
	default:
		return nil, nil
	}
}

func (c *quietConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

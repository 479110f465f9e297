package server

import (
	"context"
	"fmt"
	"time"

	"voicegw/gateway"
	"voicegw/internal/cluster"
	"voicegw/session"
)

type peers struct {
	*sideServer
	carrier *cluster.Peers
}

// openPeers listens for the other gateways; nil without a cluster.
func (s *Server) openPeers(ctx context.Context) (*peers, error) {
	c := s.cfg.Cluster
	if !c.Enabled() {
		return nil, nil
	}
	carrier, err := cluster.New(cluster.Options{
		Secret: []byte(c.Secret.Reveal()), MaxMessageBytes: s.cfg.Limits.MessageBytes,
		End:     func(id string) bool { return s.sessions.End(id) },
		Switch:  func(id, agent, reason string) error { return s.sessions.SwitchAgent(id, agent, reason) },
		Prompt:  func(id string) (session.Prompt, error) { return s.sessions.Prompt(id) },
		Session: func(id string) (session.Running, bool) { return s.sessions.Session(id) },
		Holds:   func(id string) bool { return s.sessions.Holds(id) },
		Accept:  func(h cluster.Hello, c *cluster.Client) { s.sessions.Start(s.sessions.AdmitCarried(h.Visitor()), c) },
	})
	if err != nil {
		return nil, fmt.Errorf("cluster.secret: %w", err)
	}
	b, err := listenSide(ctx, c.Listen, "other gateways", "listen for other gateways", "cluster.listen", carrier.Handler(), s.logger)
	if err != nil {
		return nil, err
	}
	return &peers{sideServer: b, carrier: carrier}, nil
}

// newNode returns the node that stores sessions, so that another gateway or the next start can resume them.
func (s *Server) newNode() *cluster.Node {
	o := cluster.NodeOptions{
		Directory: s.caps.store.Directory, Nodes: s.caps.store.Nodes, Checkpoints: s.caps.store.Checkpoints, Logger: s.logger,
		Self: func() string { return s.node.Node().ID },
	}
	if s.peers != nil {
		o.Peers = s.peers.carrier
	}
	return cluster.NewNode(o)
}

func (p *peers) open(s *Server) {
	p.serve(gateway.Listen(p.listener, s.loops), s.logger, "stopped serving other gateways")
	s.logger.Info("serving other gateways", "addr", p.listener.Addr().String(), "url", s.cfg.Cluster.URL)
}

// check logs wrong addresses and secrets of the cluster. The gateway serves anyway: the others may not have started.
func (p *peers) check(ctx context.Context, s *Server) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	others, err := s.caps.store.Nodes.List(ctx)
	if err != nil {
		s.logger.Warn("listing the other gateways failed, so they were not checked", "error", err)
	}
	for _, wrong := range p.carrier.Check(ctx, s.node.Node(), others) {
		if ctx.Err() == nil {
			s.logger.Warn("the gateways of this cluster cannot reach each other", "error", wrong)
		}
	}
}

const checkTime = 30 * time.Second

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"voicegw/chat"
	"voicegw/gateway"
	"voicegw/gateway/phone"
	"voicegw/internal/auth"
	"voicegw/internal/certs"
	"voicegw/internal/checks"
	"voicegw/internal/cluster"
	"voicegw/internal/cost"
	"voicegw/internal/jobs"
	"voicegw/internal/logging"
	"voicegw/internal/mcp"
	"voicegw/internal/meter"
	"voicegw/internal/metrics"
	"voicegw/internal/nonblock"
	"voicegw/internal/process"
	"voicegw/internal/quota"
	"voicegw/internal/traces"
	"voicegw/internal/webhook"
	"voicegw/registry/build"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/web"
)

// Server is a gateway. Its methods may be called once each.
type Server struct {
	// Fixed after newServer.
	toolset
	log    logging.Log
	logger *slog.Logger // of log
	// acceptDamage is the code of the damage to accept, or empty.
	acceptDamage string
	dataDir      string // empty if the configuration needs no folder
	auth         *auth.Current
	listener     net.Listener
	bound        *gateway.BoundListener // over listener
	models       models
	reloader     *reloader
	manager      process.ServiceManager
	certs        *certs.Store    // nil without TLS for clients
	loops        *nonblock.Loops // read connections of clients and models
	http         *http.Server
	gateway      *gateway.Server
	sessions     *session.Manager
	voices       atomic.Pointer[session.Manager] // sessions, for goroutines that start before it exists
	texts        *chat.Agent
	mcp          *mcp.Server    // nil unless it is configured
	phone        *phone.Server  // nil unless it is configured
	drained      *operatorDrain // by an operator
	node         *store.Membership
	peers        *peers // nil without a cluster
	elsewhere    *cluster.Node
	metrics      *metrics.Metrics
	scrapes      *sideServer    // nil if the metrics have no own address
	debug        *sideServer    // nil without an address for profiles
	traces       *traces.Traces // nil if traces are off
	traceSecrets []string       // secrets in the collector's headers, for the log to hide
	overload     *quota.Watch
	prices       atomic.Pointer[cost.Table]
	dayBudget    atomic.Uint64 // bits of a float64: US dollars
	usage        *meter.Meter
	webhooks     *webhook.Sender
	checks       *checks.Set // nil without any
	jobs         *jobs.Runner
	devTools     *build.Watch // nil without dev
}

func newServer(ctx context.Context, h Host, o Options) (*Server, error) {
	logger := o.Log.Logger
	s := &Server{toolset: toolset{host: h, cfg: o.Config}, log: o.Log, logger: logger, acceptDamage: o.AcceptDamage,
		loops: gateway.NewLoops(logger)}
	s.reloader = newReloader(s, o.Read)
	s.drained = &operatorDrain{s: s}
	s.metrics = metrics.New(metrics.Options{Native: o.Config.Metrics.Native, Logger: logger.With("component", "metrics")})
	var err error
	s.traceSecrets = h.TraceSecrets(o.Config)
	if s.traces, err = h.openTraces(o.Config, logger); err == nil {
		err = s.open(ctx)
	}
	if err == nil {
		err = s.openDebug(ctx, o.DebugListen)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(CloseTime))
	}
	s.findServiceManager()
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	for _, stage := range []func(context.Context) error{
		s.openStore, s.openModels, s.openRecords, s.openConversations, s.joinCluster, s.takeAddress,
	} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openStore opens the data folder, the store and its backends, and decides who may connect.
func (s *Server) openStore(ctx context.Context) error {
	var err error
	if s.dataDir, err = s.host.DataDir(s.cfg); err != nil {
		return err
	}
	if s.certs, err = openCertificates(s.cfg, s.dataDir, s.logger); err != nil {
		return err
	}
	keep := storeOptions(s.cfg, s.dataDir, s.logger)
	keep.Observe, keep.AcceptDamage = s.metrics.Stored, s.acceptDamage
	if s.caps, err = openCapabilities(ctx, s.cfg, s.dataDir, keep, s.logger); err != nil {
		return err
	}
	if limit := quota.KeepToCgroup(); limit > 0 {
		s.logger.Info("memory limit set from the control group", "bytes", limit)
	}
	s.overload = quota.NewOverload(quota.OverloadOptions{Store: s.caps.store.Ready, Logger: s.logger.With("component", "overload")})
	if err = s.logApprovals(ctx); err != nil {
		return err
	}
	who, err := s.authenticator(s.cfg)
	if err != nil {
		return err
	}
	s.auth = auth.Only(who)
	return nil
}

// openModels opens the models, the tools and the agents.
func (s *Server) openModels(ctx context.Context) error {
	var err error
	if s.sim, err = simulatorFor(ctx, s.cfg, s.logger); err != nil {
		return err
	}
	if err = openImages(s.cfg, s.dataDir, s.sim, s.caps, &s.models.images); err != nil {
		return err
	}
	s.models.transports, err = s.openTools()
	return err
}

// openRecords opens the records of calls, usage and events, and the jobs that outlive conversations.
func (s *Server) openRecords(ctx context.Context) error {
	var err error
	if s.audit, err = openAudit(s.cfg, s.dataDir, s.caps.store, s.host.Stdout, s.logger); err != nil {
		return err
	}
	if d := s.caps.store.Accepted; d != nil {
		s.audit.Write(acceptedRecord(d))
	}
	if err = s.openUsage(ctx); err != nil {
		return err
	}
	s.webhooks = webhook.New(webhook.Options{
		Queue: s.caps.store.Webhooks, Endpoints: endpoints(s.cfg), Logger: s.logger.With("component", "webhooks"),
	})
	s.nameMetrics(s.models.transports)
	s.nameTraces()
	s.openJobs()
	return nil
}

// openConversations makes everything that holds conversations, before clients can connect.
func (s *Server) openConversations(ctx context.Context) error {
	speaker, err := newSpeaker(s.cfg, s.sim)
	if err != nil {
		return err
	}
	s.executor = newExecutor(s.cfg, s.caps.store, s.jobs, s.logger)
	if s.peers, err = s.openPeers(ctx); err != nil {
		return err
	}
	s.elsewhere = s.newNode()
	if s.checks, err = newChecks(s.cfg, s.sim, &s.models.text, s.logger); err != nil {
		return err
	}
	if s.sessions, err = session.NewManager(s.sessionOptions(speaker)); err != nil {
		return err
	}
	s.voices.Store(s.sessions)
	if err = s.openPhone(); err != nil {
		return err
	}
	s.mcp = s.newMCP()
	s.texts, err = s.newChat()
	return err
}

func (s *Server) joinCluster(ctx context.Context) (err error) {
	s.node, err = s.caps.store.Nodes.Join(ctx, store.Node{URL: s.cfg.Cluster.URL, Version: s.host.Version}, s.sessions.Running)
	if err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	return nil
}

func (s *Server) openTools() (map[string]transport.Transport, error) {
	var err error
	if s.tools, s.devTools, err = s.host.loadTools(s.caps.registryOptions(s.cfg.Dev), s.cfg, s.caps); err != nil {
		return nil, err
	}
	s.logToolSettings(s.cfg)
	if idle := idleFeatures(s.cfg.Features, s.tools.Snapshot()); len(idle) > 0 {
		s.logger.Warn("enabled features that no tool uses in its availability", "features", strings.Join(idle, ", "))
	}
	if err = checkTools(s.cfg, s.tools.Snapshot()); err != nil {
		return nil, err
	}
	transports, err := newTransports(s.cfg, s.sim, s.loops, &s.models.text, s.logger)
	if err != nil {
		return nil, err
	}
	warnings, err := checkProviderNames(s.cfg, agentWorld(s.cfg, s.tools.Snapshot(), transports))
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		s.logger.Warn("a provider may reject a configured name", "warning", w)
	}
	return transports, s.openAgents(transports)
}

// takeAddress makes the HTTP server and its listener. It comes last, so that every connected client is served.
func (s *Server) takeAddress(ctx context.Context) error {
	measured, err := s.serveMetrics(ctx)
	if err != nil {
		return err
	}
	s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot serve on %s: %w; choose another address with --listen", s.cfg.Listen, err)
	}
	if _, _, err := allowedHosts(s.cfg, s.listener.Addr(), s.certified()); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.bound = gateway.Bound(s.listener, connectionLimits(s.cfg))
	options := gateway.Options{
		Sessions: s.sessions, Tools: s.tools.Snapshot, Page: web.Handler(), Settings: s.gatewaySettings(s.cfg),
		Version: s.host.Version, Logger: s.logger, MaxMessageBytes: s.cfg.Limits.MessageBytes,
		Chat: s.texts, Voice: s.caps.handoff, Blocked: s.caps.blocked, Images: s.caps.images.files,
		Blocks: s.caps.store.Blocks, Approvals: s.caps.store.Approvals, Jobs: s.jobs, Auth: s.auth,
		Directory: s.caps.store.Directory, Nodes: s.caps.store.Nodes,
		EndLost: s.sessions.EndRecorded, Drain: s.drained, Reload: s.reloader.reload,
		Agents: s.agents.catalog, Usage: s.usage, Overload: s.overload.State,
		TrustedProxies: s.cfg.Proxies(), Metrics: measured, Observe: s.metrics.Answered,
		Refused: s.metrics.Refused, Ready: s.caps.store.Ready, Phone: s.phone,
	}
	// The interfaces must not hold nil pointers.
	if s.sim != nil {
		options.Simulator = s.sim.Server
	}
	if s.peers != nil {
		options.Peers = s.peers.carrier
	}
	if s.mcp != nil {
		options.MCP = s.mcp
	}
	s.gateway = gateway.New(options)
	s.http = NewHTTP(s.gateway, s.logger)
	s.http.ConnContext = gateway.ConnContext
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/chat"
	"voicegw/client/operator"
	"voicegw/config"
	"voicegw/gateway"
	"voicegw/gateway/phone"
	"voicegw/internal/auth"
	"voicegw/internal/certs"
	"voicegw/internal/checks"
	"voicegw/internal/cluster"
	"voicegw/internal/cost"
	"voicegw/internal/jobs"
	"voicegw/internal/mcp"
	"voicegw/internal/meter"
	"voicegw/internal/metrics"
	"voicegw/internal/nonblock"
	"voicegw/internal/origin"
	"voicegw/internal/process"
	"voicegw/internal/quota"
	"voicegw/internal/textutil"
	"voicegw/internal/traces"
	"voicegw/internal/webhook"
	"voicegw/registry/build"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/web"
)

// Timeouts of the HTTP server.
const (
	headerTime = 10 * time.Second // for a request's header
	idleTime   = 2 * time.Minute  // for the next request on a connection
	// headerBytes limits a request's header, to within 4 KiB.
	headerBytes = 32 << 10
)

func (flags serveFlags) Run(ctx callerContext, p Process, parsed *kong.Context) error {
	if n := schedulers(runtime.GOMAXPROCS(0), variable(p.Environ, "GOMAXPROCS")); n > 0 {
		runtime.GOMAXPROCS(n)
	}
	if variable(p.Environ, "GOGC") == "" {
		debug.SetGCPercent(50) // a relayed frame makes no garbage, so less memory costs little
	}
	cfg, warnings, err := p.load(configFlags{flags.Config, flags.Set}, false, parsed)
	if flags.CheckConfig {
		return flags.checkConfig(ctx, p, cfg, warnings, err)
	}
	if err != nil {
		return usage(err)
	}
	if text := checkDebugListen(flags.DebugListen); text != "" {
		return usage(config.Problems{{Where: "--debug-listen", Message: text}})
	}
	log := newLog(p.Stderr, cfg.Log.Level, cfg.Log.Format, append(cfg.Secrets(), p.traceSecrets(cfg)...)...)
	logger := log.logger
	for _, w := range warnings {
		logger.Warn("configuration", "warning", w)
	}
	s, err := p.startServer(ctx, cfg, flags.AcceptDamage, log)
	var problems config.Problems
	switch {
	case errors.As(err, &problems), errors.Is(err, errSimFiles):
		return usage(err)
	case err != nil:
		return err
	}
	var debug *sideServer
	if flags.DebugListen != "" {
		if debug, err = openDebug(ctx, flags.DebugListen, s.sessions.Running, logger); err != nil {
			return errors.Join(err, s.listener.Close(), s.close(p, closeTime))
		}
	}
	p.greet(s)
	s.findServiceManager(p)
	again := p.reloader(s, flags, parsed)
	s.again = again.reload
	return errors.Join(s.run(ctx, p, again), debug.close())
}

func openDebug(ctx context.Context, address string, sessions func() int, logger *slog.Logger) (*sideServer, error) {
	b, err := listenSide(ctx, address, "profiles", "serve", "--debug-listen", process.DebugHandler(versionOf(), sessions), logger)
	if err != nil {
		return nil, err
	}
	b.serve(b.listener, logger, "the debug listener stopped")
	logger.Info("debug listener", "addr", b.listener.Addr().String())
	return b, nil
}

// schedulers returns the GOMAXPROCS to set on a machine with n processors; 0 means no change. With a single
// processor, Go releases and reacquires it at each wait of a loop (package nonblock), which costs a quarter more CPU
// than two. An environment variable has priority.
func schedulers(n int, env string) int {
	if n == 1 && env == "" {
		return 2
	}
	return 0
}

type server struct {
	// Fixed after newServer.
	toolBench
	programLog
	// acceptDamage is the code of the damage to accept, or empty.
	acceptDamage string
	dataDir      string // empty if the configuration needs no folder
	auth         *auth.Current
	listener     net.Listener
	bound        *gateway.BoundListener // over listener
	models       models
	again        func() (gateway.Reloaded, error) // reloads the configuration; set before run
	manager      process.ServiceManager           // set before run
	certs        *certs.Store                     // nil without TLS for clients
	loops        *nonblock.Loops                  // read connections of clients and models
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
	traces       *traces.Traces // nil if traces are off
	traceSecrets []string       // secrets in the collector's headers, for the log to hide
	overload     *quota.Watch
	prices       atomic.Pointer[cost.Table]
	dayBudget    atomic.Uint64 // bits of a float64: US dollars
	usage        *meter.Meter
	webhooks     *webhook.Sender
	checks       *checks.Set // nil without any
	jobs         *jobs.Runner
	reload       *build.Watch // nil without dev
}

// newServer makes the gateway's parts and opens its listener. The error wraps config.Problems for a problem of the
// configuration, and errSimFiles for one of the simulator's files.
func (p Process) newServer(ctx context.Context, cfg *config.Config, acceptDamage string, log programLog) (*server, error) {
	logger := log.logger
	s := &server{toolBench: toolBench{cfg: cfg}, acceptDamage: acceptDamage, programLog: log, loops: gateway.NewLoops(logger)}
	s.drained = &operatorDrain{s: s}
	s.metrics = metrics.New(metrics.Options{Native: cfg.Metrics.Native, Logger: logger.With("component", "metrics")})
	var err error
	s.traceSecrets = p.traceSecrets(cfg)
	if s.traces, err = p.openTraces(cfg, logger); err == nil {
		err = s.open(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(p, closeTime))
	}
	return s, nil
}

func (s *server) open(ctx context.Context, p Process) error {
	var err error
	if s.dataDir, err = p.dataDir(s.cfg); err != nil {
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
	if s.sim, err = simulatorFor(ctx, s.cfg, s.logger); err != nil {
		return err
	}
	if err = openImages(s.cfg, s.dataDir, s.sim, s.caps, &s.models.images); err != nil {
		return err
	}
	if s.models.transports, err = s.openTools(p); err != nil {
		return err
	}
	if s.audit, err = openAudit(s.cfg, s.dataDir, s.caps.store, p.Stdout, s.logger); err != nil {
		return err
	}
	if d := s.caps.store.Accepted(); d != nil {
		s.audit.Write(acceptedRecord(d))
	}
	if err = s.openUsage(ctx); err != nil {
		return err
	}
	s.webhooks = webhook.New(webhook.Options{
		Queue: s.caps.store.Webhooks(), Endpoints: endpoints(s.cfg), Logger: s.logger.With("component", "webhooks"),
	})
	s.nameMetrics(s.models.transports)
	s.nameTraces()
	s.openJobs()
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
	if s.texts, err = s.newChat(); err != nil {
		return err
	}
	s.mcp = s.newMCP()
	if s.node, err = s.caps.store.Nodes().Join(ctx, store.Node{URL: s.cfg.Cluster.URL, Version: versionOf()},
		s.sessions.Running); err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	return s.takeAddress(ctx)
}

func (s *server) openTools(p Process) (map[string]transport.Transport, error) {
	var err error
	if s.tools, s.reload, err = p.loadTools(s.caps.registryOptions(s.cfg.Dev), s.cfg, s.caps); err != nil {
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
func (s *server) takeAddress(ctx context.Context) error {
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
		Version: versionOf(), Logger: s.logger, MaxMessageBytes: s.cfg.Limits.MessageBytes,
		Chat: s.texts, Voice: s.caps.handoff, Blocked: s.caps.blocked, Images: s.caps.images.files,
		Blocks: s.caps.store.Blocks(), Approvals: s.caps.store.Approvals(), Jobs: s.jobs, Auth: s.auth,
		Directory: s.caps.store.Directory(), Nodes: s.caps.store.Nodes(),
		EndLost: s.sessions.EndRecorded, Drain: s.drained, Reload: func() (gateway.Reloaded, error) { return s.again() },
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
	s.http = newHTTP(s.gateway, s.logger)
	s.http.ConnContext = gateway.ConnContext
	return nil
}

// run serves until ctx ends, a signal comes or the listener fails, and then ends everything.
func (s *server) run(ctx context.Context, p Process, again *reloader) error {
	// From the serving goroutine to this one; never closed.
	failed := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		failed <- s.http.Serve(s.clients())
	})
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	if s.reload != nil {
		serving.Go(func() { s.reload.Run(watching) })
	}
	if s.certs != nil {
		serving.Go(func() { s.certs.Run(watching) })
	}
	if s.peers != nil {
		s.peers.open(s)
		serving.Go(func() { s.peers.check(watching, s) })
	}
	services := s.cfg.Services()
	warnOfLag(s.logger, s.checks, s.sessions.Providers(), s.models.transports)
	warnOfEnds(s.logger, modelsInUse(s.cfg, s.sessions.Providers(), s.sim), time.Now())
	s.logger.Info("serving", "addr", s.listener.Addr().String(), "version", versionOf(),
		"provider", services[0].Name, "simulated", services[0].Simulated, "tools_version", s.tools.Snapshot().Version(),
		"data_dir", s.dataDir)
	if _, greeted := textutil.Width(p.Stderr); services[0].Simulated && !greeted {
		s.logger.Warn(simNotice(s.cfg))
	}
	serving.Go(func() { s.watchdog(watching) })
	asked, unask := p.reloads()
	defer unask()
	serving.Go(func() { again.run(watching, asked) })
	serving.Go(func() { s.sessions.EndLost(watching) })
	serving.Go(func() { again.watchKeyFiles(watching) })
	s.tell(process.ServiceReady)

	var err error
	select {
	case <-ctx.Done():
	case <-p.Signals:
	case err = <-failed:
		err = fmt.Errorf("the server stopped: %w", err)
	}
	s.tell(process.ServiceStopping)
	err = errors.Join(err, s.leave(p, func() error {
		unwatch()
		serving.Wait()
		return nil
	}))
	s.logger.Info("stopped")
	return err
}

// greet shows the next steps at a terminal. Otherwise the log has them.
func (p Process) greet(s *server) {
	if _, ok := textutil.Width(p.Stderr); !ok {
		return
	}
	code := ""
	if s.certs != nil {
		code = s.gateway.ConsoleCode()
	} else if at, err := origin.ParseHost(reachable(s.listener.Addr())); err == nil && at.Loopback() {
		code = s.gateway.ConsoleCode() // to another address the code would travel unencrypted
	}
	_, _ = fmt.Fprint(p.Stderr, greeting(s.cfg, s.listener.Addr(), s.dataDir, code))
}

// greeting returns the text of greet. The code opens the console once and must not be logged.
func greeting(cfg *config.Config, addr net.Addr, dataDir, code string) string {
	var b strings.Builder
	host := named(cfg, reachable(addr))
	fmt.Fprintf(&b, "\n  voicegw %s\n\n", versionOf())
	fmt.Fprintf(&b, "  Talk to it       %s\n", operator.ConsoleLink(scheme(cfg)+"://"+host, code))
	if code != "" {
		b.WriteString("                   (the link opens the console once, within 15 minutes; voicegw console makes another)\n")
	}
	fmt.Fprintf(&b, "  or from a shell  voicegw talk --url ws%s://%s/v1/voice --text \"Hello\"\n",
		strings.TrimPrefix(scheme(cfg), "http"), host)
	services := cfg.Services()
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Name
	}
	fmt.Fprintf(&b, "  Provider         %s\n", strings.Join(names, "; on request "))
	if dataDir != "" {
		fmt.Fprintf(&b, "  Data             %s\n", dataDir)
	}
	if services[0].Simulated {
		fmt.Fprintf(&b, "  Simulated        %s\n", simNotice(cfg))
	}
	return b.String() + "\n"
}

func simNotice(cfg *config.Config) string {
	if cfg.Sim.Use == config.UseAlways {
		return "sim.use is always, so the built-in simulator answers"
	}
	return "no provider has a key, so the built-in simulator answers; set GEMINI_API_KEY or OPENAI_API_KEY for a real one"
}

func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}

// checkDebugListen returns the problem of an address; "" if it has none or is empty.
func checkDebugListen(address string) string {
	if address == "" {
		return ""
	}
	if text := config.CheckListen(address); text != "" {
		return text
	}
	if !config.Loopback(address) {
		return fmt.Sprintf("other machines can reach %s, and profiles reveal secrets. Listen on 127.0.0.1 and use a tunnel.", address)
	}
	return ""
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
	return &sideServer{what: what, listener: listener, http: newHTTP(h, logger)}, nil
}

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

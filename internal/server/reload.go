package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/auth"
	"voicegw/internal/process"
	"voicegw/internal/textutil"
)

// reloads returns nil at a terminal, where SIGHUP means that the terminal closed, and ends the program.
func (h Host) reloads() (signals <-chan os.Signal, stop func()) {
	if h.Reloads != nil {
		return h.Reloads, func() {}
	}
	if _, atTerminal := textutil.Width(h.Stderr); atTerminal {
		return nil, func() {}
	}
	asked := make(chan os.Signal, 1) // buffered: a signal during a reload triggers another one
	signal.Notify(asked, syscall.SIGHUP)
	return asked, func() { signal.Stop(asked) }
}

// sweep is the interval for ending sessions of revoked credentials: one may start during a reload, and issuers revoke
// keys without a reload.
const sweep = 20 * time.Second

type reloader struct {
	// Fixed after newReloader.
	s      *Server
	read   func() (*config.Config, []string, error) // the configuration and its warnings
	sweeps <-chan time.Time                         // replaces the ticks of sweep unless nil

	mu    sync.Mutex // guards the fields below; held during a reload
	now   *config.Config
	files string // the state of the files of foreign tools
}

func newReloader(s *Server, read func() (*config.Config, []string, error)) *reloader {
	return &reloader{s: s, now: s.cfg, files: toolFiles(s.cfg.ToolDirs, s.cfg.MCP), sweeps: s.host.Sweeps, read: read}
}

// run reloads at each signal, and ends the sessions of revoked credentials, until ctx ends.
func (r *reloader) run(ctx context.Context, signals <-chan os.Signal) {
	sweeps := r.sweeps
	if sweeps == nil {
		ticker := time.NewTicker(sweep)
		defer ticker.Stop()
		sweeps = ticker.C
	}
	looks := time.NewTicker(toolLook)
	defer looks.Stop()
	for {
		select {
		case <-signals:
			_, _ = r.reload() // already logged
		case <-sweeps:
			r.end(r.s.auth.Revoked)
		case <-looks.C:
			r.look()
		case <-ctx.Done():
			return
		}
	}
}

// look loads changed foreign tools.
func (r *reloader) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.caps.lookAtTools(r.now, r.s.tools, &r.files, func() {
		r.s.logToolSettings(r.now)
		r.s.metrics.KnowTools(r.s.tools.Snapshot())
	})
}

// reload applies the changes that need no restart, and ends the sessions of revoked credentials. If anything is
// wrong, it changes nothing and returns a *gateway.ReloadError. It is safe for concurrent use.
func (r *reloader) reload() (gateway.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.tell(process.ServiceReloading)
	defer r.s.tell(process.ServiceReady)
	cfg, warnings, err := r.read()
	if err != nil {
		return r.refuse(err)
	}
	to, err := config.TakeOver(r.now, cfg)
	if err != nil {
		return r.refuse(err)
	}
	take, err := r.s.prepare(r.now, &to)
	if err != nil {
		return r.refuse(err)
	}
	take()
	r.now, r.files = to.Next, toolFiles(to.Next.ToolDirs, to.Next.MCP)
	for _, w := range warnings {
		r.s.logger.Warn("configuration", "warning", w)
	}
	ended := r.end(func(p auth.Principal) bool { return !r.s.auth.Admits(p, time.Now()) })
	r.s.sessions.WatchLapses()
	r.s.metrics.Reloaded(true)
	log := r.s.logger.With("changed", strings.Join(to.Changed, ", "), "keys", len(cfg.Auth.Keys),
		"issuers", len(cfg.Auth.JWT), "sessions_ended", ended)
	if len(to.Restart) > 0 {
		log.Warn("configuration reloaded; some changes need a restart", "needs_restart", strings.Join(to.Restart, ", "))
	} else {
		log.Info("configuration reloaded")
	}
	return gateway.Reloaded{Changed: list(to.Changed), NeedsRestart: list(to.Restart), SessionsEnded: ended}, nil
}

// list returns a list that is [] in JSON if empty.
func list(keys []string) []string { return append([]string{}, keys...) }

func (r *reloader) refuse(err error) (gateway.Reloaded, error) {
	r.s.metrics.Reloaded(false)
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		problems = config.Problems{{Where: "configuration", Message: err.Error()}}
	}
	told := &gateway.ReloadError{}
	for _, p := range problems {
		r.s.logger.Error("invalid configuration; keeping the current one", "where", p.Where, "problem", p.Message)
		told.Problems = append(told.Problems, gateway.ReloadProblem{Where: p.Where, Message: p.Message})
	}
	return gateway.Reloaded{}, told
}

func (r *reloader) end(out func(auth.Principal) bool) int {
	ended := 0
	for _, running := range r.s.sessions.Sessions() {
		if out(running.Principal) && r.s.sessions.End(running.ID) {
			r.s.logger.Info("ending a session with revoked credentials", "session_id", running.ID, "principal", running.Principal.ID)
			ended++
		}
	}
	return ended
}

func (r *reloader) watchKeyFiles(ctx context.Context) {
	tried := map[string][sha256.Size]byte{}
	process.Run(ctx, process.Options{What: "issuers' keys", Logger: r.s.logger, Files: r.keyFiles, Look: func() {
		if r.keysChanged(tried) {
			_, _ = r.reload() // already logged
		}
	}})
}

func (r *reloader) keyFiles() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, issuer := range r.now.Auth.JWT {
		if issuer.KeysFile.Path != "" {
			names = append(names, issuer.KeysFile.Path)
		}
	}
	return names
}

// keysChanged reports whether a file's keys differ from the current ones. tried records the attempts, so that
// rejected keys aren't tried twice. An unreadable file is about to be replaced.
func (r *reloader) keysChanged(tried map[string][sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, issuer := range r.now.Auth.JWT {
		name := issuer.KeysFile.Path
		if name == "" {
			continue
		}
		data, err := readBounded(name)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(data)
		if sum != sha256.Sum256(issuer.KeysFile.Data) && sum != tried[name] {
			changed, tried[name] = true, sum
		}
	}
	return changed
}

// maxFile exceeds the limits of key files and price tables, so that reading them reports the error.
const maxFile = 2 << 20

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

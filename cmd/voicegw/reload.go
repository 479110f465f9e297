package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/auth"
	"voicegw/config"
	"voicegw/internal/sdnotify"
	"voicegw/internal/terminal"
)

// reloads returns the signals that ask the gateway to read its configuration again. At a terminal
// there are none: there SIGHUP means that the terminal has gone, and ends the program.
func (p Process) reloads() (signals <-chan os.Signal, stop func()) {
	if p.Reloads != nil {
		return p.Reloads, func() {}
	}
	if _, atTerminal := terminal.Width(p.Stderr); atTerminal {
		return nil, func() {}
	}
	asked := make(chan os.Signal, 1) // one that comes meanwhile asks for another reading
	signal.Notify(asked, syscall.SIGHUP)
	return asked, func() { signal.Stop(asked) }
}

// reloader reads the configuration again while the gateway serves.
type reloader struct {
	s    *server
	read func() (*config.Config, error) // the configuration as it stands now

	manager serviceManager
}

func (p Process) reloader(s *server, flags serveFlags, parsed *kong.Context) *reloader {
	return &reloader{s: s, manager: s.serviceManager(p), read: func() (*config.Config, error) {
		cfg, _, err := p.load(flags, parsed)
		return cfg, err
	}}
}

// run reloads at each signal, until ctx ends.
func (r *reloader) run(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			r.manager.tell(sdnotify.Reloading)
			r.reload()
			r.manager.tell(sdnotify.Ready)
		case <-ctx.Done():
			return
		}
	}
}

// reload takes over keys, issuers and certificates: all of them or, if anything is wrong, nothing. The
// sessions of whoever is not let in any more end at once.
func (r *reloader) reload() {
	cfg, err := r.read()
	if err != nil {
		r.refuse(err)
		return
	}
	next, err := r.s.authenticator(cfg)
	if err != nil {
		r.refuse(err)
		return
	}
	if r.s.certs != nil {
		if err := r.s.certs.Reload(); err != nil {
			next.Close()
			r.refuse(err)
			return
		}
	}
	r.s.auth.Swap(next).Close()
	ended := r.endStrangers(next)
	r.s.sessions.WatchLapses()
	log := r.s.logger.With("keys", len(cfg.Auth.Keys), "issuers", len(cfg.Auth.JWT), "sessions_ended", ended)
	if !sameElse(r.s.cfg, cfg) {
		log.Warn("the configuration was read again; settings other than auth and the files of tls have changed, too, and count from the next start")
		return
	}
	log.Info("the configuration was read again")
}

func (r *reloader) refuse(err error) {
	var problems config.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			r.s.logger.Error("the configuration cannot be used, and the one before stays", "where", p.Where, "problem", p.Message)
		}
		return
	}
	r.s.logger.Error("the configuration cannot be used, and the one before stays", "error", err)
}

// endStrangers ends the sessions of principals that are not let in any more, and returns how many.
func (r *reloader) endStrangers(now *auth.Authenticator) int {
	ended := 0
	for _, running := range r.s.sessions.Sessions() {
		if !now.Admits(running.Principal, time.Now()) && r.s.sessions.End(running.ID) {
			r.s.logger.Info("a session ends, because its key or its issuer is not let in any more", "session_id", running.ID, "principal", running.Principal.ID)
			ended++
		}
	}
	return ended
}

// sameElse reports whether two configurations differ at most in what a reload takes over.
func sameElse(a, b *config.Config) bool {
	one, other := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range one.NumField() {
		field := one.Type().Field(i)
		if !field.IsExported() || field.Name == "Auth" {
			continue
		}
		if !reflect.DeepEqual(one.Field(i).Interface(), other.Field(i).Interface()) {
			return false
		}
	}
	return true
}

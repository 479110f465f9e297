package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"voicegw/config"
	"voicegw/sim"
)

// simFlags are the flags of sim.
type simFlags struct {
	Listen       string  `help:"Address to serve on; port 0 takes a free one." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	Insecure     bool    `help:"Allow an address that other machines can reach."`
	Scenario     string  `help:"YAML file that says what the model hears, says and does." placeholder:"FILE"`
	Faults       string  `help:"YAML file that says what goes wrong." placeholder:"FILE"`
	Seed         uint64  `help:"Seed of everything random." default:"0" placeholder:"N"`
	TLSCert      string  `help:"Certificate file (PEM), to serve over TLS." placeholder:"FILE" name:"tls-cert"`
	TLSKey       string  `help:"Key file of the certificate (PEM)." placeholder:"FILE" name:"tls-key"`
	Speed        float64 `help:"Seconds of speech made in a second; 0 for each wire's own, -1 for all at once." placeholder:"N"`
	ChunkMS      int     `help:"Length of an audio chunk in ms; 0 for each wire's own." placeholder:"MS" name:"chunk-ms"`
	FirstAudioMS int     `help:"Time to the first audio in ms; 0 for each wire's own, -1 for none." placeholder:"MS" name:"first-audio-ms"`
	LogLevel     string  `help:"Least level to log: debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	LogFormat    string  `help:"How to log: auto, text or json." default:"auto" enum:"auto,text,json"`
}

// check returns everything that is wrong with the flags.
func (f simFlags) check() error {
	var problems config.Problems
	if text := config.CheckListen(f.Listen); text != "" {
		problems = append(problems, config.Problem{Where: "--listen", Message: "listen " + text})
	} else if !config.Loopback(f.Listen) && !f.Insecure {
		problems = append(problems, config.Problem{Where: "--listen", Message: fmt.Sprintf(
			"%s can be reached by other machines, and the simulator takes any key. Listen on 127.0.0.1, or give --insecure as well.", f.Listen)})
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		problems = append(problems, config.Problem{Where: "--tls-cert", Message: "TLS needs both --tls-cert and --tls-key."})
	}
	if f.Speed != f.Speed || f.Speed < -1 || f.Speed > 1000 {
		problems = append(problems, config.Problem{Where: "--speed", Message: fmt.Sprintf("must be from -1 to 1000, not %v.", f.Speed)})
	}
	if f.ChunkMS < 0 || f.ChunkMS > 10_000 {
		problems = append(problems, config.Problem{Where: "--chunk-ms", Message: fmt.Sprintf("must be from 0 to 10000, not %d.", f.ChunkMS)})
	}
	if f.FirstAudioMS < -1 || f.FirstAudioMS > 60_000 {
		problems = append(problems, config.Problem{Where: "--first-audio-ms", Message: fmt.Sprintf("must be from -1 to 60000, not %d.", f.FirstAudioMS)})
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// Run runs the simulator until a signal ends it.
func (f simFlags) Run(ctx context.Context, p Process) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	o, tlsConfig, err := f.read()
	if err != nil {
		return usage(err)
	}
	o.Logger = newLogger(p.Stderr, f.LogLevel, f.LogFormat)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("cannot serve on %s: %w; choose another address with --listen", f.Listen, err)
	}
	scheme := "http"
	if tlsConfig != nil {
		scheme = "https"
		listener = tls.NewListener(listener, tlsConfig)
	}
	_ = p.print(sim.Addresses(scheme, reachable(listener.Addr()))) // it serves anyway
	return p.simulate(ctx, listener, sim.New(o), o.Logger)
}

// read reads the files that the flags name.
func (f simFlags) read() (sim.Options, *tls.Config, error) {
	var contents [2][]byte
	for i, path := range []string{f.Scenario, f.Faults} {
		if path == "" {
			continue
		}
		var err error
		if contents[i], err = os.ReadFile(path); err != nil {
			return sim.Options{}, nil, err
		}
	}
	o, err := simOptions(f.Scenario, contents[0], f.Faults, contents[1])
	if err != nil {
		return o, nil, err
	}
	o.Seed, o.Speed, o.ChunkMS, o.FirstAudioMS = f.Seed, f.Speed, f.ChunkMS, f.FirstAudioMS
	if f.TLSCert == "" {
		return o, nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return o, nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	// WebSocket needs HTTP/1.1: the handshake must not choose HTTP/2.
	return o, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// simulate serves until ctx ends, a signal comes or the listener fails.
func (p Process) simulate(ctx context.Context, listener net.Listener, server *sim.Server, logger *slog.Logger) error {
	h := &http.Server{Handler: server, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	// From the serving goroutine to this one; never closed.
	failed := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- h.Serve(listener) })
	var err error
	select {
	case <-ctx.Done():
	case <-p.Signals:
	case err = <-failed:
		err = fmt.Errorf("the simulator has stopped: %w", err)
	}
	return errors.Join(err, p.end(logger, closeTime, []part{
		{"the HTTP server", h.Close},
		{"the simulator", server.Close},
		{"serving", func() error { serving.Wait(); return nil }},
	}))
}

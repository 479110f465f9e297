package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/logging"
	"voicegw/internal/process"
	"voicegw/internal/server"
	"voicegw/sim"
)

type simFlags struct {
	Run   simRunFlags   `cmd:"" default:"withargs" help:"Simulate the providers (default; see help sim run)."`
	Phone simPhoneFlags `cmd:"" help:"Simulate a phone carrier: call a gateway's number, or answer its call."`
}

type simRunFlags struct {
	Listen         string         `help:"Address to serve on; port 0 takes a free one." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	Insecure       bool           `help:"Allow an address that other machines can reach."`
	Scenario       string         `key:"sim.scenario" help:"YAML file with the model's behaviour." placeholder:"FILE"`
	Faults         string         `key:"sim.faults" help:"YAML file with faults." placeholder:"FILE"`
	Seed           uint64         `help:"Random seed." default:"0" placeholder:"N"`
	TLSCert        string         `help:"Certificate file (PEM), to serve over TLS." placeholder:"FILE" name:"tls-cert"`
	TLSKey         string         `help:"Key file of the certificate (PEM)." placeholder:"FILE" name:"tls-key"`
	Speed          float64        `key:"sim.speed" help:"Speech per second, in s; 0: as the provider, -1: all at once." placeholder:"N"`
	ChunkMS        int            `key:"sim.chunk_ms" help:"Length of an audio chunk in ms; 0: as the provider." placeholder:"MS"`
	FirstAudioMS   int            `key:"sim.first_audio_ms" help:"Time to first audio; 0: as the provider, -1: never." placeholder:"MS"`
	Fault          []string       `help:"A fault like \"at: turn, n: 2, do: deaf\", or a name for every setup; repeatable." sep:"none"`
	ConnectionLife time.Duration  `help:"Age at which connections end; 0: as the provider, -1s: never." placeholder:"TIME"`
	GoAwayAfter    time.Duration  `help:"Age at which Gemini announces the end; 0: as the model, -1s: never." placeholder:"TIME"`
	GoAwayLeft     *time.Duration `help:"Time from announcement to end (default: 50s, at most a quarter of the life)." placeholder:"TIME"`
	LogLevel       string         `help:"Minimum log level: debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	LogFormat      string         `help:"Log format: auto, text or json." default:"auto" enum:"auto,text,json"`
}

func (f simRunFlags) config(parsed *kong.Context) (config.Sim, error) {
	// This command ignores the gateway's file and environment.
	cfg, _, err := Process{}.load(configFlags{}, false, parsed)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return config.Sim{}, err
	}
	if text := config.CheckListen(f.Listen); text != "" {
		problems.Add("--listen", "listen %s", text)
	} else if !config.Loopback(f.Listen) && !f.Insecure {
		problems.Add("--listen", "other machines can reach %s, and the simulator accepts any key. Listen on 127.0.0.1, or add "+
			"--insecure.", f.Listen)
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		problems.Add("--tls-cert", "TLS needs both --tls-cert and --tls-key.")
	}
	f.checkLives(&problems)
	if len(problems) > 0 {
		return config.Sim{}, problems
	}
	return cfg.Sim, nil
}

const longestLife = 24 * time.Hour

func (f simRunFlags) checkLives(problems *config.Problems) {
	lives := []time.Duration{f.ConnectionLife, f.GoAwayAfter}
	for i, flag := range []string{"--connection-life", "--go-away-after"} {
		if d := lives[i]; d > longestLife || d < 0 && d != -time.Second {
			problems.Add(flag, "must be from 0s to 24h, or -1s, not %s.", d)
		}
	}
	if f.GoAwayLeft != nil && (*f.GoAwayLeft < 0 || *f.GoAwayLeft > longestLife) {
		problems.Add("--go-away-left", "must be from 0s to 24h, not %s.", *f.GoAwayLeft)
	}
}

func (f simRunFlags) Run(ctx callerContext, p Process, parsed *kong.Context) error {
	cfg, err := f.config(parsed)
	if err != nil {
		return usage(err)
	}
	o, err := server.SimOptions(cfg)
	if err == nil {
		err = f.misbehave(&o)
	}
	if err != nil {
		return usage(err)
	}
	tlsConfig, err := f.tls()
	if err != nil {
		return usage(err)
	}
	o.Seed, o.Logger = f.Seed, logging.Open(p.Stderr, f.LogLevel, f.LogFormat).Logger
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("cannot serve on %s: %w; choose another address with --listen", f.Listen, err)
	}
	scheme := "http"
	if tlsConfig != nil {
		scheme = "https"
		listener = tls.NewListener(listener, tlsConfig)
	}
	_ = p.print(sim.Addresses(scheme, server.Reachable(listener.Addr()))) // it serves anyway
	return p.simulate(ctx, listener, sim.New(o), o.Logger)
}

func (f simRunFlags) misbehave(o *sim.Options) error {
	for _, text := range f.Fault {
		faults, err := o.Faults.Add("--fault", text)
		if err != nil {
			return err
		}
		o.Faults = faults
	}
	o.ConnectionLife, o.GoAwayAfter = f.ConnectionLife, f.GoAwayAfter
	if f.GoAwayLeft != nil {
		if o.GoAwayLeft = *f.GoAwayLeft; o.GoAwayLeft == 0 {
			o.GoAwayLeft = -1
		}
	}
	return nil
}

// tls returns the TLS configuration; nil without a certificate.
func (f simRunFlags) tls() (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	// WebSocket requires HTTP/1.1, so HTTP/2 must not be negotiated.
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// simulate serves until ctx ends, a signal comes or the listener fails.
func (p Process) simulate(ctx context.Context, listener net.Listener, simulator *sim.Server, logger *slog.Logger) error {
	h := server.NewHTTP(simulator, logger)
	// From the serving goroutine to this one; never closed.
	failed := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- h.Serve(listener) })
	var err error
	select {
	case <-ctx.Done():
	case <-p.Signals:
	case err = <-failed:
		err = fmt.Errorf("the simulator stopped: %w", err)
	}
	return errors.Join(err, process.End(p.Signals, logger, server.CloseTime,
		process.Part{Name: "the HTTP server", End: h.Close},
		process.Part{Name: "the simulator", End: simulator.Close},
		process.Part{Name: "serving", End: func() error { serving.Wait(); return nil }},
	))
}

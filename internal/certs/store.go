// Package certs provides a server's TLS certificates, from files that may change at run time or ordered by ACME (RFC
// 8555).
package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/process"
)

// Options configure a Store.
type Options struct {
	// Files are certificates in files.
	Files []Pair
	// ACME orders certificates; may be nil.
	ACME *ACME
	// Logger logs changes and failures; may be nil.
	Logger *slog.Logger
}

// Store holds certificates. It may be used concurrently.
type Store struct {
	// Immutable.
	opts   Options
	orders map[string]*order // of ACME, by host
	acme   *manager          // nil without ACME

	files atomic.Pointer[files]
}

// Open reads the files and checks all options. The error is Problems. It orders nothing; Run does.
func Open(opts Options) (*Store, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Store{opts: opts}
	read, err := readFiles(opts.Files, time.Now())
	problems, _ := errors.AsType[Problems](err)
	s.files.Store(read)
	if opts.ACME != nil {
		problems = append(problems, opts.ACME.check()...)
		s.acme, s.orders = newManager(*opts.ACME, opts.Logger)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	s.tell("certificates loaded")
	return s, nil
}

// Config returns a TLS 1.2 and 1.3 configuration with these certificates, HTTP/2 and HTTP/1.1. The caller may change it.
func (s *Store) Config() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.certificate,
		// Otherwise a client's first data is split into many small records, each with a system call.
		DynamicRecordSizingDisabled: true,
	}
	if s.acme != nil {
		c.NextProtos = append(c.NextProtos, protocolACME)
	}
	return c
}

// certificate returns the certificate for a handshake. Files have precedence.
func (s *Store) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := normal(hello.ServerName)
	if s.acme != nil && slices.Equal(hello.SupportedProtos, []string{protocolACME}) {
		return s.acme.certs.GetCertificate(hello) //nolint:wrapcheck // crypto/tls wraps it
	}
	read := s.files.Load()
	if o := s.orders[name]; o != nil && len(read.of(name)) == 0 {
		return o.wait(hello.Context())
	}
	if c := read.pick(hello); c != nil {
		return c, nil
	}
	if name == "" && s.acme != nil {
		return s.orders[normal(s.opts.ACME.Hosts[0])].wait(hello.Context())
	}
	return nil, fmt.Errorf("certs: no certificate for %q", hello.ServerName)
}

// Reload reads all files again. On any problem all certificates stay as they were, and the error is Problems.
func (s *Store) Reload() error {
	take, err := s.Read()
	if err != nil {
		s.opts.Logger.Error("cannot load certificates, keeping the previous ones", "error", err)
		return err
	}
	take()
	return nil
}

// Read reads all files again without using them until take is called. The error is Problems.
func (s *Store) Read() (take func(), err error) {
	read, err := readFiles(s.opts.Files, time.Now())
	if err != nil {
		return nil, err
	}
	return func() {
		if before := s.files.Swap(read); !bytes.Equal(read.bytes, before.bytes) {
			s.tell("certificates changed")
		}
	}, nil
}

func (s *Store) tell(what string) {
	ends := s.files.Load().ends()
	for _, host := range slices.Sorted(maps.Keys(ends)) {
		s.opts.Logger.Info(what, "host", host, "expires", ends[host].UTC())
	}
}

func (f *files) ends() map[string]time.Time {
	all := map[string]time.Time{}
	for name, list := range f.byName {
		for _, c := range list {
			if end, known := all[name]; !known || c.Leaf.NotAfter.Before(end) {
				all[name] = c.Leaf.NotAfter
			}
		}
	}
	return all
}

// Expiry returns the earliest expiry for each host. Hosts without a certificate are left out. s may be nil.
func (s *Store) Expiry() map[string]time.Time {
	if s == nil {
		return nil
	}
	all := s.files.Load().ends()
	for host, o := range s.orders {
		if end := o.expires(); !end.IsZero() {
			if _, file := all[host]; !file {
				all[host] = end
			}
		}
	}
	return all
}

// Hosts returns the certificates' host names, including those to be ordered, sorted.
func (s *Store) Hosts() []string {
	all := slices.Collect(maps.Keys(s.files.Load().byName))
	for host := range s.orders {
		all = append(all, host)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Run orders and renews certificates, and reloads changed files, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	var each sync.WaitGroup
	if s.acme != nil {
		context.AfterFunc(ctx, func() { s.acme.end(context.Cause(ctx)) })
	}
	for _, o := range s.orders {
		each.Go(func() { o.run(ctx) })
	}
	var names []string
	for _, p := range s.opts.Files {
		names = append(names, p.Cert, p.Key)
	}
	if len(names) > 0 {
		each.Go(func() {
			process.Run(ctx, process.Options{
				What: "certificates", Logger: s.opts.Logger, Files: func() []string { return names },
				Look: func() { _ = s.Reload() }, // logged
			})
		})
	}
	each.Wait()
}

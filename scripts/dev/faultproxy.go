package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"voicegw/internal/testutil"
)

// faultProxy runs a proxy of package internal/testutil for tests not written in Go, such as browser tests. It prints
// the addresses of the proxy and of its control as a line of JSON, and ends with in or ctx.
//
//	go run ./scripts/dev faultproxy -target 127.0.0.1:8080
//	{"proxy":"127.0.0.1:41234","control":"http://127.0.0.1:41235/"}
//	curl -d '{"do":"freeze","for_ms":3000}' http://127.0.0.1:41235/
func faultProxy(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	set := flag.NewFlagSet("faultproxy", flag.ContinueOnError)
	target := set.String("target", "", "host:port that connections are passed on to")
	listen := set.String("listen", "127.0.0.1:0", "address of the proxy")
	control := set.String("control", "127.0.0.1:0", "address of its control")
	if err := set.Parse(args); err != nil {
		return err
	}
	return serveProxy(ctx, *target, *listen, *control, in, out)
}

// serveProxy serves until ctx or in ends.
func serveProxy(ctx context.Context, target, listen, control string, in io.Reader, out io.Writer) error {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return fmt.Errorf("-target %q: give host:port, such as 127.0.0.1:8080", target)
	}
	for _, addr := range []string{listen, control} {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is not a loopback address; give 127.0.0.1 and a port", addr)
		}
	}
	p, err := testutil.Listen(listen, target)
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", control)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	srv := &http.Server{Handler: p.Control(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1) // from the serving goroutine; never closed
	go func() { failed <- srv.Serve(ln) }()
	ended := make(chan struct{})
	go func() { // ends with the input, or with the process
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	err = json.NewEncoder(out).Encode(map[string]string{"proxy": p.Addr(), "control": "http://" + ln.Addr().String() + "/"})
	if err == nil {
		select {
		case <-ctx.Done():
		case <-ended:
		}
	}
	err = errors.Join(err, srv.Close(), p.Close())
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/bounded"
)

// operatorFlags are those of commands that ask a running gateway.
type operatorFlags struct {
	URL     string   `help:"Address of the gateway; that of the configuration's listen without." placeholder:"URL" name:"url"`
	APIKey  string   `key:"api_key" help:"The gateway's api_key. Others on this machine can see a flag: better leave it to VOICEGW_API_KEY or the configuration." placeholder:"KEY" name:"api-key"`
	DataDir string   `key:"data_dir" help:"The gateway's data folder, in which the key is that it has made itself." placeholder:"DIR"`
	Config  string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set     []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

const (
	// operatorTime bounds one question to a gateway.
	operatorTime = 15 * time.Second
)

// gatewayLimits bound what a gateway may answer.
var gatewayLimits = bounded.Limits{
	Service: "the gateway", Format: bounded.JSON, Bytes: 16 << 20, Idle: operatorTime, Whole: operatorTime,
}

// operator asks a running gateway's endpoints for operators.
type operator struct {
	base   string // without a slash at its end
	key    string
	client *http.Client
}

// operator reads where the gateway is and how to ask it. Where it cannot, it returns nil
// and the exit code.
func (p Process) operator(flags operatorFlags, parsed *kong.Context) (*operator, int) {
	source := config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config", Client: true}
	cfg, _, err := p.loadFrom(source, flags.Set, parsed)
	if err != nil {
		p.complainAll(err)
		return nil, exitUsage
	}
	base, err := operatorURL(flags.URL, cfg.Listen)
	if err != nil {
		p.complain("%v", err)
		return nil, exitUsage
	}
	key := cfg.APIKey
	if !key.IsSet() {
		if key, err = p.localKey(base, cfg); err != nil {
			p.complain("%v", err)
			return nil, exitFailure
		}
	}
	return &operator{base: base, key: key.Reveal(), client: operatorClient()}, exitOK
}

func operatorClient() *http.Client {
	// Redirects are not followed: the key is for this address and no other.
	c := bounded.Unfollowed(bounded.Wrap(bounded.NewTransport(), gatewayLimits))
	c.Timeout = operatorTime
	return c
}

// operatorURL is the base URL of a gateway: given, also as the one that talk takes, or
// that of the address that it listens on.
func operatorURL(given, listen string) (string, error) {
	if given == "" {
		host, port, err := net.SplitHostPort(listen)
		switch {
		case err != nil:
			return "", fmt.Errorf("listen: %w", err)
		case port == "0":
			return "", errors.New("listen has port 0, which says nothing of where the gateway is; name it with --url")
		}
		switch host {
		case "", "0.0.0.0":
			host = "127.0.0.1"
		case "::":
			host = "::1"
		}
		return "http://" + net.JoinHostPort(host, port), nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--url must be a URL such as http://127.0.0.1:8080, without a user, a query or a fragment")
	}
	switch u.Scheme {
	case "http", "https":
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	default:
		return "", errors.New("--url must begin with http:// or https://")
	}
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1/voice"), nil
}

// refusedError is what a gateway answered instead of what it was asked for.
type refusedError struct {
	base    string
	status  int
	code    string
	message string
}

// Error returns the gateway's words, and what to do where they are about a key.
func (e *refusedError) Error() string {
	text := fmt.Sprintf("the gateway at %s answers %d: %s", e.base, e.status, quoteOdd(e.message))
	if e.status == http.StatusUnauthorized {
		text += " Give it with VOICEGW_API_KEY, or with the gateway's own configuration (--config). One that the gateway has made itself is read from its data folder (--data-dir), on its own machine and by its own user."
	}
	return text
}

// ask sends one request and reads the answer into out, which may be nil. The error may
// be a *refusedError.
func (o *operator) ask(ctx context.Context, method, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, o.base+path, nil)
	if err != nil {
		return err
	}
	if o.key != "" {
		req.Header.Set("Authorization", "Bearer "+o.key)
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return o.unreachable(err)
	}
	// It was only read.
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return o.unreachable(err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		var problem struct {
			Error struct{ Code, Message string }
		}
		if json.Unmarshal(body, &problem) != nil || problem.Error.Code == "" {
			return o.stranger(resp)
		}
		if problem.Error.Code == "not_found" {
			return fmt.Errorf("the gateway at %s has no endpoint %s: it is older than this program, or has no store", o.base, path)
		}
		return &refusedError{o.base, resp.StatusCode, problem.Error.Code, problem.Error.Message}
	}
	if out == nil {
		return nil
	}
	if json.Unmarshal(body, out) != nil {
		return o.stranger(resp)
	}
	return nil
}

func (o *operator) unreachable(err error) error {
	var ue *url.Error // it repeats the URL
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no gateway answers at %s; start one with voicegw serve, or say with --url where it is", o.base)
	}
	return fmt.Errorf("the gateway at %s cannot be asked: %w; say with --url where it is", o.base, err)
}

func (o *operator) stranger(resp *http.Response) error {
	return fmt.Errorf("what answers at %s is no voicegw gateway (%s); say with --url where it is", o.base, resp.Status)
}

// close ends the connections.
func (o *operator) close() { o.client.CloseIdleConnections() }

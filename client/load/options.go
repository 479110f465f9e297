package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/client/load/caller"
	"voicegw/client/voice"
)

// Options describe a run.
type Options struct {
	// URL is the gateway's voice endpoint.
	URL string
	// Anywhere allows a gateway on another machine.
	Anywhere bool
	Plan     ScheduleOptions
	// Wait is the longest wait for the gateway's /readyz; zero skips the check.
	Wait time.Duration
	// Warmup is the length of an unmeasured run before the run; zero means none.
	Warmup time.Duration

	// Script has the turns, ScriptFile its origin, ScriptDir its recordings.
	Script     *caller.Script
	ScriptFile string
	ScriptDir  string
	// Audio lists WAV files and folders of them, spoken where the script does not care. Without any, the built-in
	// voice speaks.
	Audio []string

	// Provider overrides the script's provider, then the gateway's default.
	Provider string
	// ProviderDelay is the provider's known delay before it speaks; zero if unknown.
	ProviderDelay time.Duration
	// InputRate and OutputRate are in Hz; zero means 16000 and 24000.
	InputRate, OutputRate int
	// Frame is the audio in each sent frame, 10 to 200 ms; zero means 20 ms.
	Frame time.Duration
	// Drop, Reload and Roam are the intervals at which each caller loses its connection in that manner; zero means
	// never. Away is the least outage after Drop and Reload.
	Drop, Reload, Roam, Away time.Duration
	// ConnectTime bounds a connection attempt, and the session's start after it; zero means 20 s.
	ConnectTime time.Duration
	// APIKey is needed by scripts that begin with a ticket, and by gateways that require a key.
	APIKey string

	// PID is the gateway's process on this machine, to measure its resources; zero means none.
	PID int
	// Debug is the address of its --debug-listen, such as http://127.0.0.1:6060; may be empty.
	Debug string

	// Audit is the gateway's audit file, compared with the calls that callers saw; may be empty.
	Audit string

	// Program is the program's name and version in the report.
	Program string
	// Progress, if set, is called every second on the goroutine of Run, also during waits.
	Progress func(Status)
	// Dial replaces the network in tests.
	Dial func(ctx context.Context, url string) (voice.Conn, error)
}

// ErrOptions is wrapped by errors about Options.
var ErrOptions = errors.New("invalid options")

const (
	defaultInputRate   = 16000
	defaultOutputRate  = 24000
	defaultFrame       = 20 * time.Millisecond
	defaultConnectTime = 20 * time.Second
	minEvery           = time.Second // between lost connections
	minFrame           = 10 * time.Millisecond
	maxFrame           = 200 * time.Millisecond
)

func (o Options) withDefaults() (Options, error) {
	if err := checkURL(o.URL, o.Anywhere); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	o.InputRate = cmp.Or(o.InputRate, defaultInputRate)
	o.OutputRate = cmp.Or(o.OutputRate, defaultOutputRate)
	o.Frame = cmp.Or(o.Frame, defaultFrame)
	o.ConnectTime = cmp.Or(o.ConnectTime, defaultConnectTime)
	if err := voice.CheckRates(o.InputRate, o.OutputRate); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	switch {
	case o.Script == nil:
		return o, fmt.Errorf("%w: no script", ErrOptions)
	case o.Frame < minFrame || o.Frame > maxFrame || o.Frame%time.Millisecond != 0 || o.InputRate*int(o.Frame/time.Millisecond)%1000 != 0:
		return o, fmt.Errorf("%w: a frame of %s does not fit %d Hz: give whole ms from %s to %s that make whole samples",
			ErrOptions, o.Frame, o.InputRate, minFrame, maxFrame)
	case o.ProviderDelay < 0 || o.ConnectTime < 0 || o.Warmup < 0 || o.Wait < 0:
		return o, fmt.Errorf("%w: a time is negative", ErrOptions)
	case o.Warmup > MaxDuration:
		return o, fmt.Errorf("%w: the warm-up must last at most %s", ErrOptions, MaxDuration)
	}
	return o, o.checkOutages()
}

// checkOutages rejects connections that are lost too often or for too long.
func (o Options) checkOutages() error {
	switch {
	case o.Away < 0 || o.Away > MaxDuration:
		return fmt.Errorf("%w: the time without a connection must be from 0 to %s", ErrOptions, MaxDuration)
	case tooOften(o.Drop) || tooOften(o.Reload) || tooOften(o.Roam):
		return fmt.Errorf("%w: the time between lost connections must be at least %s", ErrOptions, minEvery)
	}
	return nil
}

// tooOften reports whether a time between lost connections is too short. Zero means that none is lost.
func tooOften(every time.Duration) bool { return every != 0 && every < minEvery }

func (o Options) outages() []voice.Outage {
	var list []voice.Outage
	for act, every := range map[voice.Act]time.Duration{voice.Drop: o.Drop, voice.Reload: o.Reload, voice.Roam: o.Roam} {
		if every > 0 {
			list = append(list, voice.Outage{Act: act, Every: every, Away: o.Away})
		}
	}
	slices.SortFunc(list, func(a, b voice.Outage) int { return strings.Compare(string(a.Act), string(b.Act)) })
	return list
}

// checkURL rejects an invalid address, and one on another machine unless allowed: a misdirected load generator is an
// attack.
func checkURL(address string, anywhere bool) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("invalid address: %w", err)
	}
	if !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) || u.Host == "" {
		return fmt.Errorf("the address %q is not a voice endpoint; write it like ws://127.0.0.1:8080/v1/voice", address)
	}
	if u.User != nil {
		return errors.New("the address has a password; gateways don't use it, and reports would show it")
	}
	if anywhere || loopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is not this machine; if you are allowed to load it, add --yes-really", u.Host)
}

// loopback reports whether a host is this machine, without a DNS query.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

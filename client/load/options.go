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
	"voicegw/protocol"
)

// Options describe a run.
type Options struct {
	// URL is the gateway's voice endpoint.
	URL string
	// Anywhere allows one that is not on this machine.
	Anywhere bool
	// Plan is the schedule.
	Plan ScheduleOptions
	// Wait is how long to wait for the gateway's /readyz first; zero does not look.
	Wait time.Duration
	// Warmup is a run before the run, whose figures do not count; zero means that there is no such run.
	Warmup time.Duration

	// Script is what is said, ScriptFile where it comes from; recordings that it names are
	// looked for in ScriptDir.
	Script     *caller.Script
	ScriptFile string
	ScriptDir  string
	// Audio are WAV files, and folders of them, that are spoken where the script does not
	// care. Without any the built-in voice speaks.
	Audio []string

	// Provider is asked for; empty leaves it to the script, and then to the gateway.
	Provider string
	// ProviderDelay is how long the provider is known to wait before it speaks; zero if that
	// is not known.
	ProviderDelay time.Duration
	// InputRate and OutputRate are in Hz; zero means 16000 and 24000.
	InputRate, OutputRate int
	// Frame is how much audio one frame sent has, 10 to 200 ms; zero means 20 ms.
	Frame time.Duration
	// Drop, Reload and Roam are how often each caller loses its connection in that way; zero is never.
	// Away is how long it stays without one at least, after Drop and Reload.
	Drop, Reload, Roam, Away time.Duration
	// ConnectTime is how long a connection, and a session after it, may take; zero means 20 s.
	ConnectTime time.Duration
	// APIKey is a key of the gateway, for scripts that begin with a ticket, and for all where it lets
	// nobody in without one.
	APIKey string

	// PID is the gateway's process on this machine, to see what it takes; zero looks at none.
	PID int
	// Debug is the address of its --debug-listen, such as http://127.0.0.1:6060; empty for
	// none.
	Debug string

	// Audit is the gateway's audit file, to look for what the callers saw; empty means that it is not looked at.
	Audit string

	// Program names and versions the program in the report.
	Program string
	// Progress, if set, is called every second from the goroutine that called Run, also while
	// the gateway is given time to come to rest.
	Progress func(Status)
	// Dial replaces the network, for tests; nil is the network.
	Dial func(ctx context.Context, url string) (voice.Conn, error)
}

// ErrOptions is wrapped by what is wrong with Options.
var ErrOptions = errors.New("the run cannot be made")

const (
	defaultInputRate   = 16000
	defaultOutputRate  = 24000
	defaultFrame       = 20 * time.Millisecond
	defaultConnectTime = 20 * time.Second
	minEvery           = time.Second // from one lost connection to the next
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
	switch {
	case o.Script == nil:
		return o, fmt.Errorf("%w: there is no script", ErrOptions)
	case !slices.Contains(protocol.InputRates(), o.InputRate):
		return o, fmt.Errorf("%w: the input rate must be one of %v Hz, not %d", ErrOptions, protocol.InputRates(), o.InputRate)
	case !slices.Contains(protocol.OutputRates(), o.OutputRate):
		return o, fmt.Errorf("%w: the output rate must be one of %v Hz, not %d", ErrOptions, protocol.OutputRates(), o.OutputRate)
	case o.Frame < minFrame || o.Frame > maxFrame || o.Frame%time.Millisecond != 0 || o.InputRate*int(o.Frame/time.Millisecond)%1000 != 0:
		return o, fmt.Errorf("%w: a frame of %s does not fit %d Hz: give whole ms from %s to %s that make whole samples", ErrOptions, o.Frame, o.InputRate, minFrame, maxFrame)
	case o.ProviderDelay < 0 || o.ConnectTime < 0 || o.Warmup < 0 || o.Wait < 0:
		return o, fmt.Errorf("%w: a time is negative", ErrOptions)
	case o.Warmup > MaxDuration:
		return o, fmt.Errorf("%w: the warm-up must last at most %s", ErrOptions, MaxDuration)
	}
	return o, o.checkOutages()
}

// checkOutages refuses connections that are lost too often, or for too long.
func (o Options) checkOutages() error {
	switch {
	case o.Away < 0 || o.Away > MaxDuration:
		return fmt.Errorf("%w: the time without a connection must be from 0 to %s", ErrOptions, MaxDuration)
	case tooOften(o.Drop) || tooOften(o.Reload) || tooOften(o.Roam):
		return fmt.Errorf("%w: a caller loses its connection every %s at most", ErrOptions, minEvery)
	}
	return nil
}

// tooOften reports whether a time between lost connections is too short. Zero means that none is lost.
func tooOften(every time.Duration) bool { return every != 0 && every < minEvery }

// outages are the lost connections that the options want.
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

// checkURL refuses an invalid address, and one of another machine unless that is
// meant: a load generator in the wrong place is an attack.
func checkURL(address string, anywhere bool) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	if !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) || u.Host == "" {
		return fmt.Errorf("the address %q is no voice endpoint; write it like ws://127.0.0.1:8080/v1/voice", address)
	}
	if u.User != nil {
		return errors.New("the address holds a password; a gateway takes none there, and reports would tell it")
	}
	if anywhere || loopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is not this machine; if you may load it, and it is yours to break, say so with --yes-really", u.Host)
}

// loopback says whether a host is this machine, without asking anybody.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

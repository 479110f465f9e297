package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/origin"
)

// Options describe a run. The flags of voicegw load fill them; zero values have defaults.
type Options struct {
	Wire     string `help:"Wire: voicegw, realtime (OpenAI's) or twilio (phones)." default:"voicegw" enum:"voicegw,realtime,twilio"`
	URL      string `help:"The wire's endpoint of the gateway (ws://127.0.0.1:8080/v1/voice)." placeholder:"URL"`
	Anywhere bool   `help:"Allow an address that is not this machine." name:"yes-really"`

	Plan   ScheduleOptions `embed:""`
	Wait   time.Duration   `help:"Maximum wait for the gateway to be ready." placeholder:"TIME"`
	Warmup time.Duration   `help:"Time to run before measuring." placeholder:"TIME"`

	Drop   time.Duration `help:"Interval for dropping each caller's connection without a close." placeholder:"TIME" name:"drop-every"`
	Reload time.Duration `help:"Interval for leaving like a reloaded page, without buffered audio." placeholder:"TIME" name:"reload-every"`
	Roam   time.Duration `help:"Interval for replacing each caller's open connection." placeholder:"TIME" name:"roam-every"`
	Away   time.Duration `help:"Time without a connection after --drop-every and --reload-every." placeholder:"TIME"`

	// ScriptFile is where Script comes from, ScriptDir the folder of its recordings.
	ScriptFile string `help:"Conversation file, or builtin:NAME: ${scripts}." default:"builtin:talk" placeholder:"FILE" name:"script"`

	Script    *Script `kong:"-"`
	ScriptDir string  `kong:"-"`

	Audio         []string      `help:"Speech for turns without audio (default: built-in voice); repeatable." placeholder:"FILE" sep:"none"`
	Provider      string        `help:"Provider to request (default: the gateway's)." placeholder:"NAME"`
	ProviderDelay time.Duration `help:"Known delay of the provider's first audio; the report subtracts it." placeholder:"TIME"`
	Frame         time.Duration `help:"Audio per frame, from 10ms to 200ms (20ms)." default:"20ms" placeholder:"TIME"`
	InputRate     int           `help:"Sample rate to send in Hz (16000; realtime 24000; twilio 8000)." placeholder:"HZ"`
	OutputRate    int           `help:"Sample rate to receive in Hz (24000; twilio 8000)." placeholder:"HZ"`

	ConnectTime time.Duration `help:"Time limit to connect and start a session (20s)." default:"20s" placeholder:"TIME" name:"timeout"`
	APIKey      string        `help:"API key, if required; prefer VOICEGW_API_KEY, since other users see flags." placeholder:"KEY"`

	Phone wire.CarrierOptions `embed:"" prefix:"phone-"`

	// DataDir is for the flag's command, which finds APIKey there.
	DataDir string `key:"data_dir" help:"Data folder of a gateway on this machine, to read the key that it generated." placeholder:"DIR"`

	PID   int    `help:"Process id of the gateway on this machine, to measure its CPU and memory (Linux)." placeholder:"N" name:"pid"`
	Debug string `help:"Its --debug-listen, such as http://127.0.0.1:6060, to measure its heap and goroutines." placeholder:"URL"`
	Audit string `help:"Its audit file, to check that it has the callers' tool calls." placeholder:"FILE"`

	// Program is the program's name and version in the report.
	Program string `kong:"-"`
	// Progress, if set, is called every second on the goroutine of Run, also during waits.
	Progress func(Status) `kong:"-"`
	// Dial replaces the network in tests.
	Dial func(ctx context.Context, url string) (voice.Conn, error) `kong:"-"`
}

// ErrOptions is wrapped by errors about Options.
var ErrOptions = errors.New("invalid options")

const (
	defaultFrame       = 20 * time.Millisecond
	defaultConnectTime = 20 * time.Second
	minEvery           = time.Second // between lost connections
	minFrame           = 10 * time.Millisecond
	maxFrame           = 200 * time.Millisecond
)

// Endpoint returns the wire's endpoint, which is URL unless it is empty. The error wraps ErrOptions.
func (o Options) Endpoint() (wire.Wire, string, error) {
	w, err := wire.Find(o.Wire)
	if err != nil {
		return w, "", fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return w, cmp.Or(o.URL, "ws://127.0.0.1:8080"+w.Path), nil
}

func (o Options) withDefaults() (Options, error) {
	w, address, err := o.Endpoint()
	if err != nil {
		return o, err
	}
	o.Wire, o.URL = w.Name, address
	o.Frame = cmp.Or(o.Frame, defaultFrame)
	o.ConnectTime = cmp.Or(o.ConnectTime, defaultConnectTime)
	if o.InputRate, o.OutputRate, err = w.Rates(o.InputRate, o.OutputRate); err == nil {
		err = cmp.Or(checkURL(o.URL, o.Anywhere), o.fits())
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, err
}

// fits rejects options out of range.
func (o Options) fits() error {
	switch {
	case o.Script == nil:
		return errors.New("no script")
	case o.Frame < minFrame || o.Frame > maxFrame || o.Frame%time.Millisecond != 0 || o.InputRate*int(o.Frame/time.Millisecond)%1000 != 0:
		return fmt.Errorf("a frame of %s does not fit %d Hz: give whole ms from %s to %s that make whole samples",
			o.Frame, o.InputRate, minFrame, maxFrame)
	case o.ProviderDelay < 0 || o.ConnectTime < 0 || o.Warmup < 0 || o.Wait < 0:
		return errors.New("a time is negative")
	case o.Warmup > MaxDuration:
		return fmt.Errorf("the warm-up must last at most %s", MaxDuration)
	case o.Away < 0 || o.Away > MaxDuration:
		return fmt.Errorf("the time without a connection must be from 0 to %s", MaxDuration)
	case slices.ContainsFunc(o.outages(), func(lost voice.Outage) bool { return lost.Every < minEvery }):
		return fmt.Errorf("the time between lost connections must be at least %s", minEvery)
	}
	return o.fitsWire()
}

// fitsWire rejects options without a meaning on the wire.
func (o Options) fitsWire() error {
	switch {
	case o.Wire == wire.NameTwilio && o.Frame != defaultFrame:
		return fmt.Errorf("a phone sends frames of %s, not %s", defaultFrame, o.Frame)
	case o.Wire == wire.NameTwilio && o.Provider != "":
		return errors.New("a phone cannot choose the provider")
	case o.Wire == wire.NameRealtime && o.Script.Agent != "" && cmp.Or(o.Provider, o.Script.Provider) != "":
		return fmt.Errorf("on the wire %s, the model is either an agent or a provider", o.Wire)
	case len(o.outages()) > 0 && o.Wire != wire.NameVoicegw:
		return fmt.Errorf("the wire %s cannot resume, so --drop-every, --reload-every and --roam-every need %s", o.Wire, wire.NameVoicegw)
	}
	return nil
}

func (o Options) outages() []voice.Outage {
	list := []voice.Outage{{Act: voice.Drop, Every: o.Drop}, {Act: voice.Reload, Every: o.Reload}, {Act: voice.Roam, Every: o.Roam}}
	for i := range list {
		list[i].Away = o.Away
	}
	return slices.DeleteFunc(list, func(lost voice.Outage) bool { return lost.Every == 0 })
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
	if host, err := origin.ParseHost(u.Host); anywhere || err == nil && host.Loopback() {
		return nil
	}
	return fmt.Errorf("%s is not this machine; if you are allowed to load it, add --yes-really", u.Host)
}

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/gateway"
	"voicegw/gateway/phone"
	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/checks"
	"voicegw/internal/logging"
	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/live"
	"voicegw/transport/openai"
	"voicegw/transport/textmodel"
)

// providers are the wires of every test.
var providers = []string{"gemini", "openai"}

// setting contains a stack's differences from the default.
type setting struct {
	scenario string // YAML; empty for the built-in one
	faults   string // YAML; may be empty
	key      string // the provider's key; empty for a valid one
	model    string // empty for the adapter's default
	limits   session.Limits
	policy   orchestrator.Policy
	checks   *checks.Set    // of the assistant's words; may be nil
	tools    *toolbox       // may be nil
	agents   session.Agents // nil for the default agent
	notice   string         // of the default agent
	speech   session.Speech // nil without exact sentences
	// text adds the text agent with tools; its model has its own simulator.
	text bool
	// chat is the address of the text agent's model if it is not a simulator.
	chat string
	// life is the time to answer an approval request; zero for the executor's default.
	life time.Duration
	// provider replaces the simulator.
	provider http.Handler
	// base is the address of a running provider; empty starts one in this process behind a tap.
	base string
	// lines gets the audit instead of stack.audit.
	lines io.WriteCloser
	// firstAudioMS, chunkMS, speed and playback are the simulator's.
	firstAudioMS int
	chunkMS      int
	speed        float64
	playback     float64
	// connectionLife is the age at which the simulator ends a connection; 0 is the provider's default.
	connectionLife time.Duration
	// goAwayAfter is the age at which a simulated Gemini announces a connection's end; 0 is the provider's default.
	goAwayAfter time.Duration
	// fallback is the wire of the provider that takes over if the first one is unreachable.
	fallback string
	// timed is for tests in a synctest bubble: the network is in memory.
	timed bool
	// phone adds phone calls, with the tickets of desk. Requests to the carrier go to carrier.
	phone   *phone.Settings
	desk    *phoneHandoffs
	carrier http.RoundTripper
}

// stack is a gateway with a simulated provider, over real sockets, or in memory with fake time.
type stack struct {
	url     string       // the gateway's
	client  *http.Client // reaches url
	manager *session.Manager
	tap     *tap // between the gateway and the provider; nil with setting.base
	log     *lockedBuffer
	audit   *journal // records of its tools
	tools   *toolbox // nil without tools, and for another process
	desk    *phoneHandoffs
}

// closeTimeout bounds the cleanup.
const closeTimeout = patience

// secret is a key that must not appear anywhere.
const secret = "sk-e2e-secret-0123456789"

// operatorsKey is the operators' key.
const operatorsKey = "e2e-operators-0123456789"

// patient removes the limits that a test does not set: delays of a busy machine are not the gateway's fault.
func (s *setting) patient() {
	s.limits.StartTimeout = cmp.Or(s.limits.StartTimeout, time.Minute)
	s.limits.ConnectTimeout = cmp.Or(s.limits.ConnectTimeout, time.Minute)
	s.limits.SlowClient = cmp.Or(s.limits.SlowClient, time.Minute)
	s.policy.NudgeAfter = cmp.Or(s.policy.NudgeAfter, time.Minute)
	s.policy.NoAnswerAfter = cmp.Or(s.policy.NoAnswerAfter, 2*time.Minute)
}

func newStack(t testing.TB, provider string, set setting) *stack {
	t.Helper()
	st := &stack{log: &lockedBuffer{}, audit: newJournal(), tools: set.tools, desk: set.desk}
	if set.base == "" {
		st.tap = newProvider(t, set)
		set.base = st.tap.url
	}
	if set.lines == nil {
		set.lines = st.audit
	}
	key := set.key
	if key == "" {
		key = secret
	}
	reach := http.DefaultClient
	if st.tap != nil {
		reach = st.tap.client
	}
	tr := newModel(t, provider, set.model, key, set.base, reach)
	log := st.log
	set.limits.ExemptLoopback = true
	set.patient()
	opts := session.Options{
		Transports: map[string]transport.Transport{provider: tr}, Provider: provider,
		Limits: set.limits, Policy: set.policy, Checks: set.checks, Agents: set.agents, Speech: set.speech,
		Logger: testutil.Logger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))),
	}
	opts.Agent.Notice = set.notice
	serve := gateway.Options{Auth: auth.Operators(operatorsKey)}
	if set.fallback != "" {
		opts.Fallback, opts.Transports[set.fallback] = set.fallback, newModel(t, set.fallback, "", key, set.base, reach)
	}
	testutil.Made(providerKey, key)
	testutil.Made(logging.OperatorsKey, operatorsKey)
	serve.Logger = opts.Logger
	records := audit.New(audit.Options{Lines: watchedLines{testutil.Watch(testutil.Audit, set.lines), set.lines}, Arguments: audit.ArgumentsFull, Logger: opts.Logger})
	if box := set.tools; box != nil {
		box.give(&opts, &serve, set.life)
		opts.Audit = records.Write
		if set.text {
			serve.Chat = newTextAgent(t, set, opts)
		}
	}
	if set.desk != nil {
		opts.Handoffs = set.desk
	}
	m, err := session.NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	serve.Sessions = m
	if set.phone != nil {
		serve.Phone = phone.New(phone.Options{Settings: *set.phone, Voice: set.desk, Refuses: m.Draining, Logger: opts.Logger,
			Client: &http.Client{Transport: set.carrier}})
	}
	srv, client := newServer(gateway.New(serve), set.timed)
	srv.Config.ConnContext = gateway.ConnContext
	srv.Listener = gateway.Listen(srv.Listener, gateway.NewLoops(opts.Logger))
	srv.Start()
	t.Cleanup(func() {
		if set.tools != nil && set.tools.release != nil {
			set.tools.release()
		}
		m.Close()
		if serve.Phone != nil {
			serve.Phone.Close(context.Background())
		}
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := records.Close(ctx); err != nil {
			t.Error("closing the audit:", err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	st.url, st.client, st.manager = srv.URL, client, m
	if set.timed {
		st.url = "http://localhost" // a name that the gateway accepts
	}
	return st
}

// watchedLines checks lines for secrets.
type watchedLines struct {
	io.Writer
	io.Closer
}

// newProvider starts the setting's provider behind a tap.
func newProvider(t testing.TB, set setting) *tap {
	t.Helper()
	if set.provider == nil {
		set.provider = newSim(t, set)
	}
	return newTap(t, set.provider, set.timed)
}

func newSim(t testing.TB, set setting) http.Handler {
	t.Helper()
	opts := sim.Options{Seed: 1, Speed: set.speed, FirstAudioMS: set.firstAudioMS, ChunkMS: set.chunkMS, PlaybackSpeed: set.playback, ConnectionLife: set.connectionLife, GoAwayAfter: set.goAwayAfter}
	var err error
	if set.scenario != "" {
		if opts.Scenario, err = scenario.Parse("scenario.yaml", []byte(set.scenario)); err != nil {
			t.Fatal(err)
		}
	}
	if set.faults != "" {
		if opts.Faults, err = scenario.ParseFaults("faults.yaml", []byte(set.faults)); err != nil {
			t.Fatal(err)
		}
	}
	s := sim.New(opts)
	t.Cleanup(func() {
		// Close waits ten seconds, the longest close of a connection with a silent peer.
		testutil.WaitUntil(t, "the simulator's connections have ended", func() bool { return s.Close() == nil })
	})
	return s
}

// newModel is the transport to a provider's model; an empty name means the adapter's default. A name with a project
// is Vertex's.
func newModel(t testing.TB, provider, model, key, base string, reach *http.Client) transport.Transport {
	t.Helper()
	return newModelOver(t, provider, model, key, base, nonblock.Client(reach, &nonblock.Loops{}))
}

// newModelOver is newModel with the adapter's client.
func newModelOver(t testing.TB, provider, model, key, base string, client *http.Client) transport.Transport {
	t.Helper()
	var tr transport.Transport
	var err error
	if strings.HasPrefix(model, "projects/") {
		base += "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"
	}
	switch provider {
	case "gemini":
		o := transport.Provider{APIKey: key, BaseURL: base, Model: model, HTTPClient: client}
		if strings.Contains(model, "translate") {
			o.Settings = map[string]string{"translate_to": "es"}
		}
		tr, err = gemini.New(o)
	case "live":
		return newLive(t, key, base, client)
	default:
		o := transport.Provider{APIKey: key, BaseURL: base + "/v1", Model: model, HTTPClient: client}
		if slices.Contains(localModels, strings.TrimSuffix(model, "-broken")) {
			o.APIKey, o.Settings = "", map[string]string{"dialect": openai.Local}
		}
		tr, err = openai.New(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// newLive returns a Live model with delegations to the same provider's text model.
func newLive(t testing.TB, key, base string, client *http.Client) transport.Transport {
	t.Helper()
	tr, err := liveModel(key, base, client)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func liveModel(key, base string, client *http.Client) (transport.Transport, error) {
	tr, err := live.New(transport.Provider{APIKey: key, BaseURL: base + "/v1", HTTPClient: client})
	if err != nil {
		return nil, err
	}
	text, err := textmodel.New(textmodel.Options{APIKey: key, BaseURL: base + "/v1", Model: "gpt-5.6-terra", HTTPClient: client})
	if err != nil {
		return nil, err
	}
	tr.UseText(text, "gpt-5.6-terra")
	return tr, nil
}

// lockedBuffer is a log for concurrent reading and writing.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

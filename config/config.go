// Package config is the configuration of the gateway: one struct, read from a YAML file, the environment and the
// command line, each overriding the previous one.
//
// Every setting has a key such as "limits.sessions", written nested in the file, as VOICEGW_LIMITS_SESSIONS in the
// environment and as --set limits.sessions=… on the command line. [Load] reports all problems at once, as [Problems].
// docs/configuration.md lists the keys; a test compares the two. [Wires] lists the protocols of providers.
//
// Only cmd/voicegw and internal/server import this package: other packages have options of their own. Package setting has
// the types of settings.
package config

import (
	"cmp"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/config/setting"
	"voicegw/gateway/phone"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
)

// Config holds all settings of the gateway. It doesn't change after Load.
//
// A field's key is its tag, joined with dots to the tags of the enclosing structs. It is the name in the file and, in
// capitals, in the environment. Other tags define the valid values: from and to are bounds, words are the allowed
// texts, is:"url" means a URL with http:// or https://, or empty, and needs are the settings of the section that this one
// needs. An agent's own budget may be 0.
//
// make docs writes docs/configuration.md and voicegw.example.yaml from the fields: the comment is the text, unset
// describes an empty default, and eg is an example.
type Config struct {
	// Address, `host:port`; port 0 picks a free one. Addresses that others can reach need [`auth`](#who-may-enter) or
	// `insecure`.
	Listen string `key:"listen"`
	// Allows such an address without `auth`.
	Insecure bool `key:"insecure"`
	// Allowed `Host` [names](#names-and-pages): `voice.example.com`, `*.example.com`, with or without a port. Flag
	// `--host`.
	Hosts []string `key:"hosts" eg:"[voice.example.com]"`
	// [Web pages](#names-and-pages) that may connect: `https://app.example.com`, `https://*.example.com`,
	// `http://localhost:*`. `*` needs `insecure`. Flag `--origin`.
	Origins []string `key:"origins" eg:"[https://app.example.com, 'https://*.example.com']"`
	// Addresses and networks of [proxies](#behind-a-proxy) in front.
	TrustedProxies []string `key:"trusted_proxies" eg:"[127.0.0.1, 10.0.0.0/8]"`
	// TLS with clients, with certificates from files or from an authority (ACME): docs/tls.md.
	TLS TLS `key:"tls"`
	// For tool authors: new sessions get the current `registry/tool_registry.json`.
	Dev bool `key:"dev"`
	// The [operators' key](#endpoints-for-operators), at least 16 characters; without it the gateway makes one.
	APIKey setting.Secret `key:"api_key" eg:"make-one-with-openssl-rand"`
	// Credentials: docs/authentication.md. With a key or an issuer, everyone needs some. Make a key with: voicegw keys
	// new --name backend --scopes voice,chat,tickets
	Auth Auth `key:"auth"`
	// [Data folder](data.md) of one gateway: by default `$XDG_STATE_HOME/voicegw` or `~/.local/state/voicegw`.
	DataDir setting.Path `key:"data_dir" unset:"the user's" eg:"/var/lib/voicegw"`
	// Time for sessions and text answers at a [shutdown](#shutdown).
	DrainTimeout time.Duration `key:"drain_timeout" from:"0s" to:"24h"`

	// Default provider. If `gemini` is not configured: `openai`, then the others by name.
	Provider string `key:"provider"`
	// Providers, with any names.
	Providers Providers `key:"providers"`
	// Provider used when a session's own is unreachable, at the start or in mid-call
	// ([details](providers.md#attempts)).
	Fallback string `key:"providers.fallback" eg:"openai"`
	// Files that replace the built-in prompts.
	Prompts Prompts `key:"prompts"`
	// The text agent's model, at any Chat Completions endpoint. By default the configured provider's, or the simulator.
	Chat Chat `key:"chat"`
	// The knowledge base: docs/knowledge.md.
	KB KB `key:"kb"`
	// Calendars: docs/calendar.md.
	Calendar Calendar `key:"calendar"`
	// Images: docs/images.md.
	Image Image `key:"image"`
	// Tool calls per turn: docs/policy.md.
	Budget Budgets `key:"budget"`
	// The default agent.
	Agent Agent `key:"agent"`
	// Other agents: docs/agents.md.
	Agents Agents `key:"agents"`
	// Feature flags for [availability](tools-reference.md#availability): `spring-sale` for all agents,
	// `spring-sale@desk` for one, `!spring-sale@desk` not for one.
	Features []string `key:"features" eg:"[spring-sale, beta-search@desk, '!spring-sale@billing']"`
	// Settings of tools, by id; voicegw tools describe lists them: docs/tools-reference.md.
	Tools Tools `key:"tools"`
	// Directories of tools that are [HTTP requests](http-tools.md) or [JavaScript](javascript-tools.md), as absolute paths.
	// Changed files apply to new sessions.
	ToolDirs []string `key:"tool_dirs" eg:"[/etc/voicegw/tools]"`
	// Tools over the Model Context Protocol: docs/mcp-tools.md, docs/mcp-server.md.
	MCP MCP `key:"mcp"`
	Safeguards
	// Phone calls: docs/phone.md.
	Phone Phone `key:"phone"`
	// The store: NATS servers, or without a URL files in data_dir.
	Store Store `key:"store"`
	// Several gateways with one store: docs/cluster.md.
	Cluster Cluster `key:"cluster"`
	Observation
	// The provider's speech detection.
	VAD VAD `key:"vad"`
	// Limits of clients. Money is in US dollars.
	Limits Limits `key:"limits"`
	// Prices of models: docs/cost.md.
	Prices Prices `key:"prices"`
	// Signed requests when sessions and jobs start or end: docs/webhooks.md.
	Webhooks Webhooks `key:"webhooks"`
	// The built-in simulator: docs/simulator.md.
	Sim Sim `key:"sim"`
	// The log.
	Log Log `key:"log"`

	wires []transport.Wire  // the wires that Providers may use
	where map[string]string // the file with its line, the variable or the flag that has set a setting, by key
}

// Metrics configures the metrics for Prometheus.
type Metrics struct {
	// Separate address for `GET /metrics` without a key; clients must not reach it.
	Listen string `key:"listen" eg:"127.0.0.1:9464"`
	// Adds native histograms (Prometheus 2.40 with a feature flag, or 3).
	Native bool `key:"native"`
}

// Traces configures the export to an OpenTelemetry collector over OTLP. Package traces reads OpenTelemetry's standard
// variables for missing settings.
type Traces struct {
	// Sends traces.
	Enabled bool `key:"enabled"`
	// Collector, `http(s)://host:port`; else the [environment's](traces.md#environment-variables),
	// `http://localhost:4318` or `:4317` (gRPC).
	Endpoint string `key:"endpoint" is:"url" unset:"this machine" eg:"https://collector.example.com:4318"`
	// `http` (protobuf), `grpc`, or `auto`: `OTEL_EXPORTER_OTLP_PROTOCOL`, else `http`.
	Protocol string `key:"protocol" words:"auto,http,grpc"`
	// Secret headers: `authorization=Bearer%20abc`, separated by commas.
	Headers setting.Secret `key:"headers" eg:"authorization=Bearer%20change-me"`
	// Share of ordinary turns kept, 0 to 1.
	Ratio float64 `key:"ratio" from:"0" to:"1"`
	// Answers slower than this are always kept, `10ms` to `1m`.
	Slow time.Duration `key:"slow" from:"10ms" to:"1m"`
	// Includes conversations, arguments and results.
	Content bool `key:"content"`
}

// The values of Traces.Protocol.
const (
	TracesAuto = "auto" // as in the variables, otherwise http
	TracesHTTP = "http"
	TracesGRPC = "grpc"
)

// Agent is the default agent.
type Agent struct {
	// Name for `session.start`.
	Name string `key:"name"`
	// Instruction for the opening; without it the user speaks first.
	Greeting string `key:"greeting" eg:"Greet the caller and ask how you can help."`
	// Role and purpose, after the prompts.
	Instructions string `key:"instructions" eg:"You work for a bicycle shop. Its name is Two Wheels."`
	// BCP 47 tag: `en-US`.
	Language string `key:"language" unset:"the model decides" eg:"en-US"`
	// The default agent's own budgets; 0 uses those of budget.
	Budget Budgets `key:"budget"`
}

// Agents locates the agents' documents.
type Agents struct {
	// Folder of other [agents](agents.md), `*.yaml`.
	Path setting.Path `key:"path" eg:"agents"`
	// Lets the text agent [edit agents](agents.md#by-tools).
	Tools bool `key:"tools"`
}

// Prompts are files that replace the built-in prompts.
type Prompts struct {
	// File with the rules for every mode.
	Core setting.File `key:"core" unset:"built in" eg:"my-core.md"`
	// File with the rules for voice.
	Voice setting.File `key:"voice" unset:"built in" eg:"my-voice.md"`
	// File with the rules for text.
	Text setting.File `key:"text" unset:"built in" eg:"my-text.md"`
}

// Chat is the text agent's model, at any Chat Completions endpoint.
type Chat struct {
	// Compatible endpoint with its `/v1`: `http://localhost:11434/v1`. Needs `chat.model`.
	BaseURL string `key:"base_url" is:"url" unset:"a provider's, or the simulator" eg:"https://api.openai.com/v1"`
	// Its key.
	APIKey setting.Secret `key:"api_key" eg:"your-key"`
	// Model: `gpt-5.6-terra` (newer ones take no tools over Chat Completions) or `gemini-3.8-flash` (2026-11-23).
	Model string `key:"model" unset:"the endpoint's usual" eg:"gpt-5.6-terra"`
	// `reasoning_effort`; by default `none` for `gpt-5.6`, which otherwise takes no tools.
	Reasoning string `key:"reasoning" unset:"what suits the model" eg:"none"`
	// Tokens of an answer; 0 is 2048.
	MaxOutput int `key:"max_output"`
	// Whether the model accepts images.
	Vision string `key:"vision" unset:"by the model's name" eg:"true"`
}

// Budgets limit the tools of a turn, by mode.
type Budgets struct {
	Voice Budget `key:"voice"`
	Text  Budget `key:"text"`
}

// Budget limits the tools of a turn.
type Budget struct {
	// Retrieval calls per voice turn.
	Retrieval int `key:"retrieval" from:"1" to:"1000"`
	// All tool calls per voice turn.
	Total int `key:"total" from:"1" to:"1000"`
	// Results of a retrieval call.
	TopK int `key:"top_k" from:"1" to:"1000"`
	// Expected tool time per turn, not a deadline. 0 is unlimited.
	ToolTime time.Duration `key:"tool_time" from:"0s" to:"10m"`
}

// Confirmation configures approvals.
type Confirmation struct {
	// How voice users approve: `button`, or `spoken` (also by saying so).
	Voice string `key:"voice" words:"button,spoken"`
	// How callers on the [phone](phone.md#approvals) approve: `keys` (1 or 2), or `none`.
	Phone string `key:"phone" words:"none,keys"`
	// Time to answer, `10s` to `1h`.
	Life time.Duration `key:"life" from:"10s" to:"1h"`
	// Tool ids that always need approval.
	Require []string `key:"require" eg:"[ignore_user]"`
	// Declined or expired confirmations of a tool per conversation; then [one per user
	// message](policy.md#how-often-a-user-is-asked). 1 to 100.
	QuestionsPerTool int `key:"questions_per_tool" from:"1" to:"100"`
	// Unapproved confirmations of a conversation. 1 to 100.
	Questions int `key:"questions" from:"1" to:"100"`
}

// Claims configures the checks of the assistant's claims of actions.
type Claims struct {
	// Languages in which [claims](policy.md#claims) are checked: `de`, `en`. `[]` checks nothing.
	Languages []string `key:"languages"`
}

// Exact configures sentences that are said in exactly the given words.
type Exact struct {
	// Notice at the start of each voice session, before all else; [agents](agents.md) may have their own.
	Notice string `key:"notice" eg:"This call is recorded."`
	// Without audio for a sentence: `model` (asked to read it word for word), or `refuse` (a session without its notice ends).
	Fallback string `key:"fallback" words:"model,refuse"`
	// Folder of recordings: WAV files up to a minute, each with its words in a `.txt` file of the same name.
	Recordings setting.Path `key:"recordings" eg:"recordings"`
	// Speech endpoint like OpenAI's, with its `/v1`.
	BaseURL string `key:"base_url" is:"url" unset:"an OpenAI provider's, or the simulator" eg:"https://api.openai.com/v1"`
	// Its key.
	APIKey setting.Secret `key:"api_key" unset:"the provider's" eg:"your-key"`
	// Its model.
	Model string `key:"model" unset:"gpt-4o-mini-tts" eg:"gpt-4o-mini-tts"`
	// Its voice.
	Voice string `key:"voice" unset:"alloy" eg:"marin"`
	// Format of its audio: `wav`, or `pcm` (16 bits, 24 kHz).
	Format string `key:"format" words:"wav,pcm"`
	// Time for its answer.
	Timeout time.Duration `key:"timeout" from:"1s" to:"15s"`
}

// RefuseUnsaid is the value of Exact.Fallback that does not let the model read a sentence.
const RefuseUnsaid = "refuse"

func (v validator) validateExact() {
	e := v.config.Exact
	v.baseURL("exact.base_url", e.BaseURL)
	if n := utf8.RuneCountInString(e.Notice); n > registry.MaxSentence {
		v.wrong("exact.notice", "has %d characters; the maximum is %d", n, registry.MaxSentence)
	}
	v.wrongIf(e.APIKey.IsSet() && e.BaseURL == "", "exact.base_url", "is missing; exact.api_key is sent to that address only")
}

// The values of Confirmation.Voice.
const (
	confirmButton = "button" // the client must send confirmation.resolve
	ConfirmSpoken = "spoken" // spoken approval is also accepted
)

// Store configures the persistent store.
type Store struct {
	// NATS servers with JetStream: `nats://host:4222` or `tls://host:4222`, separated by commas.
	URL string `key:"url" unset:"in this process" eg:"nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222"`
	// NATS credentials file.
	Credentials setting.Path `key:"credentials" eg:"voicegw.creds"`
	// Local store: `always` syncs each write; `interval` is faster but a power failure may lose a second.
	Sync string `key:"sync" words:"always,interval"`
	// Copies of each record; needs `store.url`.
	Replicas int `key:"replicas" from:"1" to:"5"`
}

// The values of Store.Sync.
const (
	syncAlways   = "always"   // after every write
	SyncInterval = "interval" // periodically: a power cut may lose the latest writes
)

// Audit configures the audit log of tools.
type Audit struct {
	// JSON Lines file: `audit/audit.jsonl` in `data_dir`. `-` is standard output.
	File setting.Path `key:"file" unset:"in data_dir" eg:"/var/log/voicegw/audit.jsonl"`
	// Arguments of calls: `none`, `redacted` (names and types) or `full` (up to 16 KiB).
	Arguments string `key:"arguments" words:"none,redacted,full"`
	// Size in MiB at which a new file starts.
	MaxMB int `key:"max_mb" from:"1" to:"100000"`
	// Full files kept.
	Keep int `key:"keep" from:"1" to:"10000"`
	// Age until they are removed.
	MaxAge time.Duration `key:"max_age" from:"1h" to:"87600h"`
}

// VAD configures the provider's speech detection, in ms of audio. Zero means the provider's default.
type VAD struct {
	// Silence in ms that ends the user's turn; 0 is the provider's default.
	SilenceMS int `key:"silence_ms" from:"0" to:"60000"`
	// Audio in ms included before detected speech; 0 is the provider's default. Gemini has no such setting.
	PrefixMS int `key:"prefix_ms" from:"0" to:"60000"`
	// Send the user's silence in frames of 100 ms, which saves CPU. Sound is never delayed.
	JoinSilence bool `key:"join_silence"`
}

// Limits limits clients.
type Limits struct {
	// Simultaneous sessions.
	Sessions int `key:"sessions" from:"1" to:"1000000"`
	// Of them per client address.
	SessionsPerAddress int `key:"sessions_per_address" from:"1" to:"1000000"`
	// New connections for sessions per second and address.
	NewPerSecond int `key:"new_per_second" from:"1" to:"1000000"`
	// Connections before `session.start`; beyond, the oldest of the busiest address is closed.
	Waiting int `key:"waiting" from:"1" to:"1000000"`
	// Of them per address.
	WaitingPerAddress int `key:"waiting_per_address" from:"1" to:"1000000"`
	// [Client tools](protocol.md#tools-that-the-client-runs) per session; `0` forbids them.
	ClientTools int `key:"client_tools" from:"0" to:"64"`
	// Other connections than voice sessions.
	Connections int `key:"connections" from:"10" to:"1000000"`
	// Of them per peer address, except `trusted_proxies`.
	ConnectionsPerAddress int `key:"connections_per_address" from:"10" to:"1000000"`
	// Simultaneous text turns.
	Turns int `key:"turns" from:"1" to:"100000"`
	// Of them per address, except requests with the operators' `api_key`.
	TurnsPerAddress int `key:"turns_per_address" from:"1" to:"100000"`
	// Of them per user.
	TurnsPerUser int `key:"turns_per_user" from:"1" to:"100000"`
	// New text turns per second, per address and per user.
	NewTurnsPerSecond int `key:"new_turns_per_second" from:"1" to:"100000"`
	// Exempts loopback addresses from limits per address, for load tests.
	ExemptLoopback bool `key:"exempt_loopback"`
	// Longest session.
	SessionLength time.Duration `key:"session_length" from:"1s" to:"24h"`
	// Ends sessions after this long without speech or text; 2 minutes after a working model's last report at the
	// earliest.
	Idle time.Duration `key:"idle" from:"1s" to:"24h"`
	// Audio a client may send ahead of real time; the excess is dropped with an error.
	AudioAhead time.Duration `key:"audio_ahead" from:"500ms" to:"1m"`
	// Disconnects clients that read nothing for this long.
	SlowClient time.Duration `key:"slow_client" from:"100ms" to:"1m"`
	// How long a session waits for its client to [resume](protocol.md#resuming); `0` disables resuming. Waiting
	// sessions count for `limits.sessions` and keep at most 192 MB together.
	ResumeGrace time.Duration `key:"resume_grace" from:"0s" to:"10m"`
	// Voice sessions of a user, over all gateways; `0` is unlimited, as below. See [cost.md](cost.md#limits).
	UserSessions int `key:"user_sessions" from:"0" to:"1000000"`
	// New voice sessions of a user per second, per gateway.
	UserNewPerSecond float64 `key:"user_new_per_second" from:"0" to:"1000000"`
	// US dollars of a user per day (UTC), voice and text.
	UserDayCost float64 `key:"user_day_cost" from:"0" to:"1000000"`
	// Voice minutes of a user per day (UTC).
	UserDayMinutes float64 `key:"user_day_minutes" from:"0" to:"100000"`
	// US dollars of a voice session.
	SessionCost float64 `key:"session_cost" from:"0" to:"1000000"`
	// Largest WebSocket message from a client; larger ones close with 1009. Audio frames have at most 500 ms.
	MessageBytes int `key:"message_bytes" from:"4096" to:"16777216"`
}

// Prices configures the price table.
type Prices struct {
	// [Your own prices](cost.md#prices-of-your-own) in YAML.
	File setting.Path `key:"file" eg:"prices.yaml"`
	// Daily budget of all gateways in US dollars, for the alert [VoicegwCostBurn](alerts.md#voicegwcostburn) only; 0
	// disables it.
	DayBudget float64 `key:"day_budget" from:"0" to:"1000000"`
}

// Sim is the built-in simulator.
type Sim struct {
	// `auto`: without providers; `always`; or `never`: refuse to start without a provider (for production).
	Use string `key:"use" words:"auto,always,never"`
	// Scenario file.
	Scenario setting.File `key:"scenario" unset:"built in" eg:"scenario.yaml"`
	// Fault script.
	Faults setting.File `key:"faults" eg:"faults.yaml"`
	// Random seed.
	Seed int `key:"seed" from:"0" to:"2147483647"`
	// Seconds of speech generated per second; 0 is the default, -1 all at once.
	Speed float64 `key:"speed"`
	// Audio chunks in ms; 0 is the wire's default.
	ChunkMS int `key:"chunk_ms" from:"0" to:"10000"`
	// Delay to the first audio in ms; 0 is the wire's default, -1 none.
	FirstAudioMS int `key:"first_audio_ms" from:"-1" to:"60000"`
	// Age at which connections end; 0 is the wire's.
	ConnectionLife time.Duration `key:"connection_life" from:"0s" to:"24h"`
}

// The values of Sim.Use.
const (
	useAuto   = "auto"   // for all providers while none is configured
	UseAlways = "always" // always, for all providers
	useNever  = "never"  // only start with a real provider
)

// Log configures the log.
type Log struct {
	// `debug`, `info`, `warn` or `error`. Transcripts appear at debug only, secrets never (`[redacted]`).
	Level string `key:"level" words:"debug,info,warn,error"`
	// `text`, `json`, or `auto`: text on a terminal, else JSON. Logs go to standard error.
	Format string `key:"format" words:"auto,text,json"`
}

// Safeguards are how users and the gateway keep the model from acting, or claiming to have acted, on its own.
type Safeguards struct {
	// How users approve actions of tools: docs/policy.md.
	Confirmation Confirmation `key:"confirmation"`
	// Checks of what the assistant says it has done.
	Claims Claims `key:"claims"`
	// Sentences said in exactly the given words: docs/exact.md.
	Exact Exact `key:"exact"`
	// Checks of what the assistant says, before the user gets it: docs/checks.md.
	Checks Checks `key:"checks"`
}

// Observation is how an operator observes the gateway, without a section of its own.
type Observation struct {
	// Metrics for Prometheus: docs/metrics.md.
	Metrics Metrics `key:"metrics"`
	// OpenTelemetry traces over OTLP: docs/traces.md.
	Traces Traces `key:"traces"`
	// The audit log of tool calls: docs/audit.md.
	Audit Audit `key:"audit"`
}

// Default returns the default configuration, with a provider named like each wire.
func Default() *Config { return defaultFor(Wires()) }

func defaultFor(all []transport.Wire) *Config {
	return &Config{
		wires: all,

		Listen:       "127.0.0.1:8080",
		DrainTimeout: 30 * time.Second,
		Webhooks:     Webhooks{},
		Auth:         Auth{Keys: map[string]*AuthKey{}, JWT: map[string]*AuthIssuer{}},
		Provider:     all[0].Name,
		Providers:    newProviders(all),
		Agent:        Agent{Name: setting.AgentName},
		KB:           KB{Language: "auto", Qdrant: Qdrant{Collection: "voicegw"}},
		VAD:          VAD{JoinSilence: true},
		Calendar:     Calendar{Backend: CalendarAuto, TimeZone: "UTC"},
		Image:        Image{Provider: ImageAuto, Life: setting.ImageLife, MaxCount: setting.Images, MaxMB: setting.ImageMB},
		Budget: Budgets{
			Voice: Budget{Retrieval: setting.VoiceRetrievals, Total: setting.VoiceCalls, TopK: setting.VoiceTopK,
				ToolTime: setting.VoiceToolTime},
			Text: Budget{Retrieval: setting.TextRetrievals, Total: setting.TextCalls, TopK: setting.TextTopK},
		},
		Phone: Phone{Sorry: "We cannot take your call right now. Please call again later.",
			Outbound: PhoneOutbound{Carrier: phone.Twilio, PerMinute: setting.PhoneCalls},
			Twilio:   PhoneTwilio{API: "https://api.twilio.com"}, Telnyx: PhoneTelnyx{API: "https://api.telnyx.com"},
			Vonage: PhoneVonage{API: "https://api.nexmo.com"}},
		Safeguards: Safeguards{
			Claims: Claims{Languages: []string{"de", "en"}},
			Confirmation: Confirmation{Voice: confirmButton, Phone: confirmNoKeys, Life: setting.QuestionLife,
				QuestionsPerTool: setting.QuestionsPerTool, Questions: setting.Questions},
			Exact:  Exact{Fallback: "model", Format: "wav", Timeout: setting.SpeechTimeout},
			Checks: Checks{Rules: CheckRules{}},
		},
		MCP:   MCP{Servers: MCPServers{}, PerMinute: setting.MCPCalls, Confirm: confirmAPI},
		Store: Store{Replicas: setting.Replicas, Sync: syncAlways},
		Observation: Observation{
			Traces: Traces{Protocol: TracesAuto, Ratio: 0.1, Slow: setting.SlowAnswer},
			Audit:  Audit{Arguments: "none", MaxMB: setting.AuditFileMB, Keep: setting.AuditFiles, MaxAge: setting.AuditAge},
		},
		Limits: Limits{
			Sessions: setting.Sessions, SessionsPerAddress: setting.SessionsPerAddress, NewPerSecond: setting.NewSessionsPerSecond,
			Waiting: setting.WaitingSessions, WaitingPerAddress: setting.WaitingPerAddress, ClientTools: setting.ClientTools,
			Connections: setting.Connections, ConnectionsPerAddress: setting.ConnectionsPerAddress,
			Turns: setting.Turns, TurnsPerAddress: setting.TurnsPerAddress, TurnsPerUser: setting.TurnsPerUser,
			NewTurnsPerSecond: setting.NewTurnsPerSecond, SessionLength: time.Hour, Idle: 5 * time.Minute,
			AudioAhead: setting.AudioAhead, SlowClient: setting.SlowClient, ResumeGrace: 30 * time.Second,
			MessageBytes: protocol.MaxMessageBytes,
		},
		Sim: Sim{Use: useAuto},
		Log: Log{Level: "info", Format: "auto"},
	}
}

// AgentBudget returns the agent's budget, with defaults from the common one.
func (c *Config) AgentBudget() Budgets {
	return Budgets{
		Voice: c.Agent.Budget.Voice.Or(c.Budget.Voice),
		Text:  c.Agent.Budget.Text.Or(c.Budget.Text),
	}
}

// Or returns the budget, with missing fields from common.
func (b Budget) Or(common Budget) Budget {
	return Budget{
		Retrieval: cmp.Or(b.Retrieval, common.Retrieval), Total: cmp.Or(b.Total, common.Total), TopK: cmp.Or(b.TopK, common.TopK),
		ToolTime: cmp.Or(b.ToolTime, common.ToolTime),
	}
}

// Loopback reports whether address, host:port, is reachable only from this machine. "localhost" is the only such
// name; an empty host means all addresses.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// KB configures the knowledge base of the retrieval tools.
type KB struct {
	// Folder of records (Markdown with front matter, JSON Lines), read again after changes. Built in: a demo.
	Path setting.Path `key:"path" unset:"built in" eg:"knowledge"`
	// Language of all records: `en`, `de`, `es`, `fr`, `it`, `pt` or `nl`; `auto` detects it per record.
	Language string `key:"language" words:"auto,en,de,es,fr,it,pt,nl"`
	// [Synonyms file](knowledge.md#synonyms).
	Synonyms   setting.Path `key:"synonyms" eg:"synonyms.txt"`
	Embeddings Embeddings   `key:"embeddings"`
	Qdrant     Qdrant       `key:"qdrant"`
	// Namespaces lists the readers of namespaces. Everyone may read Studio and Public unless they have grants. Personal
	// needs grants.
	Namespaces Namespaces `key:"namespaces"`
}

// Namespaces holds the grants of each namespace.
type Namespaces struct {
	Studio   Grant `key:"studio"`
	Personal Grant `key:"personal"`
	Public   Grant `key:"public"`
}

// Grant lists the readers of a namespace: one list is enough, and "*" means everyone.
type Grant struct {
	// Users who may read the namespace.
	Users []string `key:"users" eg:"[ada]"`
	// Agents whose conversations may.
	Agents []string `key:"agents" eg:"[default]"`
	// Scopes that allow it.
	Scopes []string `key:"scopes" eg:"[staff]"`
}

// Embeddings is an OpenAI-compatible endpoint that computes vectors. Without one, only
// words are compared.
type Embeddings struct {
	// OpenAI-compatible endpoint for vectors; without it only words are compared.
	BaseURL string `key:"base_url" is:"url" needs:"model" eg:"https://api.openai.com/v1"`
	// Its key.
	APIKey setting.Secret `key:"api_key" needs:"base_url" eg:"your-key"`
	// Its model, such as `text-embedding-3-small`.
	Model string `key:"model" needs:"base_url" eg:"text-embedding-3-small"`
	// File that caches vectors.
	Cache setting.Path `key:"cache" needs:"base_url" eg:"vectors.cache"`
}

// Qdrant is a server that holds the records' index instead of this process.
type Qdrant struct {
	// Qdrant server for the index: `http://localhost:6333`.
	URL string `key:"url" is:"url" needs:"collection" eg:"http://localhost:6333"`
	// Its key.
	APIKey setting.Secret `key:"api_key" needs:"url" eg:"your-key"`
	// Collection, owned by this gateway: unknown records are deleted.
	Collection string `key:"collection"`
}

func (v validator) validateImage() {
	i := v.config.Image
	v.oneOf("image.provider", i.Provider, append([]string{ImageAuto}, v.config.ProviderNames()...)...)
	if i.BaseURL != "" || i.APIKey.IsSet() {
		v.wrongIf(i.Provider == ImageAuto && i.BaseURL == "", "image.provider", "must name a provider, such as openai or gemini, so "+
			"that image.api_key is sent to the right one")
		return
	}
	services := v.config.Services()
	simulated := len(services) > 0 && services[0].Simulated
	if p := v.config.Providers[i.Provider]; p != nil && !p.Configured() && !simulated {
		v.wrong("image.provider", "is %s, which has no key; set image.api_key, or %s", i.Provider, v.config.HowToReach(i.Provider))
	}
}

// Image configures image_generate.
type Image struct {
	// Provider, or `auto`: the first configured, wire `openai` first.
	Provider string `key:"provider"`
	// Another address (`openai`: with `/v1`; `gemini`: without a path); set `image.api_key` too, provider keys are not
	// sent there.
	BaseURL string `key:"base_url" is:"url" unset:"the provider's" eg:"https://api.openai.com/v1"`
	// Key for images.
	APIKey setting.Secret `key:"api_key" unset:"the provider's" eg:"your-key"`
	// Model, such as `gpt-image-2.6-flare`, `gemini-3.1-flash-image`, or `imagen…` on Vertex AI.
	Model string `key:"model" unset:"see images.md" eg:"gpt-image-2.6-flare"`
	// Folder of images; gateways behind one address share it.
	Dir setting.Path `key:"dir" unset:"in data_dir" eg:"/var/lib/voicegw/images"`
	// How long images are kept, `1m` to 30 days.
	Life time.Duration `key:"life" from:"1m" to:"720h"`
	// Number of images; the oldest are removed.
	MaxCount int `key:"max_count" from:"1" to:"100000"`
	// Size in MiB; the oldest are removed.
	MaxMB int `key:"max_mb" from:"20" to:"1000000"`
}

// ImageAuto means the configured provider in Image.Provider.
const ImageAuto = "auto"

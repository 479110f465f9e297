// Package config is the configuration of the gateway: one struct, read from a YAML file, the environment and the
// command line, each overriding the previous one.
//
// Every setting has a key such as "limits.sessions", written nested in the file, as VOICEGW_LIMITS_SESSIONS in the
// environment and as --set limits.sessions=… on the command line. [Load] reports all problems at once, as [Problems].
// docs/configuration.md lists the keys; a test compares the two. [Wires] lists the protocols of providers.
//
// Only cmd/voicegw imports this package: other packages have options of their own. Package setting has the types of
// settings.
package config

import (
	"cmp"
	"net"
	"net/netip"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/protocol"
	"voicegw/transport"
)

// Config holds all settings of the gateway, which docs/configuration.md describes. It doesn't change after Load.
//
// A field's key is its tag, joined with dots to the tags of the enclosing structs. It is the name in the file and, in
// capitals, in the environment. Other tags define the valid values: from and to are bounds, words are the allowed
// texts, and is:"url" means a URL with http:// or https://, or empty. An agent's own budget may be 0.
type Config struct {
	Listen   string   `key:"listen"`
	Insecure bool     `key:"insecure"`
	Hosts    []string `key:"hosts"`
	Origins  []string `key:"origins"`
	// TrustedProxies are addresses and networks (CIDR) of proxies with a trusted X-Forwarded-For and
	// X-Forwarded-Proto. See Config.Proxies.
	TrustedProxies []string `key:"trusted_proxies"`
	TLS            TLS      `key:"tls"`
	Dev            bool     `key:"dev"`
	// APIKey is the operators' key, with all permissions; if empty, the gateway generates one.
	APIKey setting.Secret `key:"api_key"`
	Auth   Auth           `key:"auth"`
	// DataDir is the folder for persistent data. If it is empty, cmd/voicegw chooses the usual folder.
	DataDir      setting.Path  `key:"data_dir"`
	DrainTimeout time.Duration `key:"drain_timeout" from:"0s" to:"24h"`

	// Provider is the default provider. If it isn't set and only one provider is configured, Load sets it.
	Provider  string    `key:"provider"`
	Providers Providers `key:"providers"`
	// Fallback is the provider that takes over sessions of an unavailable one; may be empty.
	Fallback string   `key:"providers.fallback"`
	Prompts  Prompts  `key:"prompts"`
	Chat     Chat     `key:"chat"`
	KB       KB       `key:"kb"`
	Calendar Calendar `key:"calendar"`
	Image    Image    `key:"image"`
	Budget   Budgets  `key:"budget"`
	Agent    Agent    `key:"agent"`
	Agents   Agents   `key:"agents"`
	// Features are flags that tools may use in their availability: name is on for all agents, name@agent for one, and
	// !name@agent is off for one. See [Config.Feature].
	Features     []string     `key:"features"`
	Tools        Tools        `key:"tools"`
	Confirmation Confirmation `key:"confirmation"`
	Store        Store        `key:"store"`
	Cluster      Cluster      `key:"cluster"`
	Metrics      Metrics      `key:"metrics"`
	Traces       Traces       `key:"traces"`
	Audit        Audit        `key:"audit"`
	VAD          VAD          `key:"vad"`
	Limits       Limits       `key:"limits"`
	Prices       Prices       `key:"prices"`
	Webhooks     Webhooks     `key:"webhooks"`
	Sim          Sim          `key:"sim"`
	Log          Log          `key:"log"`

	wires []transport.Wire  // the wires that Providers may use
	where map[string]string // the file with its line, the variable or the flag that has set a setting, by key
}

// Metrics configures the metrics for Prometheus.
type Metrics struct {
	Listen string `key:"listen"`
	Native bool   `key:"native"`
}

// Traces configures the export to an OpenTelemetry collector over OTLP. Package traces reads OpenTelemetry's standard
// variables for missing settings.
type Traces struct {
	Enabled  bool   `key:"enabled"`
	Endpoint string `key:"endpoint" is:"url"`
	// Protocol is auto, http or TracesGRPC.
	Protocol string         `key:"protocol" words:"auto,http,grpc"`
	Headers  setting.Secret `key:"headers"`
	Ratio    float64        `key:"ratio" from:"0" to:"1"`
	Slow     time.Duration  `key:"slow" from:"10ms" to:"1m"`
	Content  bool           `key:"content"`
}

// The values of Traces.Protocol.
const (
	TracesAuto = "auto" // as in the variables, otherwise http
	TracesHTTP = "http"
	TracesGRPC = "grpc"
)

// Agent is the default agent.
type Agent struct {
	Name string `key:"name"`
	// Greeting asks the agent for its first words; if empty, it waits for the user.
	Greeting     string `key:"greeting"`
	Instructions string `key:"instructions"`
	// Language is a BCP 47 tag; if empty, the model decides.
	Language string `key:"language"`
	// Budget is the agent's own; fields that are 0 use Config.Budget. See Config.AgentBudget.
	Budget Budgets `key:"budget"`
}

// Agents locates the agents' documents.
type Agents struct {
	Path  setting.Path `key:"path"`
	Tools bool         `key:"tools"`
}

// Prompts are files that replace the built-in prompts.
type Prompts struct {
	Core  setting.File `key:"core"`
	Voice setting.File `key:"voice"`
	Text  setting.File `key:"text"`
}

// Chat is the text agent's model, at any Chat Completions endpoint.
type Chat struct {
	BaseURL   string         `key:"base_url" is:"url"`
	APIKey    setting.Secret `key:"api_key"`
	Model     string         `key:"model"`
	Reasoning string         `key:"reasoning"`
	MaxOutput int            `key:"max_output"`
	// Vision says whether the model accepts images, true or false; if empty, the model's name decides.
	Vision string `key:"vision"`
}

// Budgets limit the tools of a turn, by mode.
type Budgets struct {
	Voice Budget `key:"voice"`
	Text  Budget `key:"text"`
}

// Budget limits the tools of a turn.
type Budget struct {
	Retrieval int `key:"retrieval" from:"1" to:"1000"`
	Total     int `key:"total" from:"1" to:"1000"`
	TopK      int `key:"top_k" from:"1" to:"1000"`
	// ToolTime is the target for the total time of a turn's tools; 0 means none.
	ToolTime time.Duration `key:"tool_time" from:"0s" to:"10m"`
}

// Confirmation configures approvals.
type Confirmation struct {
	Voice string        `key:"voice" words:"button,spoken"`
	Life  time.Duration `key:"life" from:"10s" to:"1h"`
	// Require are the ids of tools that always need approval. cmd/voicegw checks that they exist.
	Require          []string `key:"require"`
	QuestionsPerTool int      `key:"questions_per_tool" from:"1" to:"100"`
	Questions        int      `key:"questions" from:"1" to:"100"`
}

// The values of Confirmation.Voice.
const (
	confirmButton = "button" // the client must send confirmation.resolve
	ConfirmSpoken = "spoken" // spoken approval is also accepted
)

// Store configures the persistent store.
type Store struct {
	// URL lists URLs of NATS servers, comma-separated; empty means the built-in server.
	URL         string       `key:"url"`
	Credentials setting.Path `key:"credentials"`
	Sync        string       `key:"sync" words:"always,interval"`
	Replicas    int          `key:"replicas" from:"1" to:"5"`
}

// The values of Store.Sync.
const (
	syncAlways   = "always"   // after every write
	SyncInterval = "interval" // periodically: a power cut may lose the latest writes
)

// Audit configures the audit log of tools.
type Audit struct {
	// File is the JSON lines file; empty means audit/audit.jsonl in the data folder, and Stdout standard output.
	File      setting.Path `key:"file"`
	Arguments string       `key:"arguments" words:"none,redacted,full"`
	// MaxMB is the size of a file in MiB. Keep and MaxAge limit the number and age of old files.
	MaxMB  int           `key:"max_mb" from:"1" to:"100000"`
	Keep   int           `key:"keep" from:"1" to:"10000"`
	MaxAge time.Duration `key:"max_age" from:"1h" to:"87600h"`
}

// VAD configures the provider's speech detection, in ms of audio. Zero means the provider's default.
type VAD struct {
	SilenceMS int `key:"silence_ms" from:"0" to:"60000"`
	PrefixMS  int `key:"prefix_ms" from:"0" to:"60000"`
}

// Limits limits clients.
type Limits struct {
	Sessions           int `key:"sessions" from:"1" to:"1000000"`
	SessionsPerAddress int `key:"sessions_per_address" from:"1" to:"1000000"`
	NewPerSecond       int `key:"new_per_second" from:"1" to:"1000000"`
	Waiting            int `key:"waiting" from:"1" to:"1000000"`
	WaitingPerAddress  int `key:"waiting_per_address" from:"1" to:"1000000"`
	// ClientTools is the maximum of tools that a voice client may declare; 0 disables them.
	ClientTools           int           `key:"client_tools" from:"0" to:"64"`
	Connections           int           `key:"connections" from:"10" to:"1000000"`
	ConnectionsPerAddress int           `key:"connections_per_address" from:"10" to:"1000000"`
	Turns                 int           `key:"turns" from:"1" to:"100000"`
	TurnsPerAddress       int           `key:"turns_per_address" from:"1" to:"100000"`
	TurnsPerUser          int           `key:"turns_per_user" from:"1" to:"100000"`
	NewTurnsPerSecond     int           `key:"new_turns_per_second" from:"1" to:"100000"`
	ExemptLoopback        bool          `key:"exempt_loopback"`
	SessionLength         time.Duration `key:"session_length" from:"1s" to:"24h"`
	Idle                  time.Duration `key:"idle" from:"1s" to:"24h"`
	AudioAhead            time.Duration `key:"audio_ahead" from:"500ms" to:"1m"`
	SlowClient            time.Duration `key:"slow_client" from:"100ms" to:"1m"`
	// ResumeGrace is how long a client may be disconnected before its session ends; 0 ends it at once.
	ResumeGrace time.Duration `key:"resume_grace" from:"0s" to:"10m"`
	// UserSessions limits a user's concurrent voice sessions, UserNewPerSecond new ones per second, UserDayCost the
	// models' cost per day in US dollars, and UserDayMinutes the voice minutes per day. 0 means no limit.
	UserSessions     int     `key:"user_sessions" from:"0" to:"1000000"`
	UserNewPerSecond float64 `key:"user_new_per_second" from:"0" to:"1000000"`
	UserDayCost      float64 `key:"user_day_cost" from:"0" to:"1000000"`
	UserDayMinutes   float64 `key:"user_day_minutes" from:"0" to:"100000"`
	// SessionCost limits the model's cost of a voice session, in US dollars; 0 means no limit.
	SessionCost  float64 `key:"session_cost" from:"0" to:"1000000"`
	MessageBytes int     `key:"message_bytes" from:"4096" to:"16777216"`
}

// Prices configures the price table.
type Prices struct {
	// File is a price table that overrides models of the built-in one; may be empty.
	File setting.Path `key:"file"`
	// DayBudget is the expected daily cost of all gateways in US dollars, for alerts only. Zero disables it.
	DayBudget float64 `key:"day_budget" from:"0" to:"1000000"`
}

// Sim is the built-in simulator.
type Sim struct {
	// Use is when the simulator replaces a provider: auto, UseAlways or never.
	Use      string       `key:"use" words:"auto,always,never"`
	Scenario setting.File `key:"scenario"`
	Faults   setting.File `key:"faults"`
	Seed     int          `key:"seed" from:"0" to:"2147483647"`
	// Speed is the seconds of speech per second; 0 means the default.
	Speed float64 `key:"speed"`
	// ChunkMS and FirstAudioMS are in ms; 0 means the wire's default.
	ChunkMS      int `key:"chunk_ms" from:"0" to:"10000"`
	FirstAudioMS int `key:"first_audio_ms" from:"-1" to:"60000"`
	// ConnectionLife is the age at which connections end; 0 means the wire's default.
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
	Level  string `key:"level" words:"debug,info,warn,error"`
	Format string `key:"format" words:"auto,text,json"`
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
		Calendar:     Calendar{Backend: CalendarAuto, TimeZone: "UTC"},
		Image:        Image{Provider: ImageAuto, Life: setting.ImageLife, MaxCount: setting.Images, MaxMB: setting.ImageMB},
		Budget: Budgets{
			Voice: Budget{Retrieval: setting.VoiceRetrievals, Total: setting.VoiceCalls, TopK: setting.VoiceTopK,
				ToolTime: setting.VoiceToolTime},
			Text: Budget{Retrieval: setting.TextRetrievals, Total: setting.TextCalls, TopK: setting.TextTopK},
		},
		Confirmation: Confirmation{Voice: confirmButton, Life: setting.QuestionLife,
			QuestionsPerTool: setting.QuestionsPerTool, Questions: setting.Questions},
		Store:  Store{Replicas: setting.Replicas, Sync: syncAlways},
		Traces: Traces{Protocol: TracesAuto, Ratio: 0.1, Slow: setting.SlowAnswer},
		Audit:  Audit{Arguments: "none", MaxMB: setting.AuditFileMB, Keep: setting.AuditFiles, MaxAge: setting.AuditAge},
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
	Path setting.Path `key:"path"`
	// Language is the language of all records, an ISO 639-1 code, or auto.
	Language   string       `key:"language" words:"auto,en,de,es,fr,it,pt,nl"`
	Synonyms   setting.Path `key:"synonyms"`
	Embeddings Embeddings   `key:"embeddings"`
	Qdrant     Qdrant       `key:"qdrant"`
	Namespaces Namespaces   `key:"namespaces"`
}

// Namespaces holds the grants of each namespace.
type Namespaces struct {
	Studio   Grant `key:"studio"`
	Personal Grant `key:"personal"`
	Public   Grant `key:"public"`
}

// Grant lists the readers of a namespace: one list is enough, and "*" means everyone.
type Grant struct {
	Users  []string `key:"users"`
	Agents []string `key:"agents"`
	Scopes []string `key:"scopes"`
}

// Embeddings is an OpenAI-compatible endpoint that computes vectors. Without one, only
// words are compared.
type Embeddings struct {
	BaseURL string         `key:"base_url" is:"url"` // with its /v1
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	Cache   setting.Path   `key:"cache"`
}

// Qdrant is a server that holds the records' index instead of this process.
type Qdrant struct {
	URL        string         `key:"url" is:"url"`
	APIKey     setting.Secret `key:"api_key"`
	Collection string         `key:"collection"`
}

func (v validator) validateImage() {
	i := v.config.Image
	v.oneOf("image.provider", i.Provider, append([]string{ImageAuto}, v.config.ProviderNames()...)...)
	if i.BaseURL != "" || i.APIKey.IsSet() {
		if i.Provider == ImageAuto && i.BaseURL == "" {
			v.bad("image.provider", "image.provider must name a provider, such as openai or gemini, so that image.api_key is "+
				"sent to the right one.")
		}
		return
	}
	services := v.config.Services()
	simulated := len(services) > 0 && services[0].Simulated
	if p := v.config.Providers[i.Provider]; p != nil && !p.Configured() && !simulated {
		v.bad("image.provider", "image.provider is %s, which has no key; set image.api_key, or %s.", i.Provider,
			v.config.HowToReach(i.Provider))
	}
}

// Image configures image_generate.
type Image struct {
	Provider string `key:"provider"`
	// BaseURL is the endpoint; empty means the provider's own, or the simulator.
	BaseURL string         `key:"base_url" is:"url"`
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	// Dir is the folder for images; empty means the folder images below the data folder.
	Dir setting.Path `key:"dir"`
	// Life is how long an image is kept; MaxCount and MaxMB (MiB) bound the images kept.
	Life     time.Duration `key:"life" from:"1m" to:"720h"`
	MaxCount int           `key:"max_count" from:"1" to:"100000"`
	MaxMB    int           `key:"max_mb" from:"20" to:"1000000"`
}

// ImageAuto means the configured provider in Image.Provider.
const ImageAuto = "auto"

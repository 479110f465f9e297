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

// Config holds every setting of the gateway. It does not change after Load.
//
// The key of a field is its tag, joined with dots to the tags of the structs around it;
// that is also its name in the file and, in capitals, in the environment. Its other tags say
// which values are valid: from and to are bounds, words are the allowed texts, and is:"url" is
// an address that begins with http:// or https://, or empty. An agent's own budget may be 0.
type Config struct {
	// Listen is the address to serve on, host:port. A host other than loopback needs Auth or Insecure.
	Listen string `key:"listen"`
	// Insecure allows an address that other machines can reach without Auth.
	Insecure bool `key:"insecure"`
	// Hosts are the host names that requests may name, as patterns ("voice.example.com",
	// "*.example.com:8443"), besides those of loopback and the address of Listen.
	Hosts []string `key:"hosts"`
	// Origins are the origins of foreign web pages that may connect, as patterns
	// ("https://app.example.com", "http://localhost:*").
	Origins []string `key:"origins"`
	// TrustedProxies are addresses and networks (CIDR) of proxies in front of the gateway,
	// whose X-Forwarded-For and X-Forwarded-Proto are trusted. See Config.Proxies.
	TrustedProxies []string `key:"trusted_proxies"`
	TLS            TLS      `key:"tls"`
	// Dev reads the tools' registry from the project, and again whenever it changes.
	Dev bool `key:"dev"`
	// APIKey is the operators' key, which opens everything; without one, the gateway makes one.
	APIKey setting.Secret `key:"api_key"`
	Auth   Auth           `key:"auth"`
	// DataDir is the folder for everything that outlives the process. If it is empty,
	// cmd/voicegw chooses the user's usual folder for such data.
	DataDir setting.Path `key:"data_dir"`
	// DrainTimeout is how long running sessions may continue after SIGTERM.
	DrainTimeout time.Duration `key:"drain_timeout" from:"0s" to:"24h"`

	// Provider is used for clients that do not ask for one. If it is not set and only one
	// provider is configured, Load sets it to that provider.
	Provider  string    `key:"provider"`
	Providers Providers `key:"providers"`
	// Fallback is the provider that takes sessions over from one that cannot be reached; empty
	// means that none does.
	Fallback string   `key:"providers.fallback"`
	Prompts  Prompts  `key:"prompts"`
	Chat     Chat     `key:"chat"`
	KB       KB       `key:"kb"`
	Calendar Calendar `key:"calendar"`
	Image    Image    `key:"image"`
	Budget   Budgets  `key:"budget"`
	Agent    Agent    `key:"agent"`
	Agents   Agents   `key:"agents"`
	// Features are the flags that tools may name in their availability and that are on: a name is on for all
	// agents, name@agent for one, and !name@agent is off for one. See [Config.Feature].
	Features []string `key:"features"`
	// Tools are the settings of the program's tools, those of Source.Tools.
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
	where map[string]string // the file with its line, the variable or the flag that has set a setting, by its key
}

// Metrics is how Prometheus gets the metrics.
type Metrics struct {
	// Listen is an address, host:port, on which only the metrics are served, to anybody who can reach
	// it. Empty means that operators get them at /metrics of the gateway's own address.
	Listen string `key:"listen"`
	// Native also makes native histograms.
	Native bool `key:"native"`
}

// Traces is what a collector of OpenTelemetry is told, over OTLP. The standard variables of OpenTelemetry
// count where a setting is left out; package traces reads them.
type Traces struct {
	// Enabled turns traces on.
	Enabled bool `key:"enabled"`
	// Endpoint is where the collector is. Empty means what the variables say, or a collector on this machine.
	Endpoint string `key:"endpoint" is:"url"`
	// Protocol is auto, http or TracesGRPC.
	Protocol string `key:"protocol" words:"auto,http,grpc"`
	// Headers are sent with each request: name=value, several with commas between them, with special characters
	// of values as in URLs.
	Headers setting.Secret `key:"headers"`
	// Ratio is the share of turns that are kept although nothing is special about them.
	Ratio float64 `key:"ratio" from:"0" to:"1"`
	// Slow is how long an answer may take to begin before its turn is kept because of that.
	Slow time.Duration `key:"slow" from:"10ms" to:"1m"`
	// Content also tells what was said, and what tools were given and have answered.
	Content bool `key:"content"`
}

// The values of Traces.Protocol.
const (
	TracesAuto = "auto" // what the variables say, otherwise http
	TracesHTTP = "http"
	TracesGRPC = "grpc"
)

// Agent describes the agent that answers.
type Agent struct {
	Name string `key:"name"`
	// Greeting is what the agent is asked to say first; if it is empty, the agent
	// waits for the user.
	Greeting string `key:"greeting"`
	// Instructions are added after the prompts.
	Instructions string `key:"instructions"`
	// Language is a BCP 47 tag; if it is empty the model decides.
	Language string `key:"language"`
	// Budget is the agent's own; a field that is 0 is taken from Config.Budget. See
	// Config.AgentBudget.
	Budget Budgets `key:"budget"`
}

// Agents are where the documents of agents are.
type Agents struct {
	// Path is the folder of their files, *.yaml; empty means that no agent has a file.
	Path setting.Path `key:"path"`
	// Tools lets the text agent make, change and delete agents, by tools.
	Tools bool `key:"tools"`
}

// Prompts are files that replace the built-in prompts.
type Prompts struct {
	Core  setting.File `key:"core"`
	Voice setting.File `key:"voice"`
	Text  setting.File `key:"text"`
}

// Chat is the model of the text agent, behind any Chat Completions endpoint.
type Chat struct {
	// BaseURL includes /v1. Empty means that of a configured provider, or the simulator.
	BaseURL string         `key:"base_url" is:"url"`
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	// Reasoning is the model's reasoning effort, in its own terms; empty means a suitable default.
	Reasoning string `key:"reasoning"`
	// MaxOutput is the maximum number of tokens of one answer; 0 means the default.
	MaxOutput int `key:"max_output"`
	// Vision says whether the model accepts images, as true or false; if it is empty, what is
	// known about the model decides.
	Vision string `key:"vision"`
}

// Budgets bound the tools of one turn, for voice and for text.
type Budgets struct {
	Voice Budget `key:"voice"`
	Text  Budget `key:"text"`
}

// Budget bounds the tools of one turn.
type Budget struct {
	// Retrieval is how many calls of retrieval tools are allowed, Total how many of
	// all tools.
	Retrieval int `key:"retrieval" from:"1" to:"1000"`
	Total     int `key:"total" from:"1" to:"1000"`
	// TopK is the maximum number of results that may be requested from a retrieval tool.
	TopK int `key:"top_k" from:"1" to:"1000"`
	// ToolTime is how long a turn's tools should take altogether; 0 means no limit.
	ToolTime time.Duration `key:"tool_time" from:"0s" to:"10m"`
}

// Confirmation configures how users approve tool calls.
type Confirmation struct {
	// Voice says how users approve in a voice session: button, or ConfirmSpoken.
	Voice string `key:"voice" words:"button,spoken"`
	// Life is how long a question stays open.
	Life time.Duration `key:"life" from:"10s" to:"1h"`
	// Require are the ids of tools that need an approval whatever their schema says.
	// cmd/voicegw checks that these tools exist.
	Require []string `key:"require"`
	// QuestionsPerTool is how many questions about one tool may be declined or expire in a
	// conversation; after that only new words of the user allow another one. Questions is how
	// many questions about all tools may pass without an approval.
	QuestionsPerTool int `key:"questions_per_tool" from:"1" to:"100"`
	Questions        int `key:"questions" from:"1" to:"100"`
}

// The values of Confirmation.Voice.
const (
	confirmButton = "button" // the client must send confirmation.resolve
	ConfirmSpoken = "spoken" // a spoken answer is accepted as well
)

// Store configures where data is kept that must outlive a process.
type Store struct {
	// URL is the URL of a NATS server, or of several, separated by commas; empty means
	// the server inside this process.
	URL string `key:"url"`
	// Credentials is a NATS credentials file for URL.
	Credentials setting.Path `key:"credentials"`
	// Sync says when the server inside this process syncs its files to disk: always, or
	// SyncInterval.
	Sync string `key:"sync" words:"always,interval"`
	// Replicas is how many servers behind URL keep each piece of data: at most as many as a
	// stream of JetStream may have.
	Replicas int `key:"replicas" from:"1" to:"5"`
}

// The values of Store.Sync.
const (
	syncAlways   = "always"   // after every write
	SyncInterval = "interval" // from time to time: a power cut may lose the latest writes
)

// Audit configures the record of the tools' actions.
type Audit struct {
	// File is the JSON lines file; empty means audit/audit.jsonl below the data folder,
	// and Stdout means standard output.
	File setting.Path `key:"file"`
	// Arguments says how a call's arguments are recorded: none, redacted (their names and types)
	// or full.
	Arguments string `key:"arguments" words:"none,redacted,full"`
	// MaxMB is the size in MiB at which a new file is started, Keep how many old files are
	// kept, MaxAge for how long.
	MaxMB  int           `key:"max_mb" from:"1" to:"100000"`
	Keep   int           `key:"keep" from:"1" to:"10000"`
	MaxAge time.Duration `key:"max_age" from:"1h" to:"87600h"`
}

// VAD tunes the provider's speech detection, in ms of audio. Zero means the
// provider's own default.
type VAD struct {
	SilenceMS int `key:"silence_ms" from:"0" to:"60000"`
	PrefixMS  int `key:"prefix_ms" from:"0" to:"60000"`
}

// Limits bound what clients may use.
type Limits struct {
	// Sessions is how many may run concurrently.
	Sessions int `key:"sessions" from:"1" to:"1000000"`
	// SessionsPerAddress is how many of them one client address may have.
	SessionsPerAddress int `key:"sessions_per_address" from:"1" to:"1000000"`
	// NewPerSecond is how many session connections one client address may open per second.
	NewPerSecond int `key:"new_per_second" from:"1" to:"1000000"`
	// Waiting is how many connections may wait for their session.start,
	// WaitingPerAddress how many of them from one client address.
	Waiting           int `key:"waiting" from:"1" to:"1000000"`
	WaitingPerAddress int `key:"waiting_per_address" from:"1" to:"1000000"`
	// ClientTools is how many tools the client of a voice session may declare, which run there; 0 means
	// none.
	ClientTools int `key:"client_tools" from:"0" to:"64"`
	// Connections is how many connections other than sessions are allowed,
	// ConnectionsPerAddress how many of them from one address.
	Connections           int `key:"connections" from:"10" to:"1000000"`
	ConnectionsPerAddress int `key:"connections_per_address" from:"10" to:"1000000"`
	// Turns is how many messages of text conversations are answered concurrently,
	// TurnsPerAddress and TurnsPerUser how many of them for one client address and for
	// one user. NewTurnsPerSecond is how many each of these may start per second.
	Turns             int `key:"turns" from:"1" to:"100000"`
	TurnsPerAddress   int `key:"turns_per_address" from:"1" to:"100000"`
	TurnsPerUser      int `key:"turns_per_user" from:"1" to:"100000"`
	NewTurnsPerSecond int `key:"new_turns_per_second" from:"1" to:"100000"`
	// ExemptLoopback exempts this machine's own addresses from the limits per address.
	ExemptLoopback bool `key:"exempt_loopback"`
	// SessionLength ends a session after this time, Idle ends a session in which nothing happens.
	SessionLength time.Duration `key:"session_length" from:"1s" to:"24h"`
	Idle          time.Duration `key:"idle" from:"1s" to:"24h"`
	// AudioAhead is how far a client's audio may be ahead of real time.
	AudioAhead time.Duration `key:"audio_ahead" from:"500ms" to:"1m"`
	// SlowClient is how long a client may fail to read what it is sent.
	SlowClient time.Duration `key:"slow_client" from:"100ms" to:"1m"`
	// ResumeGrace is how long a client may be away before its session ends; 0 means that it ends at
	// once.
	ResumeGrace time.Duration `key:"resume_grace" from:"0s" to:"10m"`
	// UserSessions is how many voice sessions one user may have at once, UserNewPerSecond how many
	// they may begin per second. UserDayCost is what models may cost for them on a day, in US dollars,
	// and UserDayMinutes how long their voice sessions of a day may last together. 0 means no limit.
	UserSessions     int     `key:"user_sessions" from:"0" to:"1000000"`
	UserNewPerSecond float64 `key:"user_new_per_second" from:"0" to:"1000000"`
	UserDayCost      float64 `key:"user_day_cost" from:"0" to:"1000000"`
	UserDayMinutes   float64 `key:"user_day_minutes" from:"0" to:"100000"`
	// SessionCost is what the model of one voice session may cost, in US dollars; 0 means no limit.
	SessionCost float64 `key:"session_cost" from:"0" to:"1000000"`
	// MessageBytes is the largest WebSocket message a client may send.
	MessageBytes int `key:"message_bytes" from:"4096" to:"16777216"`
}

// Prices are what tokens cost.
type Prices struct {
	// File is a price table whose models replace those of the built-in one; empty means none.
	File setting.Path `key:"file"`
	// DayBudget is what all gateways together are meant to cost a day, in US dollars: it refuses
	// nobody, and is for an alert. Zero means that nothing is said.
	DayBudget float64 `key:"day_budget" from:"0" to:"1000000"`
}

// Sim is the simulator inside the process.
type Sim struct {
	// Use says when the simulator replaces a provider: auto, UseAlways or never.
	Use      string       `key:"use" words:"auto,always,never"`
	Scenario setting.File `key:"scenario"`
	Faults   setting.File `key:"faults"`
	Seed     int          `key:"seed" from:"0" to:"2147483647"`
	// Speed is how many seconds of speech it generates per second; 0 means its default.
	Speed float64 `key:"speed"`
	// ChunkMS and FirstAudioMS are in ms; 0 means the wire's default.
	ChunkMS      int `key:"chunk_ms" from:"0" to:"10000"`
	FirstAudioMS int `key:"first_audio_ms" from:"-1" to:"60000"`
	// ConnectionLife is the age at which its connections end, as the provider ends them; 0
	// means the wire's own.
	ConnectionLife time.Duration `key:"connection_life" from:"0s" to:"24h"`
}

// The values of Sim.Use.
const (
	useAuto   = "auto"   // for all providers, as long as none is configured
	UseAlways = "always" // for all providers, whatever is configured
	useNever  = "never"  // never: start only with a real provider
)

// Log configures what is logged and how.
type Log struct {
	Level  string `key:"level" words:"debug,info,warn,error"`
	Format string `key:"format" words:"auto,text,json"`
}

// Default returns the default configuration: it has a provider for each wire, with the
// wire's name.
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
		Image:        defaultImage(),
		Budget: Budgets{
			Voice: Budget{Retrieval: setting.VoiceRetrievals, Total: setting.VoiceCalls, TopK: setting.VoiceTopK, ToolTime: setting.VoiceToolTime},
			Text:  Budget{Retrieval: setting.TextRetrievals, Total: setting.TextCalls, TopK: setting.TextTopK},
		},
		Confirmation: Confirmation{Voice: confirmButton, Life: setting.QuestionLife, QuestionsPerTool: setting.QuestionsPerTool, Questions: setting.Questions},
		Store:        Store{Replicas: setting.Replicas, Sync: syncAlways},
		Traces:       Traces{Protocol: TracesAuto, Ratio: 0.1, Slow: setting.SlowAnswer},
		Audit:        Audit{Arguments: "none", MaxMB: setting.AuditFileMB, Keep: setting.AuditFiles, MaxAge: setting.AuditAge},
		Limits: Limits{
			Sessions:              setting.Sessions,
			SessionsPerAddress:    setting.SessionsPerAddress,
			NewPerSecond:          setting.NewSessionsPerSecond,
			Waiting:               setting.WaitingSessions,
			WaitingPerAddress:     setting.WaitingPerAddress,
			ClientTools:           setting.ClientTools,
			Connections:           setting.Connections,
			ConnectionsPerAddress: setting.ConnectionsPerAddress,
			Turns:                 setting.Turns,
			TurnsPerAddress:       setting.TurnsPerAddress,
			TurnsPerUser:          setting.TurnsPerUser,
			NewTurnsPerSecond:     setting.NewTurnsPerSecond,
			SessionLength:         time.Hour,
			Idle:                  5 * time.Minute,
			AudioAhead:            setting.AudioAhead,
			SlowClient:            setting.SlowClient,
			ResumeGrace:           30 * time.Second,
			MessageBytes:          protocol.MaxMessageBytes,
		},
		Sim: Sim{Use: useAuto},
		Log: Log{Level: "info", Format: "auto"},
	}
}

// AgentBudget returns the budget of the agent's turns: its own, with fields that are 0
// taken from the common one.
func (c *Config) AgentBudget() Budgets {
	return Budgets{
		Voice: c.Agent.Budget.Voice.or(c.Budget.Voice),
		Text:  c.Agent.Budget.Text.or(c.Budget.Text),
	}
}

func (b Budget) or(common Budget) Budget {
	return Budget{
		Retrieval: cmp.Or(b.Retrieval, common.Retrieval),
		Total:     cmp.Or(b.Total, common.Total),
		TopK:      cmp.Or(b.TopK, common.TopK),
		ToolTime:  cmp.Or(b.ToolTime, common.ToolTime),
	}
}

// Loopback reports whether address, host:port, can be reached only from this machine.
// The only host name that counts as loopback is "localhost"; an empty host means every
// address and does not count.
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

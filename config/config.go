package config

import (
	"cmp"
	"net"
	"net/netip"
	"strings"
	"time"

	"voicegw/config/defaults"
	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/wires"
)

// Config is every setting of the gateway. It does not change after Load.
//
// The key of a field is its tag, joined to those of the structs around it with
// dots; that is also its name in the file and, in capitals, in the environment.
type Config struct {
	// Listen is the address to serve on, host:port. A host that is not loopback
	// needs Insecure as long as the gateway has no authentication.
	Listen string `key:"listen"`
	// Insecure allows an address that others can reach.
	Insecure bool `key:"insecure"`
	// Hosts are the names that requests may ask for, as patterns ("voice.example.com",
	// "*.example.com:8443"), besides those of loopback and the address of Listen.
	Hosts []string `key:"hosts"`
	// Origins are the origins of foreign web pages that may connect, as patterns
	// ("https://app.example.com", "http://localhost:*").
	Origins []string `key:"origins"`
	// TrustedProxies are addresses and networks (CIDR) of proxies in front of the gateway,
	// whose X-Forwarded-For and X-Forwarded-Proto count. See Config.Proxies.
	TrustedProxies []string `key:"trusted_proxies"`
	// Dev reads the tools' registry from the project and again when it changes.
	Dev bool `key:"dev"`
	// APIKey is what servers show that use the endpoints for operators; without one
	// those answer to this machine alone.
	APIKey Secret `key:"api_key"`
	// DataDir is the folder of everything that outlives the process. Empty lets
	// cmd/voicegw choose the user's folder for such things.
	DataDir Path `key:"data_dir"`
	// DrainTimeout is how long running sessions may go on after SIGTERM.
	DrainTimeout time.Duration `key:"drain_timeout"`

	// Provider is the one that a client gets who asks for none. Load makes it the
	// one that is configured when only one is and nobody has chosen.
	Provider     string       `key:"provider"`
	Providers    Providers    `key:"providers"`
	Agent        Agent        `key:"agent"`
	Prompts      Prompts      `key:"prompts"`
	Chat         Chat         `key:"chat"`
	KB           KB           `key:"kb"`
	Calendar     Calendar     `key:"calendar"`
	Image        Image        `key:"image"`
	Budget       Budgets      `key:"budget"`
	Confirmation Confirmation `key:"confirmation"`
	Store        Store        `key:"store"`
	Audit        Audit        `key:"audit"`
	VAD          VAD          `key:"vad"`
	Limits       Limits       `key:"limits"`
	Sim          Sim          `key:"sim"`
	Log          Log          `key:"log"`

	wires []transport.Wire // what Providers may speak
}

// Agent is who answers.
type Agent struct {
	Name string `key:"name"`
	// Greeting is what the agent is asked to say first; empty for an agent that
	// waits for the user.
	Greeting string `key:"greeting"`
	// Instructions stand after the prompts.
	Instructions string `key:"instructions"`
	// Language is BCP 47; empty lets the model decide.
	Language string `key:"language"`
	// Budget is the agent's own; what is 0 in it is as in Config.Budget. See
	// Config.AgentBudget.
	Budget Budgets `key:"budget"`
}

// Prompts are files that stand in for the built-in prompts.
type Prompts struct {
	Core  File `key:"core"`
	Voice File `key:"voice"`
	Text  File `key:"text"`
}

// Chat is the model of the text agent: Chat Completions, wherever they are served.
type Chat struct {
	// BaseURL is with its /v1. Empty: that of a configured provider, or the simulator.
	BaseURL string `key:"base_url"`
	APIKey  Secret `key:"api_key"`
	Model   string `key:"model"`
	// Reasoning is how much the model may think, in its own words; empty for what suits it.
	Reasoning string `key:"reasoning"`
	// MaxOutput is the most tokens of one answer; 0 for the default.
	MaxOutput int `key:"max_output"`
	// Vision says whether the model takes images, as true or false; empty for what is known
	// of it.
	Vision string `key:"vision"`
}

// Path is the path of a file or folder that Load does not read. One in a file is
// meant from the file's directory; [Stdout] stays as it is.
type Path string

// Stdout is the Path that stands for standard output, where a setting takes it.
const Stdout Path = "-"

// KB is the knowledge base that the retrieval tools work on.
type KB struct {
	// Path is the folder of records; empty means the invented ones that are built in.
	Path Path `key:"path"`
	// Language is that of all records, as kb.RecordLanguages has it, or auto.
	Language string `key:"language"`
	// Synonyms is a file of words that stand for others; empty for none.
	Synonyms   Path       `key:"synonyms"`
	Embeddings Embeddings `key:"embeddings"`
	Qdrant     Qdrant     `key:"qdrant"`
	// Namespaces say who may read what. Studio and Public are open to everybody unless
	// a list of theirs says otherwise; Personal is open to nobody.
	Namespaces Namespaces `key:"namespaces"`
}

// Namespaces has the grants of each namespace.
type Namespaces struct {
	Studio   Grant `key:"studio"`
	Personal Grant `key:"personal"`
	Public   Grant `key:"public"`
}

// Grant lists who may read a namespace: being in one of the lists is enough, and "*" is
// everybody.
type Grant struct {
	Users  []string `key:"users"`
	Agents []string `key:"agents"`
	Scopes []string `key:"scopes"`
}

// Embeddings is an OpenAI-compatible endpoint that makes vectors. Without one, words
// alone are compared.
type Embeddings struct {
	BaseURL string `key:"base_url"` // with its /v1
	APIKey  Secret `key:"api_key"`
	Model   string `key:"model"`
	// Cache is a file in which what was paid for once outlives the process.
	Cache Path `key:"cache"`
}

// Qdrant is a server that holds the records' index instead of this process.
type Qdrant struct {
	URL        string `key:"url"`
	APIKey     Secret `key:"api_key"`
	Collection string `key:"collection"`
}

// Calendar is what the calendar tools work on: a CalDAV server, Google Calendar, or
// a folder of iCalendar files where neither is configured.
type Calendar struct {
	// Backend is one of the Calendar constants; see [Calendar.Kind].
	Backend string `key:"backend"`
	// Folder holds a folder for each calendar; empty means calendar below the data
	// folder.
	Folder Path `key:"folder"`
	// Primary, Team and Personal say what stands behind these names; what that looks
	// like depends on the backend.
	Primary  string `key:"primary"`
	Team     string `key:"team"`
	Personal string `key:"personal"`
	// TimeZone is the IANA name of the zone of days, of times without a zone, and of
	// what is said in words.
	TimeZone string `key:"time_zone"`
	// Email is the address that the calendars' owner is known by.
	Email string `key:"email"`
	// MeetingURL is the link of video meetings where the calendar makes none; "{id}" in
	// it is another one for each event.
	MeetingURL string `key:"meeting_url"`
	CalDAV     CalDAV `key:"caldav"`
	Google     Google `key:"google"`
}

// CalDAV is a server of calendars.
type CalDAV struct {
	URL      string `key:"url"`
	User     string `key:"user"`
	Password Secret `key:"password"`
}

// Google is an account at Google Calendar.
type Google struct {
	// Credentials is the JSON file of a service account or of an authorized user.
	Credentials Path `key:"credentials"`
	// Subject is the user whom a service account acts for.
	Subject string `key:"subject"`
	// BaseURL is where the API is; empty means Google's own.
	BaseURL string `key:"base_url"`
}

// The values of Calendar.Backend.
const (
	CalendarAuto   = "auto" // whichever is configured
	CalendarFolder = "folder"
	CalendarCalDAV = "caldav"
	CalendarGoogle = "google"
)

// Kind says which backend it is: never CalendarAuto.
func (c Calendar) Kind() string {
	switch {
	case c.Backend != CalendarAuto:
		return c.Backend
	case c.CalDAV.URL != "":
		return CalendarCalDAV
	case c.Google.Credentials != "":
		return CalendarGoogle
	default:
		return CalendarFolder
	}
}

// Budgets bound what tools may do in one turn, on each side.
type Budgets struct {
	Voice Budget `key:"voice"`
	Text  Budget `key:"text"`
}

// Budget is what one turn may use.
type Budget struct {
	// Retrieval is how many calls of retrieval tools there may be, Total how many of
	// all tools.
	Retrieval int `key:"retrieval"`
	Total     int `key:"total"`
	// TopK is the most results that a retrieval tool may be asked for.
	TopK int `key:"top_k"`
	// ToolTime is how long a turn's tools should take altogether; 0 for as long as
	// they need.
	ToolTime time.Duration `key:"tool_time"`
}

// Confirmation is how users approve what tools want to do.
type Confirmation struct {
	// Voice is how in a voice session: one of the Confirm constants.
	Voice string `key:"voice"`
	// Life is how long a question stays open.
	Life time.Duration `key:"life"`
	// Require are the ids of tools that need an approval whatever their schema says.
	// Whether there are such tools cmd/voicegw checks.
	Require []string `key:"require"`
	// QuestionsPerTool is how many questions about one tool may be declined or expire in a
	// conversation before only what the user says leads to another one, Questions how many
	// of all tools may be without an approval.
	QuestionsPerTool int `key:"questions_per_tool"`
	Questions        int `key:"questions"`
}

// The values of Confirmation.Voice.
const (
	ConfirmButton = "button" // the client sends confirmation.resolve
	ConfirmSpoken = "spoken" // what the user says counts as well
)

// Store is where everything is kept that must outlive a process.
type Store struct {
	// URL is that of a NATS server, or of several with commas between them; empty means
	// the server inside this process.
	URL string `key:"url"`
	// Credentials is a NATS credentials file for URL.
	Credentials Path `key:"credentials"`
	// Replicas is how many servers behind URL keep everything.
	Replicas int `key:"replicas"`
	// Sync is when the server inside this process makes sure of its files: one of the
	// Sync constants.
	Sync string `key:"sync"`
}

// The values of Store.Sync.
const (
	SyncAlways   = "always"   // with every write
	SyncInterval = "interval" // now and then: a power cut may take what came last
)

// Audit is the record of what tools did.
type Audit struct {
	// File is the JSON lines file; empty means audit/audit.jsonl below the data folder,
	// Stdout standard output.
	File Path `key:"file"`
	// Arguments says what of a call's arguments is recorded: one of the Arguments
	// constants.
	Arguments string `key:"arguments"`
	// MaxMB is the size in MiB at which a new file is begun, Keep how many old ones are
	// kept, MaxAge for how long.
	MaxMB  int           `key:"max_mb"`
	Keep   int           `key:"keep"`
	MaxAge time.Duration `key:"max_age"`
}

// The values of Audit.Arguments.
const (
	argumentsNone     = "none"
	argumentsRedacted = "redacted" // their names and kinds
	argumentsFull     = "full"
)

// VAD tunes the provider's speech detection, in ms of audio. Zero leaves the
// provider's own default.
type VAD struct {
	SilenceMS int `key:"silence_ms"`
	PrefixMS  int `key:"prefix_ms"`
}

// Limits bound what clients may use.
type Limits struct {
	// Sessions is how many may run at once.
	Sessions int `key:"sessions"`
	// SessionsPerAddress is how many of them one client address may have.
	SessionsPerAddress int `key:"sessions_per_address"`
	// NewPerSecond is how often one client address may connect for a session in a
	// second.
	NewPerSecond int `key:"new_per_second"`
	// Waiting is how many connections may wait for their session.start,
	// WaitingPerAddress how many of them from one client address.
	Waiting           int `key:"waiting"`
	WaitingPerAddress int `key:"waiting_per_address"`
	// Connections is how many connections there may be that are no sessions,
	// ConnectionsPerAddress how many of them from one address.
	Connections           int `key:"connections"`
	ConnectionsPerAddress int `key:"connections_per_address"`
	// Turns is how many messages of text conversations are answered at once,
	// TurnsPerAddress and TurnsPerUser how many of them from one client address and of
	// one user. NewTurnsPerSecond is how many each of these may begin in a second.
	Turns             int `key:"turns"`
	TurnsPerAddress   int `key:"turns_per_address"`
	TurnsPerUser      int `key:"turns_per_user"`
	NewTurnsPerSecond int `key:"new_turns_per_second"`
	// ExemptLoopback exempts this machine's own addresses from what limits one address.
	ExemptLoopback bool `key:"exempt_loopback"`
	// SessionLength ends a session, Idle one in which nothing happens.
	SessionLength time.Duration `key:"session_length"`
	Idle          time.Duration `key:"idle"`
	// AudioAhead is how far a client's audio may be ahead of real time.
	AudioAhead time.Duration `key:"audio_ahead"`
	// SlowClient is how long a client may take nothing of what it is sent.
	SlowClient time.Duration `key:"slow_client"`
	// MessageBytes is the largest WebSocket message a client may send.
	MessageBytes int `key:"message_bytes"`
}

// Sim is the simulator inside the process.
type Sim struct {
	// Use says when it stands in for a provider: one of the Use constants.
	Use      string `key:"use"`
	Scenario File   `key:"scenario"`
	Faults   File   `key:"faults"`
	Seed     int    `key:"seed"`
	// Speed is how many seconds of speech it makes in a second; 0 for its default.
	Speed float64 `key:"speed"`
	// ChunkMS and FirstAudioMS are in ms; 0 for the wire's default.
	ChunkMS      int `key:"chunk_ms"`
	FirstAudioMS int `key:"first_audio_ms"`
}

// The values of Sim.Use.
const (
	UseAuto   = "auto"   // for all providers, as long as none is configured
	UseAlways = "always" // for all providers, whatever is configured
	UseNever  = "never"  // start only with a real provider
)

// Log is what is logged and how.
type Log struct {
	Level  string `key:"level"`  // debug, info, warn or error
	Format string `key:"format"` // auto, text or json
}

// Default returns the configuration that holds where nothing is configured: with a
// provider for each wire, which has the wire's name.
func Default() *Config { return defaultFor(wires.All()) }

func defaultFor(all []transport.Wire) *Config {
	return &Config{
		wires: all,

		Listen:       "127.0.0.1:8080",
		DrainTimeout: 30 * time.Second,
		Provider:     all[0].Name,
		Providers:    newProviders(all),
		Agent:        Agent{Name: defaults.AgentName},
		KB:           KB{Language: "auto", Qdrant: Qdrant{Collection: "voicegw"}},
		Calendar:     Calendar{Backend: CalendarAuto, TimeZone: "UTC"},
		Image:        defaultImage(),
		Budget: Budgets{
			Voice: Budget{Retrieval: defaults.VoiceRetrievals, Total: defaults.VoiceCalls, TopK: defaults.VoiceTopK, ToolTime: defaults.VoiceToolTime},
			Text:  Budget{Retrieval: defaults.TextRetrievals, Total: defaults.TextCalls, TopK: defaults.TextTopK},
		},
		Confirmation: Confirmation{Voice: ConfirmButton, Life: defaults.QuestionLife, QuestionsPerTool: defaults.QuestionsPerTool, Questions: defaults.Questions},
		Store:        Store{Replicas: defaults.Replicas, Sync: SyncAlways},
		Audit:        Audit{Arguments: argumentsNone, MaxMB: defaults.AuditFileMB, Keep: defaults.AuditFiles, MaxAge: defaults.AuditAge},
		Limits: Limits{
			Sessions:              defaults.Sessions,
			SessionsPerAddress:    defaults.SessionsPerAddress,
			NewPerSecond:          defaults.NewSessionsPerSecond,
			Waiting:               defaults.WaitingSessions,
			WaitingPerAddress:     defaults.WaitingPerAddress,
			Connections:           defaults.Connections,
			ConnectionsPerAddress: defaults.ConnectionsPerAddress,
			Turns:                 defaults.Turns,
			TurnsPerAddress:       defaults.TurnsPerAddress,
			TurnsPerUser:          defaults.TurnsPerUser,
			NewTurnsPerSecond:     defaults.NewTurnsPerSecond,
			SessionLength:         time.Hour,
			Idle:                  5 * time.Minute,
			AudioAhead:            defaults.AudioAhead,
			SlowClient:            defaults.SlowClient,
			MessageBytes:          protocol.MaxMessageBytes,
		},
		Sim: Sim{Use: UseAuto},
		Log: Log{Level: "info", Format: "auto"},
	}
}

// AgentBudget returns what the agent's turns may use: its own budget, and where that
// is 0 the common one.
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

// Loopback says whether address, host:port, can be reached from this machine
// alone. A host that is a name counts only if it is "localhost"; no host at all
// means every address and does not.
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

package caller

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/voice"
)

// Settings are shared by all callers of a run. All fields are required unless noted; nothing changes after New.
type Settings struct {
	// URL is the gateway's voice endpoint.
	URL string
	// Speech has the script's recordings.
	Script *Script
	Speech *voice.Library
	// Collector gets the measurements.
	Collector *report.Collector
	// Provider overrides the script's if not empty.
	Provider string
	// InputRate and OutputRate are in Hz; Frame is the audio in each sent frame.
	InputRate, OutputRate int
	Frame                 time.Duration
	// ProviderDelay is the provider's known delay before it speaks; zero if unknown.
	ProviderDelay time.Duration
	// APIKey opens voice sessions, the text agent and POST /v1/sessions; empty if the gateway needs none.
	APIKey string
	// Outages cut the connections; their First is ignored. May be empty.
	Outages []voice.Outage
	// Began is the start of the run.
	Began time.Time
	// ConnectTime bounds a connection attempt, and the session's start after it.
	ConnectTime time.Duration
	// HTTP makes all connections.
	HTTP *http.Client
	// SawCall, if set, is called for every tool.ended with the ids of its session and call.
	SawCall func(session, call string)
	// Dial connects; nil means protocol.Dial.
	Dial func(ctx context.Context, url string) (voice.Conn, error)
}

// Caller is one caller. It is not safe for concurrent use.
type Caller struct {
	// Fixed after New.
	set     *Settings
	session int
	silence []byte
	turns   []voice.Turn
	random  *rand.Rand // for the pauses between attempts to resume

	calls int
}

// New returns caller number session, from 1.
func New(set *Settings, session int) *Caller {
	return &Caller{
		set: set, session: session, silence: make([]byte, audio.Bytes(set.InputRate, set.Frame)), turns: turns(set.Script),
		random: rand.New(rand.NewPCG(uint64(session), 1)),
	}
}

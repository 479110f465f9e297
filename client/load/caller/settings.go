package caller

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/speech"
	"voicegw/client/voice"
)

// Settings are what all callers of a run share. Everything is required unless it says
// otherwise, and nothing changes after New.
type Settings struct {
	// URL is the gateway's voice endpoint.
	URL string
	// Script is what is said, Speech what the script names.
	Script *Script
	Speech *speech.Library
	// Collector gets what is measured.
	Collector *report.Collector
	// Provider overrides the script's; empty means the script's.
	Provider string
	// InputRate and OutputRate are in Hz, Frame is how much audio one frame sent has.
	InputRate, OutputRate int
	Frame                 time.Duration
	// ProviderDelay is how long the provider is known to wait before it speaks. Zero means
	// that it is not known.
	ProviderDelay time.Duration
	// APIKey opens voice sessions, the text agent and POST /v1/sessions; empty where the gateway wants
	// none.
	APIKey string
	// Outages take the connections away; their First is not used. May be empty.
	Outages []voice.Outage
	// Began is when the run did.
	Began time.Time
	// ConnectTime is how long a connection, and a session after it, may take.
	ConnectTime time.Duration
	// HTTP makes all connections.
	HTTP *http.Client
	// SawCall, if set, is told of every tool.ended: the session's id and the call's.
	SawCall func(session, call string)
	// Dial connects; nil means protocol.Dial.
	Dial func(ctx context.Context, url string) (voice.Conn, error)
}

// Caller is one caller. One goroutine at a time may use it.
type Caller struct {
	// Fixed after New.
	set     *Settings
	session int
	silence []byte
	turns   []voice.Turn
	random  *rand.Rand // of the pauses before attempts to come back

	calls int
}

// New makes caller number session, from 1.
func New(set *Settings, session int) *Caller {
	return &Caller{
		set: set, session: session, silence: make([]byte, audio.Bytes(set.InputRate, set.Frame)), turns: turns(set.Script),
		random: rand.New(rand.NewPCG(uint64(session), 1)),
	}
}

// Package wire is the common part of the simulator's provider wires: their common options, the meaning of keys, ids,
// counters, JSON in its order, and a connection that injects the faults that do not depend on a protocol.
package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
)

// Instructions are those of a session without any. The provider has a longer text of its own.
const Instructions = "You are a friendly voice assistant. This session is simulated: nothing you say comes from a model."

// Options are the options of the wires. Zero values are useful.
type Options struct {
	// Scenario defines the model's words. Nil means scenario.Default().
	Scenario *scenario.Scenario
	// Faults are injected into every connection. Nil means no faults.
	Faults *scenario.FaultScript
	// Seed makes ids, faults and choices repeatable: connection n of a server
	// uses Seed and n. Zero is an ordinary seed.
	Seed uint64
	// Speed is how many seconds of audio the model makes in a second. Zero
	// means each wire's default (OpenAI 4; Live 1, on which the timeline advances); a negative value means everything at once.
	Speed float64
	// ChunkMS is the length of an audio chunk in ms. Zero means each wire's default,
	// as recorded (OpenAI 250, Gemini by model); Live has always 100.
	ChunkMS int
	// FirstAudioMS is the time from the end of the input to the first audio, in
	// ms. Zero means 200; a negative value means no delay. Live has times of its own.
	FirstAudioMS int
	// PlaybackSpeed is the speed at which Gemini assumes that its audio is played:
	// turnComplete is held back until playback ends. Zero means 1, real time; a negative
	// value means that turnComplete follows generationComplete at once.
	PlaybackSpeed float64
	// ConnectionLife is the age at which a connection ends as the provider's do; OpenAI's
	// sessions name that time in expires_at. Zero means the provider's own (OpenAI 60 min, Live 2 h,
	// Gemini 9:50 or 58:00); a negative value means that connections do not end of age.
	ConnectionLife time.Duration
	// GoAwayAfter is the age of a connection at which Gemini sends goAway. Zero means the model's own habit, as
	// measured: GoAwayLeft before the end, which is at 9:50; for models of the 3.8 generation no goAway but a silent
	// close 1011 at 58:00. ConnectionLife changes those ends. A negative value means no goAway: the connection ends
	// silently at ConnectionLife, or not at all if that is zero.
	GoAwayAfter time.Duration
	// GoAwayLeft is the time that goAway announces. The connection is closed 1008 that long (and 0.4 s) after it. Zero
	// means 50 s, and with a ConnectionLife at most a quarter of it; a negative value means 0 s.
	GoAwayLeft time.Duration
	// SessionLife is how long a conversation with Gemini lasts, over all its connections, without context window
	// compression. Zero means 15 min, and no limit for the 3.8 generation; negative means no limit.
	SessionLife time.Duration
	// Logger receives a line when a connection begins or ends. Nil disables logging.
	Logger *slog.Logger
	// Stats is updated. Nil disables counting.
	Stats *Stats
	// Group holds the open connections, so that they can be ended and waited
	// for. Nil means a group of the wire's own, which cannot be ended from outside.
	Group *Group
}

// Begin is the state of a new connection.
type Begin struct {
	// N counts the connections of the server on both wires, from 1.
	N int
	// Seed is this connection's own seed: for IDs, the dialogue and choices.
	Seed uint64
	// Faults is this connection's injector; nil, which may be used, if there is no script.
	Faults *scenario.Injector
}

// Begin counts a connection of an API, or a request, and returns its number, seed and faults.
// It may be called concurrently; Group must be set (WithDefaults does so).
func (o *Options) Begin(api scenario.API) Begin {
	n, ofAPI := o.Group.next(api)
	seed := Mix(o.Seed + uint64(n)*0x9e3779b97f4a7c15)
	return Begin{N: n, Seed: seed, Faults: o.Faults.NewInjector(seed, scenario.Connection{N: n, OfAPI: ofAPI, API: api})}
}

// Mix spreads the bits of a seed (the finalizer of splitmix64), so that the
// sequences of neighbouring seeds are unrelated.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// WithDefaults sets a nil scenario, logger, stats and group. A wire calls it in New.
func (o Options) WithDefaults() Options {
	if o.Scenario == nil {
		o.Scenario = scenario.Default()
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Stats == nil {
		o.Stats = &Stats{}
	}
	if o.Group == nil {
		o.Group = &Group{}
	}
	return o
}

// Stats counts what happened, for tests and for a report at the end. It may be read concurrently at any time.
type Stats struct {
	Connections atomic.Int64 // accepted, both wires
	Refused     atomic.Int64 // answered with an HTTP error, or closed because of a key or a model
	Open        atomic.Int64
	FramesIn    atomic.Int64
	FramesOut   atomic.Int64
	AudioInMS   atomic.Int64
	AudioOutMS  atomic.Int64
	Utterances  atomic.Int64
	Responses   atomic.Int64
	Interrupted atomic.Int64
	Calls       atomic.Int64
	Results     atomic.Int64
	Errors      atomic.Int64 // error events sent, or closes because of a client's mistake
	Faults      atomic.Int64 // injected, of any kind
	FaultsBy    FaultCounts  // the same by kind
	Tokens      atomic.Int64 // ephemeral credentials made
	Requests    atomic.Int64 // to chat, embeddings and images, answered or refused
	Embedded    atomic.Int64 // texts
	Images      atomic.Int64 // drawn
}

// Key is how a provider treats a key.
type Key int

// The classes of keys. A key is KeyOK unless it is empty or begins
// with "invalid", "expired" or "quota" (after "sk-", "ek_" or "auth_tokens/", in any case).
const (
	KeyOK Key = iota
	KeyMissing
	KeyInvalid
	KeyExpired
	KeyQuota
)

// ClassifyKey returns the class of a key.
func ClassifyKey(key string) Key {
	k := strings.ToLower(strings.TrimSpace(key))
	for _, prefix := range []string{"sk-", "ek_", "auth_tokens/"} {
		k = strings.TrimPrefix(k, prefix)
	}
	switch {
	case strings.TrimSpace(key) == "":
		return KeyMissing
	case strings.HasPrefix(k, "invalid"):
		return KeyInvalid
	case strings.HasPrefix(k, "expired"):
		return KeyExpired
	case strings.HasPrefix(k, "quota"):
		return KeyQuota
	}
	return KeyOK
}

// TextTokens estimates the tokens of a text from its words: 4 tokens for 3
// words, and at least 1 for a text that is not empty.
func TextTokens(text string) int { return (len(strings.Fields(text))*4 + 2) / 3 }

var (
	// ErrNoConnection means that no open connection has that address.
	ErrNoConnection = errors.New("wire: no connection has that address")
	// ErrTooMany means that the maximum number of faults already waits for the connection.
	ErrTooMany = errors.New("wire: too many faults wait for the connection")
)

// IDs makes ids that are the same in every run with the same seed. It must not be used concurrently.
type IDs struct {
	openaiwire.IDs
	rand *rand.Rand
}

// NewIDs makes a source of ids.
func NewIDs(seed uint64) *IDs {
	r := rand.New(rand.NewPCG(seed, 0x696473))
	return &IDs{openaiwire.IDs{IntN: r.IntN}, r}
}

// Digits returns n decimal digits; the first is not 0.
func (i *IDs) Digits(n int) string {
	b := make([]byte, n)
	for k := range b {
		b[k] = '0' + byte(i.rand.IntN(10))
	}
	if n > 0 && b[0] == '0' {
		b[0] = '1' + byte(i.rand.IntN(9))
	}
	return string(b)
}

// UUID returns a random (version 4) UUID (RFC 9562, 5.4).
func (i *IDs) UUID() string {
	hi, lo := i.rand.Uint64(), i.rand.Uint64()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff)
}

// Words cuts a text before its spaces, like tokens that are whole words. Joined, the pieces are the text again.
func Words(text string) []string {
	var out []string
	start, word := 0, false
	for i, c := range text {
		space := unicode.IsSpace(c)
		if space && word {
			out = append(out, text[start:i])
			start = i
		}
		word = !space
	}
	return append(out, text[start:])
}

// ArgumentPieces cuts the arguments of a call at word boundaries, like tokens. Joined, the pieces are s again.
func ArgumentPieces(s string) []string {
	var out []string
	start := 0
	word := func(b byte) bool {
		return b >= 0x80 || b == '_' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9'
	}
	for i := 1; i < len(s); i++ {
		if word(s[i]) != word(s[i-1]) {
			out = append(out, s[start:i])
			start = i
		}
	}
	return append(out, s[start:])
}

// minCut is the length in bytes from which CutText saves time.
const minCut = 256

// CutText cuts a member's text out of a JSON object, because reading long audio as JSON costs more than all the rest. The
// quoted key cannot occur inside a JSON string; the caller checks that it was the member it wants. False means that there
// is no such text, or one with an escape.
func CutText(data []byte, key string) (rest, text []byte, ok bool) {
	if len(data) < minCut {
		return nil, nil, false
	}
	_, after, ok := bytes.Cut(data, []byte(`"`+key+`":`))
	after = bytes.TrimLeft(after, " \n\r\t")
	if !ok || len(after) == 0 || after[0] != '"' {
		return nil, nil, false
	}
	begin := len(data) - len(after) + 1
	end := bytes.IndexByte(data[begin:], '"')
	if end < 0 || bytes.IndexByte(data[begin:begin+end], '\\') >= 0 {
		return nil, nil, false
	}
	rest = append(append(make([]byte, 0, len(data)-end), data[:begin]...), data[begin+end:]...)
	return rest, data[begin : begin+end], true
}

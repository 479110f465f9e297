// Package agent defines agents: instructions, tools, voices and models, each a YAML or JSON document (docs/agents.md).
// A [Catalog] holds those of a gateway: the configured one, those of files, and stored edits, each layer replacing the
// one below.
package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"voicegw/registry"
)

// The limits of a document.
const (
	MaxBytes    = 256 << 10
	MaxPlaybook = 64 << 10
	// MaxID, MaxName, MaxDescription, MaxGreeting and MaxNotice are in characters.
	MaxID          = 64
	MaxName        = 100
	MaxDescription = 1000
	MaxGreeting    = 2000
	MaxNotice      = registry.MaxSentence
	MaxTools       = 500
	MaxSwitchTo    = 200
	maxCalls       = 1000
	maxToolTime    = 10 * time.Minute
)

// Agent is one agent. It is immutable.
type Agent struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Playbook    string `json:"playbook"`
	// Tools are the IDs of the allowed tools; nil means all, an empty list none.
	Tools    []string          `json:"tools,omitzero"`
	Voices   map[string]string `json:"voices,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Model    string            `json:"model,omitempty"`
	Language string            `json:"language,omitempty"`
	// Greeting instructs the model how to open a session. If empty, the user speaks first.
	Greeting string `json:"greeting,omitempty"`
	// Notice is said exactly at the beginning of a voice session, instead of the configured one; may be empty.
	Notice   string   `json:"notice,omitempty"`
	Budget   Budgets  `json:"budget,omitzero"`
	SwitchTo []string `json:"switch_to,omitempty"`
	// Disabled agents start no conversations. Written as enabled: false.
	Disabled bool     `json:"-"`
	Warnings []string `json:"-"`
}

// Budgets are an agent's budgets by mode.
type Budgets struct {
	Voice Budget `json:"voice,omitzero"`
	Text  Budget `json:"text,omitzero"`
}

// Budget limits a turn's tool calls. Zero fields take the configured value.
type Budget struct {
	Retrieval int      `json:"retrieval,omitempty"`
	Total     int      `json:"total,omitempty"`
	TopK      int      `json:"top_k,omitempty"`
	ToolTime  Duration `json:"tool_time,omitempty"`
}

// Duration is written as in "1.5s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// MarshalJSON writes a document that Read reads as the same agent.
func (a Agent) MarshalJSON() ([]byte, error) {
	type plain Agent // without this method
	d := struct {
		plain
		Enabled *bool `json:"enabled,omitempty"`
	}{plain: plain(a)}
	if a.Disabled {
		d.Enabled = new(bool)
	}
	return json.Marshal(d)
}

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// ValidID reports whether id is 1 to MaxID lower-case letters, digits, - and _, starting with a letter or digit.
func ValidID(id string) bool { return len(id) <= MaxID && idForm.MatchString(id) }

// Version identifies an agent's content in eight letters, equal on every node.
func (a Agent) Version() string { return sum(a.Encoded()) }

// Encoded is the agent as written by MarshalJSON.
func (a Agent) Encoded() []byte {
	data, err := json.Marshal(a)
	if err != nil {
		panic(err) // only strings, numbers and lists
	}
	return data
}

// VersionOf identifies the content of several agents, given their versions by ID; "" for none.
func VersionOf(versions map[string]string) string {
	if len(versions) == 0 {
		return ""
	}
	lines := make([]string, 0, len(versions))
	for id, version := range versions {
		lines = append(lines, id+" "+version)
	}
	slices.Sort(lines)
	return "1.0." + sum([]byte(strings.Join(lines, "\n")))
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:4])
}

// IDFor derives an ID: "Bücher & Hefte" becomes "bucher-hefte", a name without Latin letters "agent-9b1f04c2", a blank
// one "".
func IDFor(name string) string {
	var id strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(name)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' && id.Len() > 0:
			id.WriteRune(r)
		case r == 'ß':
			id.WriteString("ss")
		case unicode.Is(unicode.Mn, r): // an accent
		case id.Len() > 0 && !strings.HasSuffix(id.String(), "-"):
			id.WriteByte('-')
		}
	}
	short := id.String()[:min(id.Len(), MaxID)]
	if short = strings.Trim(short, "-"); short == "" && strings.TrimSpace(name) != "" {
		return "agent-" + sum([]byte(name))
	}
	return short
}

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
)

// The bounds of a document.
const (
	// MaxBytes is the most bytes of a document, MaxPlaybook those of its playbook alone.
	MaxBytes    = 256 << 10
	MaxPlaybook = 64 << 10
	// MaxID, MaxName, MaxDescription and MaxGreeting are characters.
	MaxID          = 64
	MaxName        = 100
	MaxDescription = 1000
	MaxGreeting    = 2000
	// MaxTools and MaxSwitchTo are entries.
	MaxTools    = 500
	MaxSwitchTo = 200
	// maxCalls bounds the numbers of a budget, maxToolTime its time.
	maxCalls    = 1000
	maxToolTime = 10 * time.Minute
)

// Agent is one agent. It is not changed once it has been read, and may be used concurrently.
type Agent struct {
	// ID names the agent in requests; see [ValidID].
	ID string `json:"id"`
	// Name and Description tell people what the agent is for.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Playbook says to the model who it is and what it has to do.
	Playbook string `json:"playbook"`
	// Tools are the ids of the tools that the agent may use; nil means all that there are, and an
	// empty list none.
	Tools []string `json:"tools,omitzero"`
	// Voices is the voice for each provider, by its name; without an entry, the configuration decides.
	Voices map[string]string `json:"voices,omitempty"`
	// Provider is with which provider the agent speaks, Model with which of its models. An empty
	// Provider is the gateway's, an empty Model the provider's.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// Language is a BCP 47 tag; if it is empty, the model chooses.
	Language string `json:"language,omitempty"`
	// Greeting tells the model how to open a session. If it is empty, the user speaks first.
	Greeting string `json:"greeting,omitempty"`
	// Budget is what a turn's tool calls may use.
	Budget Budgets `json:"budget,omitzero"`
	// SwitchTo are the ids of the agents to which this one may hand its user over.
	SwitchTo []string `json:"switch_to,omitempty"`
	// Disabled agents begin no conversation. Written as enabled: false.
	Disabled bool `json:"-"`
	// Warnings are names in the document that may be wrong, each with its line. They are no part of the document.
	Warnings []string `json:"-"`
}

// Budgets are an agent's own budgets by the way of talking.
type Budgets struct {
	Voice Budget `json:"voice,omitzero"`
	Text  Budget `json:"text,omitzero"`
}

// Budget is what the tool calls of a turn may use. A field that is 0 is taken from the
// configuration.
type Budget struct {
	Retrieval int      `json:"retrieval,omitempty"`
	Total     int      `json:"total,omitempty"`
	TopK      int      `json:"top_k,omitempty"`
	ToolTime  Duration `json:"tool_time,omitempty"`
}

// Duration is a time that is written as in "1.5s".
type Duration time.Duration

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// MarshalJSON writes an agent as a document that Read reads as the same agent.
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

// ValidID reports whether an agent may have that id: small letters, digits, - and _, beginning with
// a letter or digit, at most MaxID.
func ValidID(id string) bool { return len(id) <= MaxID && idForm.MatchString(id) }

// Version identifies the content of an agent in eight letters: the same content has the same version
// on every node.
func (a Agent) Version() string { return sum(a.Encoded()) }

// Encoded is the agent as MarshalJSON writes it.
func (a Agent) Encoded() []byte {
	data, err := json.Marshal(a)
	if err != nil {
		panic(err) // only texts, numbers and lists of them
	}
	return data
}

// VersionOf identifies the content of all agents, of which it gets the versions by their ids. Of no agent
// it is empty.
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

// IDFor makes an id of a name: "Bücher & Hefte" becomes "bucher-hefte". A name without Latin letters and
// digits gets one that a person cannot read, always the same: "agent-9b1f04c2". That of a blank name is empty.
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

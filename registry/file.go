package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Entry is one tool of a [File]. It must not be changed after it was built or loaded.
type Entry struct {
	spec.Spec
	// Summary is the first line of the guide, the only part of it in a prompt.
	Summary string `json:"summary"`
	// Guide is the whole guide.md, given to a model on demand.
	Guide string `json:"guide"`
	// Forms are the parameters in the providers' forms.
	Forms Forms `json:"forms"`
	// Handler is the hash of the handler's source, so that the version of the registry tells two
	// handlers apart; empty if the file was not built.
	Handler string `json:"handler,omitempty"`
}

// Forms holds the parameter schema of one tool in each provider's form. The forms
// may accept more than Spec.Parameters, never less: the registry enforces
// Spec.Parameters in any case.
type Forms struct {
	// OpenAI is the JSON Schema for Realtime's flat function tools.
	OpenAI json.RawMessage `json:"openai"`
	// OpenAIChat is the JSON Schema for Chat Completions' nested function tools.
	OpenAIChat json.RawMessage `json:"openaiChat"`
	// Gemini is Gemini's Schema object, with its types in capitals; empty for a tool without
	// parameters, since Gemini takes no object without properties.
	Gemini json.RawMessage `json:"gemini"`
}

// FormsOf makes the forms of parameters that compile. Its error is [adapter.Problems].
func FormsOf(parameters json.RawMessage) (Forms, error) {
	openAI, gemini, err := adapter.All(parameters)
	return Forms{OpenAI: openAI, OpenAIChat: openAI, Gemini: gemini}, err
}

// ownForms makes the forms of a tool that the registry itself has.
func ownForms(parameters json.RawMessage) Forms {
	forms, err := FormsOf(parameters)
	if err != nil {
		panic("registry: a tool of its own: " + err.Error()) // its schema is made here, of texts in quotes
	}
	return forms
}

// File is tool_registry.json.
type File struct {
	// Version is "1.0." and the first 8 hex digits of SHA-256 over the canonical
	// JSON of everything but Version, GeneratedAt, GitCommit and Envelope, the tools sorted by
	// id. See [File.ContentVersion].
	Version string `json:"version"`
	// GeneratedAt is the time of the build, or of SOURCE_DATE_EPOCH, RFC 3339 UTC with
	// milliseconds; not hashed.
	GeneratedAt string `json:"generatedAt"`
	// GitCommit is the last commit that changed the tools, empty if it is unknown; not hashed.
	GitCommit string `json:"gitCommit"`
	// Envelope is [EnvelopeSchema], in which each answer is put; [File.Encode] sets it. Not hashed.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Tools    []Entry         `json:"tools"`
}

const (
	// MaxFileBytes is the largest tool_registry.json.
	MaxFileBytes = 64 << 20

	maxFileDepth = document.MaxSpecDepth + 4
)

// versionPrefix is the version of the file's format.
const versionPrefix = "1.0."

// contentVersion hashes the decoded list of tools, whatever its order.
func contentVersion(tools []any) string {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b any) int {
		return strings.Compare(toolID(a), toolID(b))
	})
	sum := sha256.Sum256(document.AppendCanonical(nil, map[string]any{"tools": tools}))
	return versionPrefix + hex.EncodeToString(sum[:4])
}

func toolID(entry any) string {
	object, _ := entry.(map[string]any)
	id, _ := object["toolId"].(string)
	return id
}

// ContentVersion computes the version from the file's content. It does not depend on the
// order of Tools, nor on key order or white space in hand-written parts. It fails if a raw
// part of an entry is not JSON that strict decoding accepts.
func (f File) ContentVersion() (string, error) {
	tools := f.Tools
	if tools == nil {
		tools = []Entry{}
	}
	data, err := document.Marshal(tools)
	if err != nil {
		return "", fmt.Errorf("registry: the tools cannot be written: %w", err)
	}
	v, problems, _ := document.Decode(data, MaxFileBytes, maxFileDepth)
	if len(problems) > 0 {
		return "", fmt.Errorf("registry: the tools cannot be read again: %s", problems[0])
	}
	list, _ := v.([]any)
	return contentVersion(list), nil
}

// Encode writes the file: tools sorted by id, indented by two spaces, ending in a
// newline. Version is always computed by [File.ContentVersion], whatever the field holds.
// Equal content, time and commit give equal bytes on every machine. It fails if
// ContentVersion fails.
func (f File) Encode() ([]byte, error) {
	version, err := f.ContentVersion()
	if err != nil {
		return nil, err
	}
	f.Version, f.Envelope = version, EnvelopeSchema()
	f.Tools = slices.Clone(f.Tools)
	if f.Tools == nil {
		f.Tools = []Entry{}
	}
	slices.SortStableFunc(f.Tools, func(a, b Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	data, err := document.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("registry: the file cannot be written: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("registry: the file cannot be written: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

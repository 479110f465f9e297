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

// Entry is a tool of a [File]. It must not change after it was built or loaded.
type Entry struct {
	spec.Spec
	Summary string `json:"summary"`
	Guide   string `json:"guide"`
	Forms   Forms  `json:"forms"`
	// Handler is a hash of the handler's source, so that the registry's version distinguishes handlers; empty in a
	// file that wasn't built.
	Handler string `json:"handler,omitempty"`
}

// Forms holds a tool's parameter schema in each provider's form. A form may accept more than Spec.Parameters, never
// less; the registry enforces Spec.Parameters.
type Forms struct {
	// OpenAI is the JSON Schema for Realtime's flat function tools.
	OpenAI json.RawMessage `json:"openai"`
	// OpenAIChat is the JSON Schema for Chat Completions' nested function tools.
	OpenAIChat json.RawMessage `json:"openaiChat"`
	// Gemini is Gemini's Schema object; empty for a tool without parameters, because Gemini rejects objects without
	// properties.
	Gemini json.RawMessage `json:"gemini"`
}

// FormsOf makes the forms of valid parameters. The error is [adapter.Problems].
func FormsOf(parameters json.RawMessage) (Forms, error) {
	openAI, gemini, err := adapter.All(parameters)
	return Forms{OpenAI: openAI, OpenAIChat: openAI, Gemini: gemini}, err
}

// File is tool_registry.json.
type File struct {
	// Version is "1.0." and the first 8 hex digits of a SHA-256 of the canonical JSON, with the tools sorted by id
	// and without Version, GeneratedAt, GitCommit and Envelope. See [File.ContentVersion].
	Version string `json:"version"`
	// GeneratedAt is the build time, or SOURCE_DATE_EPOCH, in RFC 3339 UTC with milliseconds.
	GeneratedAt string `json:"generatedAt"`
	// GitCommit is the last commit that changed the tools; may be empty.
	GitCommit string `json:"gitCommit"`
	// Envelope is [EnvelopeSchema], set by [File.Encode].
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Tools    []Entry         `json:"tools"`
}

const (
	// MaxFileBytes limits tool_registry.json.
	MaxFileBytes = 64 << 20

	maxFileDepth = document.MaxSpecDepth + 4
)

const versionPrefix = "1.0."

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

// ContentVersion computes the version from the content. It doesn't depend on the order of tools and keys or on white
// space. It fails if a raw part of an entry is invalid JSON.
func (f File) ContentVersion() (string, error) {
	data, err := document.Marshal(append([]Entry{}, f.Tools...))
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

// join returns a registry file with the foreign tools too.
func (f Foreign) join(data []byte) ([]byte, error) {
	if len(f.Entries) == 0 {
		return data, nil
	}
	var file File
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, &LoadError{Problems: []document.Problem{{Message: fmt.Sprintf("The file cannot be read: %v.", err)}}}
	}
	if want, err := file.ContentVersion(); err != nil || want != file.Version {
		return data, err // loading it reports the problem
	}
	file.Tools = append(file.Tools, f.Entries...)
	return file.Encode()
}

// Encode encodes the file deterministically: tools sorted by id, indented by two spaces, with a final newline.
// Version is computed by [File.ContentVersion], whose errors it returns.
func (f File) Encode() ([]byte, error) {
	version, err := f.ContentVersion()
	if err != nil {
		return nil, err
	}
	f.Version, f.Envelope = version, EnvelopeSchema()
	f.Tools = append([]Entry{}, f.Tools...)
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

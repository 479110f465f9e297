package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"voicegw/internal/textutil"
	"voicegw/registry"
)

// Severity says whether a finding keeps the registry from being built.
type Severity string

// The severities. Warnings keep nothing from being built.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Docs is the page that findings link to, and Tutorial the one that a new author reads first, relative to the project.
const (
	Docs     = "docs/tools-reference.md"
	Tutorial = "docs/tools.md"
)

// Finding is one error in a tool, or one point that its author should reconsider.
type Finding struct {
	Severity Severity `json:"severity"`
	// Tool is the tool's directory name; empty if the finding is not about a single tool.
	Tool string `json:"tool,omitempty"`
	// File is relative to the project, with slashes.
	File string `json:"file"`
	// Line counts from 1; 0 means the file as a whole.
	Line int `json:"line,omitempty"`
	// Path is a JSON pointer (RFC 6901) into a JSON file.
	Path string `json:"path,omitempty"`
	// Rule names the heading of [Docs] to which Link leads.
	Rule string `json:"rule"`
	// Message says what is wrong and how to fix it.
	Message string `json:"message"`
	Link    string `json:"link"`
}

// Report lists all findings, sorted by file, line and path.
type Report struct {
	// Version is the registry's version; empty if there are errors.
	Version string `json:"version,omitempty"`
	// Tools are the ids of the tools that were read, sorted.
	Tools    []string  `json:"tools"`
	Findings []Finding `json:"findings"`
	// Written are the files whose content changed, relative to the project.
	Written []string `json:"written,omitempty"`

	registry registry.File // what was built; no tools if there are errors
}

// Errors counts the findings that are errors.
func (r *Report) Errors() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == SeverityError {
			n++
		}
	}
	return n
}

// WriteJSON writes the report as one JSON object, for editors and scripts.
func (r *Report) WriteJSON(w io.Writer) error {
	if err := writeJSON(w, r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// writeJSON writes a value for a person or an editor to read.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Summary returns the outcome of a build or a check: a line of counts, and a line for each
// written file. otherwise ends the first line if there are errors; it may be empty.
func (r *Report) Summary(otherwise string) string {
	counts := []string{textutil.Count(len(r.Tools), "tool"), textutil.Count(r.Errors(), "error"), textutil.Count(len(r.Findings)-r.Errors(), "warning")}
	if r.Errors() > 0 {
		if otherwise != "" {
			counts = append(counts, otherwise)
		}
		return strings.Join(counts, ", ")
	}
	if r.Version != "" {
		counts = append([]string{"registry " + r.Version}, counts...)
	}
	for _, name := range r.Written {
		counts = append(counts, "wrote "+name)
	}
	return strings.Join(counts, "\n  ")
}

// WriteFindings writes one paragraph for each finding, in the form file:line:
// message that editors understand.
func (r *Report) WriteFindings(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
		if f.Severity == SeverityWarning {
			b.WriteString("warning: ")
		}
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message + "\n    " + f.Link + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	return nil
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	r.Findings = slices.Compact(r.Findings)
}

// The rules that are not named after a field of schema.json. A field's rule is its name in
// lower-case letters.
const (
	ruleDirectory  = "the-directory"
	ruleFiles      = "the-files"
	ruleSchema     = "schemajson"
	ruleParameters = "parameters"
	ruleForms      = "what-a-provider-cannot-carry"
	ruleGuide      = "guidemd"
	ruleSummary    = "the-summary"
	ruleExamples   = "the-examples"
	ruleHandler    = "handlergo"
	ruleGenerated  = "generated-files"
	ruleVariant    = "variantof"
	ruleWrites     = "an-action-that-writes-without-confirmation"
)

// fields are the fields of schema.json, as written.
var fields = [...]string{
	"toolId", "variantOf", "version", "title", "tags", "description", "category", "sideEffects", "idempotent", "requiresConfirmation", "confirmWhen",
	"allowedModes", "requires", "rateLimit", "availability", "job", "latencyBudgetMs", "timeoutMs", "behavior", "scheduling", "cancellable",
	"idempotencyKey", "preview", "clamp", "parameters", "output", "settings", "dynamic",
}

// ruleOf returns the rule for a pointer into schema.json: that of its field.
func ruleOf(path string) string {
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(fields[:], field) {
		return strings.ToLower(field)
	}
	return ruleSchema
}

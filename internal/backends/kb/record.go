package kb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Type is the subject of a record and the first part of its id.
type Type string

// The types.
const (
	TypeProject Type = "project"
	TypePerson  Type = "person"
	TypeProcess Type = "process"
	TypeLink    Type = "link"
	TypeDoc     Type = "doc"
)

// Types returns all types, in the order of the documentation.
func Types() []Type { return []Type{TypeProject, TypePerson, TypeProcess, TypeLink, TypeDoc} }

// Namespace is the audience of a record. Grants permit reading it.
type Namespace string

// The namespaces.
const (
	NamespaceStudio   Namespace = "studio"
	NamespacePersonal Namespace = "personal"
	NamespacePublic   Namespace = "public"
)

// Namespaces returns all namespaces.
func Namespaces() []Namespace {
	return []Namespace{NamespaceStudio, NamespacePersonal, NamespacePublic}
}

// The limits of a record. A record that exceeds one is a Problem.
const (
	MaxIDBytes       = 96 // after the colon
	MaxTitleRunes    = 200
	MaxTextBytes     = 64 << 10
	MaxTags          = 32
	MaxTagRunes      = 48
	MaxAuthors       = 16
	MaxCategories    = 8
	MaxCategoryRunes = 80
	MaxURLBytes      = 2048
	MaxMetadataBytes = 16 << 10 // as JSON
)

// Record is an entry of the knowledge base. Its maps and slices are shared, so they must not change.
type Record struct {
	ID        string    `json:"id"`        // the type, a colon and a name of a-z, 0-9, "_", "-" and ".": person:ada_l
	Type      Type      `json:"type"`      // the first part of the ID
	Namespace Namespace `json:"namespace"` // studio by default
	// Title is the name that people use. A question with the whole title finds the record first.
	Title string   `json:"title"`
	Text  string   `json:"text,omitempty"` // plain text or Markdown. It may be empty.
	Tags  []string `json:"tags,omitempty"` // in lower case, sorted, each once
	// Authors are ids of persons, sorted, each once. A person needs no record. A file may use a handle: ada_l for
	// person:ada_l.
	Authors    []string `json:"authors,omitempty"`
	Categories []string `json:"categories,omitempty"`  // names as people write them, sorted, each once
	URL        string   `json:"url,omitempty"`         // http, https, mailto or tel; or empty
	SourceType string   `json:"source_type,omitempty"` // the origin ("handbook", "crm"), or empty
	// LastUpdated is UTC. The default is the file's time, so that a change of the file changes the record.
	LastUpdated time.Time      `json:"last_updated"`
	Metadata    map[string]any `json:"metadata,omitempty"` // has JSON values; numbers are json.Number
}

var idForm = regexp.MustCompile(`^([a-z]+):[a-z0-9][a-z0-9_.-]*$`)

// Normalize changes tags, white space, times and other parts to their normal form, and sets the default type and
// namespace.
func (r *Record) Normalize() {
	r.ID = strings.TrimSpace(r.ID)
	r.Title = strings.Join(strings.Fields(r.Title), " ")
	r.Text = strings.TrimSpace(strings.ReplaceAll(r.Text, "\r\n", "\n"))
	r.URL = strings.TrimSpace(r.URL)
	r.SourceType = strings.TrimSpace(r.SourceType)
	r.LastUpdated = r.LastUpdated.UTC().Truncate(time.Millisecond)
	r.Namespace = cmp.Or(r.Namespace, NamespaceStudio)
	if prefix, _, ok := strings.Cut(r.ID, ":"); ok && r.Type == "" {
		r.Type = Type(prefix)
	}
	r.Tags = NormalizeTags(r.Tags)
	r.Authors = normalized(r.Authors, authorID)
	r.Categories = normalized(r.Categories, func(name string) string { return strings.Join(strings.Fields(name), " ") })
	if len(r.Metadata) == 0 {
		r.Metadata = nil
	}
}

// NormalizeTags returns the tags in lower case, trimmed, sorted, each once and none empty, in new memory.
func NormalizeTags(tags []string) []string {
	return normalized(tags, func(tag string) string { return strings.ToLower(strings.TrimSpace(tag)) })
}

// normalized returns the values in the form, sorted, each once and none empty.
func normalized(values []string, form func(string) string) []string {
	var out []string
	for _, value := range values {
		if value = form(value); value != "" {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func authorID(author string) string {
	author = strings.TrimSpace(author)
	if author == "" || strings.Contains(author, ":") {
		return author
	}
	return string(TypePerson) + ":" + author
}

// Check returns all Faults of a normalized record in one error that wraps ErrRecord, or nil.
func (r *Record) Check() error {
	if faults := r.Faults(); len(faults) > 0 {
		return fmt.Errorf("%w %q: %s", ErrRecord, r.ID, strings.Join(faults, "; "))
	}
	return nil
}

// Faults returns all faults of a normalized record, for its author.
func (r *Record) Faults() []string {
	var faults []string
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	r.checkID(bad)
	if !slices.Contains(Namespaces(), r.Namespace) {
		bad("namespace %q is not one of %s", r.Namespace, joined(Namespaces()))
	}
	if r.Title == "" {
		bad("title is missing")
	} else if n := utf8.RuneCountInString(r.Title); n > MaxTitleRunes {
		bad("title has %d characters; at most %d", n, MaxTitleRunes)
	}
	if len(r.Text) > MaxTextBytes {
		bad("text has %d bytes; at most %d: split it into several records", len(r.Text), MaxTextBytes)
	}
	for _, part := range []string{r.Title, r.Text, r.SourceType} {
		if !utf8.ValidString(part) {
			bad("text is not UTF-8")
			break
		}
	}
	checkList(bad, r.Tags, "tags", MaxTags, tooLong("tag", MaxTagRunes))
	checkList(bad, r.Authors, "authors", MaxAuthors, authorFault)
	checkList(bad, r.Categories, "categories", MaxCategories, tooLong("category", MaxCategoryRunes))
	r.checkURL(bad)
	r.checkLastUpdated(bad)
	r.checkMetadata(bad)
	return faults
}

func (r *Record) checkID(bad func(string, ...any)) {
	form := idForm.FindStringSubmatch(r.ID)
	switch {
	case r.ID == "":
		bad("id is missing; write one like person:ada_l")
	case form == nil:
		bad("id %q is not of the form type:name, with a name of a-z, 0-9, \"_\", \"-\" and \".\"", r.ID)
	case len(r.ID)-len(form[1])-1 > MaxIDBytes:
		bad("id has a name longer than %d bytes", MaxIDBytes)
	case !slices.Contains(Types(), Type(form[1])):
		bad("id begins with %q, which is not one of %s", form[1], joined(Types()))
	case r.Type != Type(form[1]):
		bad("type %q is not that of the id %q", r.Type, r.ID)
	}
}

// checkList checks the number of values, and each one by fault, which returns "" for a valid one.
func checkList(bad func(string, ...any), values []string, name string, most int, fault func(value string) string) {
	if len(values) > most {
		bad("%d %s; at most %d", len(values), name, most)
	}
	for _, value := range values {
		if text := fault(value); text != "" {
			bad("%s", text)
		}
	}
}

// tooLong returns a function for checkList that bounds the values' characters.
func tooLong(kind string, most int) func(string) string {
	return func(value string) string {
		if n := utf8.RuneCountInString(value); n > most || !utf8.ValidString(value) {
			return fmt.Sprintf("%s %.20q… has %d characters or is not UTF-8; at most %d", kind, value, n, most)
		}
		return ""
	}
}

func authorFault(id string) string {
	if form := idForm.FindStringSubmatch(id); form == nil || Type(form[1]) != TypePerson || len(id)-len(form[1])-1 > MaxIDBytes {
		return fmt.Sprintf("author %.80q is not the id or the handle of a person, like person:ada_l or ada_l", id)
	}
	return ""
}

func (r *Record) checkURL(bad func(string, ...any)) {
	if r.URL == "" {
		return
	}
	u, err := url.Parse(r.URL)
	switch {
	case len(r.URL) > MaxURLBytes:
		bad("url has %d bytes; at most %d", len(r.URL), MaxURLBytes)
	case err != nil:
		bad("url is invalid")
	case u.Scheme == "mailto" || u.Scheme == "tel":
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		bad("url must be http or https with a host, mailto or tel")
	}
}

func (r *Record) checkLastUpdated(bad func(string, ...any)) {
	switch year := r.LastUpdated.UTC().Year(); {
	case r.LastUpdated.IsZero():
		bad("last_updated is missing; write RFC 3339, like 2026-03-01T09:00:00Z")
	case year < 0 || year > 9999:
		bad("last_updated is in the year %d in UTC; write a time of the years 0 to 9999", year)
	}
}

func (r *Record) checkMetadata(bad func(string, ...any)) {
	if r.Metadata == nil {
		return
	}
	data, err := json.Marshal(r.Metadata)
	switch {
	case err != nil:
		bad("metadata is not JSON: %v", err)
	case len(data) > MaxMetadataBytes:
		bad("metadata has %d bytes of JSON; at most %d", len(data), MaxMetadataBytes)
	default:
		checkValue(r.Metadata, 0, bad)
	}
}

// The bounds of a value in metadata, which every client must be able to parse.
const (
	maxValueDepth     = 16
	maxNumberBytes    = 100
	maxNumberExponent = 300
)

func checkValue(v any, depth int, bad func(string, ...any)) {
	if depth > maxValueDepth {
		bad("metadata is nested deeper than %d levels", maxValueDepth)
		return
	}
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if e, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || max(e, -e) > maxNumberExponent || len(v) > maxNumberBytes {
			bad("metadata contains the number %.20s…; at most %d digits and an exponent of at most %d",
				v, maxNumberBytes, maxNumberExponent)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			checkValue(v[name], depth+1, bad)
		}
	case []any:
		for _, one := range v {
			checkValue(one, depth+1, bad)
		}
	}
}

// Hash returns 32 hexadecimal digits. Equal records have equal hashes on every machine.
func (r *Record) Hash() string {
	data, err := json.Marshal(r) // sorts map keys
	if err != nil {
		// Check refuses such metadata.
		c := *r
		c.Metadata = nil
		data, _ = json.Marshal(&c)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// EmbeddingText returns the text for an Embedder: the title, the tags, and the text up to a limit of embedding models,
// cut between words.
func (r *Record) EmbeddingText() string {
	const most = 6000 // bytes; models take about 8,000 tokens, some only 2,000
	var b strings.Builder
	b.WriteString(r.Title)
	if len(r.Tags) > 0 {
		b.WriteString("\n" + strings.Join(r.Tags, ", "))
	}
	if r.Text != "" {
		b.WriteString("\n\n" + r.Text)
	}
	text := b.String()
	return text[:cutAt(text, most)]
}

// cutAt returns the largest end of a part of a text with at most n bytes, at the end of a word if possible.
func cutAt(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if space := strings.LastIndexAny(text[:n], " \n"); space > n/2 {
		return space
	}
	return n
}

func joined[T ~string](all []T) string {
	parts := make([]string, len(all))
	for i, one := range all {
		parts[i] = string(one)
	}
	return strings.Join(parts, ", ")
}

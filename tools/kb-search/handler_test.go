package kbsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// index gives every search the same answer, and records the query.
type index struct {
	kb.Index
	results kb.Results
	err     error
	names   kb.Names
	asked   kb.Query
}

func (x *index) Names(context.Context, []kb.Namespace) (kb.Names, error) { return x.names, x.err }

func (x *index) Search(_ context.Context, q kb.Query) (kb.Results, error) {
	x.asked = q
	return x.results, x.err
}

var ada = kb.Record{
	ID: "person:ada_l", Type: kb.TypePerson, Namespace: kb.NamespaceStudio, Title: "Ada L", Text: "Ada draws letters.", URL: "https://example.com/ada",
	SourceType: "handbook", LastUpdated: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Metadata: map[string]any{"room": "4"},
}

// args are the registry's arguments for a query alone.
func args() Args {
	return Args{Query: "letters", Namespace: ArgsNamespaceStudio, TopK: 5, IncludeSnippets: true}
}

func run(t *testing.T, x *index, a Args, mode spec.Mode) (Answer, error) {
	t.Helper()
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{
		Args: a, Needs: Needs{KB: kb.NewLibrary(x, kb.Grants{})}, Session: registry.Session{Mode: mode},
	})
	if err != nil {
		return Answer{}, err
	}
	if len(result.Intents) > 0 {
		t.Errorf("intents %v", result.Intents)
	}
	registrytest.Fits(t, "kb-search", result.Data)
	return result.Data.(Answer), nil
}

func TestEvidence(t *testing.T) {
	x := &index{results: kb.Results{Took: 12 * time.Millisecond, Hits: []kb.Hit{
		{Record: ada, Score: 1, Snippet: "draws letters"}, {Record: kb.Record{ID: "doc:type", Type: kb.TypeDoc, Namespace: kb.NamespaceStudio, Title: "Type"}, Score: 0.5},
	}}}
	got, err := run(t, x, args(), spec.ModeVoice)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kb.Query{Text: "letters", Namespaces: []kb.Namespace{kb.NamespaceStudio}, Limit: 5}, x.asked); diff != "" {
		t.Error("asked:", diff)
	}
	want := Answer{QueryTimeMS: 12, Results: []kb.Evidence{
		{ID: "person:ada_l", Type: "person", Title: "Ada L", Snippet: "draws letters", Score: 1, SourceType: "handbook",
			LastUpdated: "2026-03-01T09:00:00.000Z", URL: "https://example.com/ada", Metadata: map[string]any{"room": "4"}},
		{ID: "doc:type", Type: "doc", Title: "Type", Score: 0.5},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNamespaceIsNotGranted: without the grant the model gets the namespaces that it has, and nothing is searched;
// with it, the records are found.
func TestNamespaceIsNotGranted(t *testing.T) {
	grants, err := kb.NewGrants(map[kb.Namespace]kb.Grant{kb.NamespacePersonal: {Users: []string{"ada"}, Agents: []string{"concierge"}, Scopes: []string{"private"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		session registry.Session
		granted bool
	}{
		"an unvouched user": {registry.Session{UserID: "ada", Agent: "default"}, false},
		"the user":          {registry.Session{UserID: "ada", Vouched: true}, true},
		"the agent":         {registry.Session{Agent: "concierge"}, true},
		"the scope":         {registry.Session{Scopes: []string{"private"}}, true},
	} {
		x := &index{results: kb.Results{Hits: []kb.Hit{{Record: kb.Record{ID: "doc:x", Namespace: kb.NamespacePersonal}, Score: 1}}}}
		a := args()
		a.Namespace = ArgsNamespacePersonal
		result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: a, Needs: Needs{KB: kb.NewLibrary(x, grants)}, Session: tc.session})
		if tc.granted {
			if err != nil || len(result.Data.(Answer).Results) != 1 {
				t.Errorf("%s: %+v, %v", name, result.Data, err)
			}
			continue
		}
		var e *registry.ToolError
		if !errors.As(err, &e) || e.Type != registry.ErrorAuth || e.Retryable || !strings.Contains(e.Message, "personal") || !strings.Contains(e.Suggestion, "studio public") || x.asked.Text != "" {
			t.Errorf("%s: %+v, asked %+v", name, err, x.asked)
		}
	}
}

// TestAlternatives: three wordings are searched, and the others are named.
func TestAlternatives(t *testing.T) {
	x := &index{}
	a := args()
	long := strings.Repeat("x", 201)
	a.Alternatives = []string{" fonts  and type ", "Letters", "", "FONTS and type", long, "glyphs", "typography", "one more"}
	got, err := run(t, x, a, spec.ModeVoice)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fonts and type", "glyphs", "typography"}, x.asked.Alternatives); diff != "" {
		t.Error(diff)
	}
	var left []string
	for _, l := range got.InvalidAlternatives {
		left = append(left, l.Alternative+" "+l.Reason)
	}
	if diff := cmp.Diff([]string{" is blank", long + " is longer than 200 characters", "one more exceeds the limit of 3"}, left); diff != "" {
		t.Error(diff)
	}
}

func TestNothingFoundIsNoError(t *testing.T) {
	got, err := run(t, &index{}, args(), spec.ModeVoice)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(got)
	if want := `{"results":[],"query_time_ms":0,"clamped":false}`; err != nil || string(data) != want {
		t.Errorf("%s %v, want %s", data, err, want)
	}
}

func TestFilters(t *testing.T) {
	x := &index{}
	kind, start, end := ArgsFiltersTypePerson, "2026-01-01", "2026-01-31"
	a := args()
	a.Namespace = ArgsNamespacePublic
	a.Query = "  letters "
	a.Filters = &ArgsFilters{Type: &kind, Types: []ArgsFiltersTypesItem{ArgsFiltersTypesItemDoc}, Tags: []string{"Type", "hr", "type"}, DateRange: &ArgsFiltersDateRange{Start: &start, End: &end}}
	if _, err := run(t, x, a, spec.ModeText); err != nil {
		t.Fatal(err)
	}
	want := kb.Query{
		Text: "letters", Namespaces: []kb.Namespace{kb.NamespacePublic}, Types: []kb.Type{kb.TypePerson, kb.TypeDoc}, Tags: []string{"hr", "type"}, Limit: 5,
		From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 31, 23, 59, 59, 999_000_000, time.UTC),
	}
	if diff := cmp.Diff(want, x.asked); diff != "" {
		t.Error(diff)
	}
	a.Filters = &ArgsFilters{DateRange: &ArgsFiltersDateRange{End: &start}}
	if _, err := run(t, x, a, spec.ModeText); err != nil || !x.asked.From.IsZero() || x.asked.To.IsZero() {
		t.Errorf("an open range: from %v to %v, %v", x.asked.From, x.asked.To, err)
	}
}

// TestReturnFields: only the requested fields are returned; include_snippets overrides them for snippets.
func TestReturnFields(t *testing.T) {
	x := &index{results: kb.Results{Hits: []kb.Hit{{Record: ada, Score: 1, Snippet: "draws"}}}}
	for name, tc := range map[string]struct {
		fields  []ArgsReturnFieldsItem
		without bool // snippets
		want    []string
	}{
		"left out":           {nil, false, []string{"last_updated", "metadata", "snippet", "source_type", "url"}},
		"without snippets":   {nil, true, []string{"last_updated", "metadata", "source_type", "url"}},
		"none":               {[]ArgsReturnFieldsItem{}, false, nil},
		"one":                {[]ArgsReturnFieldsItem{"url"}, false, []string{"url"}},
		"all":                {[]ArgsReturnFieldsItem{"url", "snippet", "full_text", "metadata", "sources"}, false, []string{"full_text", "last_updated", "metadata", "snippet", "source_type", "url"}},
		"asked, but without": {[]ArgsReturnFieldsItem{"snippet", "url"}, true, []string{"url"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := args()
			a.ReturnFields, a.IncludeSnippets = tc.fields, !tc.without
			got, err := run(t, x, a, spec.ModeText)
			if err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(got.Results[0])
			var object map[string]any
			if err := json.Unmarshal(data, &object); err != nil {
				t.Fatal(err)
			}
			for _, key := range append([]string{"id", "type", "title", "score"}, tc.want...) {
				if _, has := object[key]; !has {
					t.Errorf("%s is missing from %s", key, data)
				}
				delete(object, key)
			}
			if len(object) > 0 {
				t.Errorf("not requested: %v", object)
			}
		})
	}
}

// TestVoiceReadsLess: a voice model gets shorter texts.
func TestVoiceReadsLess(t *testing.T) {
	long := ada
	long.Text = strings.Repeat("word ", 10_000)
	x := &index{results: kb.Results{Hits: []kb.Hit{{Record: long, Score: 1}}}}
	a := args()
	a.ReturnFields = []ArgsReturnFieldsItem{ArgsReturnFieldsItemFullText}
	lengths := map[spec.Mode]int{}
	for _, mode := range []spec.Mode{spec.ModeVoice, spec.ModeText} {
		got, err := run(t, x, a, mode)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"full_text"}, got.Results[0].Shortened); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
		lengths[mode] = len(got.Results[0].FullText)
	}
	if v, x := lengths[spec.ModeVoice], lengths[spec.ModeText]; v < 4000 || v > 4096 || x < 12000 || x > 12288 {
		t.Errorf("lengths %v", lengths)
	}
}

func TestClampedAndDegraded(t *testing.T) {
	x := &index{results: kb.Results{Degraded: true}}
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{
		Args: args(), Needs: Needs{KB: kb.NewLibrary(x, kb.Grants{})}, Clamped: map[string]registry.Clamped{"top_k": {Requested: "5", Applied: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Data.(Answer); !got.Clamped || !got.Degraded {
		t.Errorf("%+v", got)
	}
}

// TestPartlyValidTags: the search uses the valid tags, and the others are named.
func TestPartlyValidTags(t *testing.T) {
	x := &index{}
	a := args()
	tooLong := strings.Repeat("x", kb.MaxTagRunes+1)
	a.Filters = &ArgsFilters{Tags: []string{"hr", "  ", tooLong}}
	got, err := run(t, x, a, spec.ModeText)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hr"}, x.asked.Tags); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"  ", tooLong}, got.InvalidTags); diff != "" {
		t.Error(diff)
	}
}

// TestValidation: all faults are named at once, each with its place.
func TestValidation(t *testing.T) {
	a := args()
	a.Query = " \t"
	start, end := "2026-02-01", "2026-01-01"
	a.Filters = &ArgsFilters{Tags: []string{" "}, DateRange: &ArgsFiltersDateRange{Start: &start, End: &end}}
	x := &index{}
	_, err := run(t, x, a, spec.ModeText)
	e := toolError(t, err, registry.ErrorValidation)
	data, _ := json.Marshal(e.Details)
	for _, path := range []string{"/query", "/filters/tags", "/filters/date_range"} {
		if !strings.Contains(string(data), `"path":"`+path+`"`) {
			t.Errorf("%s is missing from %s", path, data)
		}
	}
	if e.Retryable || e.Suggestion == "" || x.asked.Text != "" {
		t.Errorf("%+v, asked %+v", e, x.asked)
	}
}

func TestQueryRefusedByTheIndex(t *testing.T) {
	_, err := run(t, &index{err: fmt.Errorf("%w: no", kb.ErrQuery)}, args(), spec.ModeText)
	toolError(t, err, registry.ErrorValidation)
}

func TestIndexFails(t *testing.T) {
	for _, cause := range []error{kb.ErrClosed, errors.New("dial tcp 10.0.0.1: refused")} {
		_, err := run(t, &index{err: cause}, args(), spec.ModeText)
		e := toolError(t, err, registry.ErrorTransient)
		if !e.Retryable || !errors.Is(err, cause) || strings.Contains(e.Message, "10.0.0.1") {
			t.Errorf("%+v", e)
		}
	}
}

// TestCancelled: a cancelled search is not the index's fault.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Execute(ctx, registry.Call[Args, Needs]{Args: args(), Needs: Needs{KB: kb.NewLibrary(&index{err: errors.New("broken off")}, kb.Grants{})}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func toolError(t *testing.T, err error, want registry.ErrorType) *registry.ToolError {
	t.Helper()
	var e *registry.ToolError
	if !errors.As(err, &e) || e.Type != want {
		t.Fatalf("the error is %v, want %s", err, want)
	}
	return e
}

// TestAuthorsAndCategories: known names are searched, and the others are named with the reason.
func TestAuthorsAndCategories(t *testing.T) {
	x := &index{names: kb.Names{
		People: []kb.Person{{ID: "person:ada_l", Name: "Ada Lindqvist"}, {ID: "person:bo"}}, Categories: []string{"Human Resources", "IT"},
	}}
	a := args()
	a.Filters = &ArgsFilters{Authors: []string{"nobody", "ADA lindqvist", "bo"}, Categories: []string{"human resources", "Humor"}}
	got, err := run(t, x, a, spec.ModeVoice)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"person:ada_l", "person:bo"}, {"Human Resources"}}, [][]string{x.asked.Authors, x.asked.Categories}); diff != "" {
		t.Error(diff)
	}
	data, err := json.Marshal(got)
	if want := `"unresolved_authors":[{"name":"nobody","reason":"matches no known person"}],"unresolved_categories":[{"name":"Humor","reason":"is not a known category; known are Human Resources, IT"}]`; err != nil || !strings.Contains(string(data), want) {
		t.Errorf("%s, %v", data, err)
	}

	// Nothing is searched if all names of a list are unknown; every problem is named.
	x.asked = kb.Query{}
	a.Filters = &ArgsFilters{Authors: []string{"nobody", "bob"}, Categories: []string{"Humor"}, Tags: []string{" "}}
	_, err = run(t, x, a, spec.ModeVoice)
	e, ok := errors.AsType[*registry.ToolError](err)
	if !ok || e.Type != registry.ErrorValidation || x.asked.Text != "" {
		t.Fatalf("%v, asked %+v", err, x.asked)
	}
	var paths []string
	for _, p := range e.Details.(map[string]any)["errors"].([]document.Problem) {
		paths = append(paths, p.Path)
	}
	if diff := cmp.Diff([]string{"/filters/tags", "/filters/authors/0", "/filters/authors/1", "/filters/categories/0"}, paths); diff != "" {
		t.Error(diff)
	}

	x.err = errors.New("the index is down")
	if _, err = run(t, x, a, spec.ModeVoice); !errors.As(err, &e) || e.Type != registry.ErrorTransient {
		t.Errorf("%v", err)
	}
}

func TestOutputIsTheAnswer(t *testing.T) { registrytest.Describes[Answer](t, "kb-search", "score") }

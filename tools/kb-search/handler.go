// Package kbsearch implements the tool kb_search.
package kbsearch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/internal/backends/kb"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of kb_search.
type Needs struct {
	KB *kb.Library
}

// Answer is the data of a success.
type Answer struct {
	// Results are sorted by score, best first; never nil.
	Results     []kb.Evidence `json:"results"`
	QueryTimeMS int64         `json:"query_time_ms"`
	// Clamped means that the number of results was limited.
	Clamped bool `json:"clamped"`
	// Degraded means that only words were compared because the semantic search failed.
	Degraded bool `json:"degraded,omitempty"`
	// InvalidTags were ignored.
	InvalidTags []string `json:"invalid_tags,omitempty"`
	// UnresolvedAuthors and UnresolvedCategories are unknown and were ignored.
	UnresolvedAuthors    []kb.Unresolved      `json:"unresolved_authors,omitempty"`
	UnresolvedCategories []kb.Unresolved      `json:"unresolved_categories,omitempty"`
	InvalidAlternatives  []InvalidAlternative `json:"invalid_alternatives,omitempty"`
}

// InvalidAlternative is an alternative that was ignored.
type InvalidAlternative struct {
	Alternative string `json:"alternative"`
	Reason      string `json:"reason"`
}

// EvidenceIDs are the ids of the records, for the audit.
func (a Answer) EvidenceIDs() []string { return kb.EvidenceIDs(a.Results) }

// Execute searches the knowledge base.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	s := call.Session
	reader := call.Needs.KB.For(kb.Asker{User: s.UserID, Vouched: s.Vouched, Agent: s.Agent, Scopes: s.Scopes})
	r := queryOf(call.Args)
	if err := r.resolve(ctx, reader, call.Args.Filters); err != nil {
		return registry.Result{}, failed(ctx, err, call.Args.Namespace, reader)
	}
	if err := r.problem(); err != nil {
		return registry.Result{}, err
	}
	var left []InvalidAlternative
	r.query.Alternatives, left = splitAlternatives(r.query.Text, call.Args.Alternatives)
	found, _, err := reader.Search(ctx, r.query)
	if err != nil {
		return registry.Result{}, failed(ctx, err, call.Args.Namespace, reader)
	}
	_, clamped := call.Clamped["top_k"]
	answer := Answer{
		Results: []kb.Evidence{}, QueryTimeMS: found.Took.Milliseconds(),
		Clamped: clamped, Degraded: found.Degraded, InvalidTags: r.invalidTags, InvalidAlternatives: left,
		UnresolvedAuthors: r.authors, UnresolvedCategories: r.categories,
	}
	fields := kb.Fields{Wanted: wanted(call.Args), MaxText: kb.MaxText[s.Mode]}
	for _, hit := range found.Hits {
		answer.Results = append(answer.Results, fields.Of(hit.Record, hit.Snippet, hit.Score))
	}
	return registry.Result{Data: answer}, nil
}

// request is the query from the arguments, the ignored values, and the problems that prevent it.
type request struct {
	query               kb.Query
	invalidTags         []string
	authors, categories []kb.Unresolved
	problems            []document.Problem
}

func (r *request) bad(path, format string, a ...any) {
	r.problems = append(r.problems, document.Problem{Path: path, Message: fmt.Sprintf(format, a...)})
}

// queryOf converts the arguments to a query, without authors and categories.
func queryOf(args Args) *request {
	r := &request{query: kb.Query{Text: strings.TrimSpace(args.Query),
		Namespaces: []kb.Namespace{kb.Namespace(args.Namespace)}, Limit: int(args.TopK)}}
	q := &r.query
	if textutil.IsBlank(q.Text) {
		r.bad("/query", "The query is blank; give the words to look for.")
	}
	f := args.Filters
	if f == nil {
		return r
	}
	if f.Type != nil {
		q.Types = append(q.Types, kb.Type(*f.Type))
	}
	for _, kind := range f.Types {
		q.Types = append(q.Types, kb.Type(kind))
	}
	q.Tags, r.invalidTags = splitTags(f.Tags)
	if len(r.invalidTags) > 0 && len(q.Tags) == 0 {
		r.bad("/filters/tags", "None of the tags is valid: a tag has 1 to %d characters.", kb.MaxTagRunes)
	}
	if f.DateRange != nil {
		q.From, q.To = days(f.DateRange.Start, f.DateRange.End)
		if !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
			r.bad("/filters/date_range", "The range ends before it starts; swap start and end.")
		}
	}
	return r
}

// resolve finds the authors and categories. A list without any match is a problem: without that filter, the search
// would return the wrong records.
func (r *request) resolve(ctx context.Context, reader *kb.Reader, f *ArgsFilters) error {
	if f == nil || len(f.Authors)+len(f.Categories) == 0 {
		return nil
	}
	names, err := reader.Names(ctx, r.query.Namespaces)
	if err != nil {
		return err
	}
	r.query.Authors, r.authors = kb.ResolveAuthors(f.Authors, names.People)
	r.query.Categories, r.categories = kb.ResolveCategories(f.Categories, names.Categories)
	r.noneOf("/filters/authors", r.query.Authors, r.authors)
	r.noneOf("/filters/categories", r.query.Categories, r.categories)
	// A name may match several people.
	r.query.Authors = r.query.Authors[:min(len(r.query.Authors), kb.MaxFilterNames)]
	r.query.Categories = r.query.Categories[:min(len(r.query.Categories), kb.MaxFilterNames)]
	return nil
}

func (r *request) noneOf(path string, resolved []string, unresolved []kb.Unresolved) {
	if len(resolved) > 0 {
		return
	}
	for _, u := range unresolved {
		r.bad(fmt.Sprintf("%s/%d", path, u.Index), "%q %s.", u.Given, u.Reason)
	}
}

// problem returns all problems as one error for the model, or nil.
func (r *request) problem() error {
	if len(r.problems) == 0 {
		return nil
	}
	e := registry.Invalid(r.problems, "The search is invalid: %s", r.problems[0].Message)
	e.Suggestion = "Correct the arguments and call kb_search again."
	return e
}

// failed converts an error of the knowledge base to an error for the model.
func failed(ctx context.Context, err error, namespace ArgsNamespace, reader *kb.Reader) error {
	switch {
	case errors.Is(err, kb.ErrNotGranted):
		return notGranted(namespace, reader.Granted())
	case errors.Is(err, kb.ErrQuery) && ctx.Err() == nil:
		return registry.Errorf(registry.ErrorValidation, "The search is invalid: %w", err)
	}
	return kb.Unavailable(ctx, err)
}

// maxWording limits an alternative, in characters, like the schema's limit for the query.
const maxWording = 200

// splitAlternatives returns the alternatives to search, and the invalid ones. It drops duplicates.
func splitAlternatives(query string, all []string) (valid []string, invalid []InvalidAlternative) {
	for _, text := range all {
		text = strings.Join(strings.Fields(text), " ")
		reason := ""
		switch {
		case textutil.IsBlank(text):
			reason = "is blank"
		case utf8.RuneCountInString(text) > maxWording:
			reason = fmt.Sprintf("is longer than %d characters", maxWording)
		case strings.EqualFold(text, query) || slices.ContainsFunc(valid, func(v string) bool { return strings.EqualFold(v, text) }):
			continue
		case len(valid) == kb.MaxAlternatives:
			reason = fmt.Sprintf("exceeds the limit of %d", kb.MaxAlternatives)
		default:
			valid = append(valid, text)
			continue
		}
		invalid = append(invalid, InvalidAlternative{Alternative: text, Reason: reason})
	}
	return valid, invalid
}

// splitTags separates valid and invalid tags.
func splitTags(tags []string) (valid, invalid []string) {
	for _, tag := range tags {
		if n := utf8.RuneCountInString(strings.TrimSpace(tag)); n == 0 || n > kb.MaxTagRunes {
			invalid = append(invalid, tag)
		} else {
			valid = append(valid, tag)
		}
	}
	return kb.NormalizeTags(valid), invalid
}

// days returns the first moment of one day and the last of another; the schema has checked their
// form.
func days(start, end *string) (from, to time.Time) {
	if start != nil {
		from, _ = time.Parse(time.DateOnly, *start)
	}
	if end != nil {
		if day, err := time.Parse(time.DateOnly, *end); err == nil {
			to = day.AddDate(0, 0, 1).Add(-time.Millisecond)
		}
	}
	return from, to
}

// wanted returns the requested fields.
func wanted(args Args) []kb.Field {
	fields := kb.RequestedFields(args.ReturnFields, kb.FieldSnippet, kb.FieldMetadata, kb.FieldSources, kb.FieldURL)
	if !args.IncludeSnippets {
		fields = slices.DeleteFunc(fields, func(f kb.Field) bool { return f == kb.FieldSnippet })
	}
	return fields
}

// notGranted returns the error for a namespace that the conversation may not search, with those it may.
func notGranted(asked ArgsNamespace, granted []kb.Namespace) error {
	e := registry.Errorf(registry.ErrorAuth, "The namespace %s is not accessible in this conversation.", asked)
	e.Details = map[string]any{"namespace": asked, "granted": granted}
	e.Suggestion = "Tell the user that you cannot look there; do not ask for it again."
	if len(granted) > 0 {
		e.Suggestion = fmt.Sprintf("Search %v instead, or tell the user that you cannot look there; do not ask for it again.", granted)
	}
	return e
}

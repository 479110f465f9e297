// Package kbget implements the tool kb_get.
package kbget

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"voicegw/internal/backends/kb"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of kb_get.
type Needs struct {
	KB *kb.Library
}

// Answer is the data of a success. Only Invalid may be nil.
type Answer struct {
	Records []kb.Evidence `json:"records"`
	Missing []string      `json:"missing"`
	// Invalid are malformed ids.
	Invalid []InvalidID `json:"invalid,omitempty"`
}

// EvidenceIDs are the ids of the records, for the audit.
func (a Answer) EvidenceIDs() []string { return kb.EvidenceIDs(a.Records) }

// InvalidID is a malformed id.
type InvalidID struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// snippetBytes limits a snippet taken from the start of a text.
const snippetBytes = 240

// Execute gets the records.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	ids, invalid, problem := idsOf(call.Args)
	if problem != nil {
		return registry.Result{}, problem
	}
	s := call.Session
	reader := call.Needs.KB.For(kb.Asker{User: s.UserID, Vouched: s.Vouched, Agent: s.Agent, Scopes: s.Scopes})
	found, missing, err := reader.Get(ctx, ids)
	if err != nil {
		return registry.Result{}, kb.Unavailable(ctx, err)
	}
	answer := Answer{Records: []kb.Evidence{}, Missing: append([]string{}, missing...), Invalid: invalid}
	fields := kb.Fields{Wanted: kb.RequestedFields(call.Args.ReturnFields, kb.FieldFullText, kb.FieldMetadata,
		kb.FieldSources, kb.FieldURL), MaxText: kb.MaxText[s.Mode]}
	for _, record := range found {
		answer.Records = append(answer.Records, fields.Of(record, kb.Cut(kb.Plain(record.Text), snippetBytes), 0))
	}
	return registry.Result{Data: answer}, nil
}

// givenID is an id and the argument that contains it.
type givenID struct{ id, path string }

// idsOf returns the distinct ids to read, and the malformed ones.
func idsOf(args Args) (ids []string, invalid []InvalidID, err error) {
	given := make([]givenID, 0, len(args.IDs)+1)
	for i, id := range args.IDs {
		given = append(given, givenID{strings.TrimSpace(id), fmt.Sprintf("/ids/%d", i)})
	}
	if args.ID != nil {
		given = append(given, givenID{strings.TrimSpace(*args.ID), "/id"})
	}
	if len(given) == 0 {
		e := registry.Invalid([]document.Problem{{Message: "Give ids, a list of 1 to 10, or id."}}, "No id was given.")
		e.Suggestion = "Call kb_get with ids, or search for the record with kb_search."
		return nil, nil, e
	}
	var problems []document.Problem
	for _, g := range given {
		switch reason := checkID(g.id); {
		case reason != "":
			problems = append(problems, document.Problem{Path: g.path, Message: fmt.Sprintf("%q %s", g.id, reason)})
			if !slices.ContainsFunc(invalid, func(x InvalidID) bool { return x.ID == g.id }) {
				invalid = append(invalid, InvalidID{ID: g.id, Reason: reason})
			}
		case !slices.Contains(ids, g.id):
			ids = append(ids, g.id)
		}
	}
	if len(ids) > 0 {
		return ids, invalid, nil
	}
	e := registry.Invalid(problems, "All ids are malformed: %s", problems[0].Message)
	e.Suggestion = "Search with kb_search to find the id."
	return nil, nil, e
}

// checkID returns the problem of an id; empty if it is valid.
func checkID(id string) string {
	kind, name, colon := strings.Cut(id, ":")
	switch {
	case !colon || name == "":
		return "is not of the form type:name, such as person:ada_l."
	case !slices.Contains(kb.Types(), kb.Type(kind)):
		return fmt.Sprintf("begins with %q; an id begins with one of %v.", kind, kb.Types())
	case len(name) > kb.MaxIDBytes || strings.ContainsFunc(name, strange):
		return fmt.Sprintf("has a name that is not 1 to %d of a-z, 0-9, \"_\", \"-\" and \".\".", kb.MaxIDBytes)
	}
	return ""
}

func strange(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
}

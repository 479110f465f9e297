// Package notefind is the tool note_find: it finds notes.
package notefind

import (
	"context"
	"errors"

	"voicegw/internal/backends/kb"
	"voicegw/registry"
)

// Needs are the capabilities that the tool uses.
type Needs struct {
	KB *kb.Library
}

// EvidenceIDs are the ids of the notes, for the audit.
func (o Output) EvidenceIDs() []string {
	var ids []string
	for _, note := range o.Notes {
		ids = append(ids, note.ID)
	}
	return ids
}

// Execute finds notes.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	s := call.Session
	reader := call.Needs.KB.For(kb.Asker{User: s.UserID, Vouched: s.Vouched, Agent: s.Agent, Scopes: s.Scopes})
	found, _, err := reader.Search(ctx, kb.Query{Text: call.Args.Words,
		Namespaces: []kb.Namespace{kb.Namespace(call.Args.Namespace)}, Types: []kb.Type{kb.TypeDoc}, Limit: 3})
	switch {
	case errors.Is(err, kb.ErrNotGranted):
		return registry.Result{}, registry.Errorf(registry.ErrorAuth, "These notes are not open to this conversation.")
	case err != nil:
		return registry.Result{}, registry.Errorf(registry.ErrorTransient, "The notes cannot be searched at the moment.")
	}
	output := Output{Notes: []OutputNotesItem{}}
	for _, hit := range found.Hits {
		output.Notes = append(output.Notes, OutputNotesItem{ID: hit.Record.ID, Title: hit.Record.Title, Part: &hit.Snippet})
	}
	return registry.Result{Data: output}, nil
}

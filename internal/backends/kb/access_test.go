package kb_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// TestGrants: one matching list is enough, a user counts only if vouched for, and unlisted namespaces are open, except
// personal ones.
func TestGrants(t *testing.T) {
	all := []kb.Namespace{kb.NamespaceStudio, kb.NamespacePersonal, kb.NamespacePublic}
	open := []kb.Namespace{kb.NamespaceStudio, kb.NamespacePublic}
	personal := map[kb.Namespace]kb.Grant{kb.NamespacePersonal: {Users: []string{"ada"}, Agents: []string{"concierge"}, Scopes: []string{"private"}}}
	for name, tc := range map[string]struct {
		rules map[kb.Namespace]kb.Grant
		who   kb.Asker
		want  []kb.Namespace
	}{
		"no configuration":                       {nil, kb.Asker{User: "ada", Vouched: true, Agent: "default"}, open},
		"empty lists are not restrictions":       {map[kb.Namespace]kb.Grant{kb.NamespacePersonal: {}}, kb.Asker{User: "ada", Vouched: true}, open},
		"the user":                               {personal, kb.Asker{User: "ada", Vouched: true}, all},
		"a user without a guarantor":             {personal, kb.Asker{User: "ada"}, open},
		"another user":                           {personal, kb.Asker{User: "eve", Vouched: true}, open},
		"a user is not an agent and no scope":    {personal, kb.Asker{User: "concierge", Vouched: true, Agent: "ada", Scopes: []string{"ada"}}, open},
		"the agent":                              {personal, kb.Asker{Agent: "concierge"}, all},
		"the scope":                              {personal, kb.Asker{Scopes: []string{"other", "private"}}, all},
		"none":                                   {personal, kb.Asker{}, open},
		"no guarantor":                           {map[kb.Namespace]kb.Grant{kb.NamespacePersonal: {Users: []string{""}}}, kb.Asker{Vouched: true}, open},
		"everyone":                               {map[kb.Namespace]kb.Grant{kb.NamespacePersonal: {Users: []string{kb.Everyone}}}, kb.Asker{}, all},
		"a scope that is called *":               {personal, kb.Asker{User: "*", Vouched: true, Agent: "*", Scopes: []string{"*"}}, open},
		"a listed namespace is closed to others": {map[kb.Namespace]kb.Grant{kb.NamespaceStudio: {Scopes: []string{"staff"}}}, kb.Asker{User: "ada", Vouched: true}, []kb.Namespace{kb.NamespacePublic}},
	} {
		g, err := kb.NewGrants(tc.rules)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, g.For(tc.who)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := kb.NewGrants(map[kb.Namespace]kb.Grant{"else": {}}); err == nil {
		t.Error("a namespace that does not exist was accepted")
	}
}

// TestReaderShowsGrantedRecords: forbidden records cost no hits and look like missing ones; a search in a forbidden
// namespace alone is refused.
func TestReaderShowsGrantedRecords(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	var records []kb.Record
	for i := range 60 { // more than one ranking returns, and better
		records = append(records, kb.Record{ID: fmt.Sprintf("doc:secret%02d", i), Namespace: kb.NamespacePersonal, Title: "Salary", LastUpdated: time.Unix(1, 0)})
	}
	records[0].Authors, records[0].Categories = []string{"person:secret"}, []string{"Secret"}
	records = append(records, kb.Record{ID: "doc:open", Authors: []string{"ada_l"}, Categories: []string{"Money"}, Title: "Handbook", Text: "The salary comes on the first.", LastUpdated: time.Unix(1, 0)})
	for i := range records {
		records[i].Normalize()
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	r := kb.NewLibrary(x, kb.Grants{}).For(kb.Asker{User: "ada", Vouched: true, Agent: "default"})
	for _, namespaces := range [][]kb.Namespace{nil, {kb.NamespaceStudio}, {kb.NamespaceStudio, kb.NamespacePersonal}} {
		names, err := r.Names(t.Context(), namespaces)
		if diff := cmp.Diff(kb.Names{People: []kb.Person{{ID: "person:ada_l"}}, Categories: []string{"Money"}}, names); diff != "" || err != nil {
			t.Errorf("names of %v: %v %s", namespaces, err, diff)
		}
	}
	if _, err := r.Names(t.Context(), []kb.Namespace{kb.NamespacePersonal}); !errors.Is(err, kb.ErrNotGranted) {
		t.Errorf("names in a forbidden namespace: %v", err)
	}

	for name, asked := range map[string][]kb.Namespace{"no namespace": nil, "one of two": {kb.NamespacePersonal, kb.NamespaceStudio}} {
		found, refused, err := r.Search(t.Context(), kb.Query{Text: "salary", Limit: 1, Namespaces: asked})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].Record.ID != "doc:open" {
			t.Errorf("%s: %+v, %v", name, found.Hits, err)
		}
		if len(asked) > 0 && (len(refused) != 1 || refused[0] != kb.NamespacePersonal) {
			t.Errorf("%s: refused %v", name, refused)
		}
	}
	if found, _, err := r.Search(t.Context(), kb.Query{Text: "salary", Namespaces: []kb.Namespace{kb.NamespacePersonal}}); !errors.Is(err, kb.ErrNotGranted) || len(found.Hits) > 0 {
		t.Errorf("a forbidden namespace: %d hits, %v", len(found.Hits), err)
	}
	found, missing, err := r.Get(t.Context(), []string{"doc:secret01", "doc:open", "doc:never", "doc:secret01"})
	if err != nil || len(found) != 1 || found[0].ID != "doc:open" {
		t.Errorf("%v, %v", found, err)
	}
	if diff := cmp.Diff([]string{"doc:secret01", "doc:never"}, missing); diff != "" {
		t.Error(diff)
	}

	closed, err := kb.NewGrants(map[kb.Namespace]kb.Grant{
		kb.NamespaceStudio: {Scopes: []string{"s"}}, kb.NamespacePublic: {Scopes: []string{"s"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := kb.NewLibrary(x, closed).For(kb.Asker{}).Search(t.Context(), kb.Query{Text: "salary"}); !errors.Is(err, kb.ErrNotGranted) {
		t.Errorf("for a caller without grants: %v", err)
	}
}

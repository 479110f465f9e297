package kb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

// opener makes an empty index with the embedder, which may be nil. The index is closed and emptied at the end of the
// test.
type opener func(t *testing.T, embedder kb.Embedder) kb.Index

// conforms tests an index against the contract of kb.Index.
func conforms(t *testing.T, setup opener) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, opener)
	}{
		{"nothing is found in an empty index", testEmpty},
		{"a record is returned unchanged", testRoundTrip},
		{"get names missing records", testGet},
		{"a bad record changes nothing", testBadRecord},
		{"a bad query is the caller's fault", testBadQuery},
		{"filters exclude other records", testFilters},
		{"names are those of the namespaces", testNames},
		{"hits are sorted, scored from 0 to 1, and each id once", testScores},
		{"a whole title wins", testWholeTitle},
		{"accents make no difference", testAccents},
		{"endings of several languages", testEndings},
		{"other wordings find more records", testAlternatives},
		{"a limit is kept", testLimit},
		{"an update replaces the old record", testUpdate},
		{"deleted records are not found", testDelete},
		{"held returns hashes and missing vectors", testHeld},
		{"vectors find records without the words", testHybrid},
		{"the same text keeps its vector", testSameText},
		{"searches without vectors say so", testDegraded},
		{"a failing embedder leaves the words", testEmbedderFails},
		{"a snippet shows the passage", testSnippet},
		{"many at once", testConcurrent},
		{"a cancelled search ends", testCancelled},
		{"all calls fail after close", testClosed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, setup) })
	}
}

// record makes a record in the namespace studio.
func record(id, title, text string, change ...func(*kb.Record)) kb.Record {
	r := kb.Record{ID: id, Title: title, Text: text, LastUpdated: day(1)}
	for _, c := range change {
		c(&r)
	}
	r.Normalize()
	return r
}

// day returns a day of May 2026.
func day(n int) time.Time { return time.Date(2026, time.May, n, 12, 0, 0, 0, time.UTC) }

func apply(t *testing.T, x kb.Index, b kb.Batch) {
	t.Helper()
	if err := x.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func filled(t *testing.T, setup opener, embedder kb.Embedder, records ...kb.Record) kb.Index {
	t.Helper()
	x := setup(t, embedder)
	apply(t, x, kb.Batch{Upsert: records})
	return x
}

func search(t *testing.T, x kb.Index, q kb.Query) kb.Results {
	t.Helper()
	results, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return results
}

func ids(r kb.Results) []string {
	all := []string{}
	for _, h := range r.Hits {
		all = append(all, h.Record.ID)
	}
	return all
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func testEmpty(t *testing.T, setup opener) {
	for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
		x := setup(t, embedder)
		want(t, "hits", ids(search(t, x, kb.Query{Text: "anything"})), []string{})
		found, missing, err := x.Get(t.Context(), []string{"doc:a"})
		if err != nil || len(found) != 0 {
			t.Errorf("Get returned %v, %v", found, err)
		}
		want(t, "missing", missing, []string{"doc:a"})
		held, err := x.Held(t.Context())
		if err != nil || len(held) != 0 {
			t.Errorf("Held returned %v, %v", held, err)
		}
		apply(t, x, kb.Batch{})
		apply(t, x, kb.Batch{Delete: []string{"doc:never"}})
	}
}

func testRoundTrip(t *testing.T, setup opener) {
	full := kb.Record{
		ID: "project:harbour_film", Namespace: kb.NamespacePersonal, Title: "Harbour — «at six» 🚢", Text: "# Head\n\nLine *one*.\n\n- two",
		Tags: []string{"Film", "motion"}, URL: "https://example.org/a?b=c#d", SourceType: "hand book",
		LastUpdated: time.Date(2026, 5, 9, 15, 4, 5, 678e6, time.FixedZone("", 7200)),
		Metadata:    map[string]any{"n": "x", "list": []any{"a", true, nil}, "deep": map[string]any{"k": "v"}},
	}
	full.Normalize()
	x := filled(t, setup, &fakeEmbedder{}, full)
	found, _, err := x.Get(t.Context(), []string{full.ID})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the record got", found, []kb.Record{full})
	hits := search(t, x, kb.Query{Text: "harbour"}).Hits
	if len(hits) != 1 {
		t.Fatalf("%d hits", len(hits))
	}
	want(t, "the record found", hits[0].Record, full)
	if found[0].Hash() != full.Hash() {
		t.Error("the hash changed on the way")
	}
}

func testGet(t *testing.T, setup opener) {
	x := filled(t, setup, nil, record("doc:a", "A", ""), record("doc:b", "B", ""))
	found, missing, err := x.Get(t.Context(), []string{"doc:b", "doc:x", "doc:a", "doc:b", "not an id", "doc:x"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "found", []string{found[0].ID, found[1].ID}, []string{"doc:b", "doc:a"})
	want(t, "missing", missing, []string{"doc:x", "not an id"})
}

func testBadRecord(t *testing.T, setup opener) {
	x := filled(t, setup, nil, record("doc:a", "Old title", ""))
	err := x.Apply(t.Context(), kb.Batch{Upsert: []kb.Record{record("doc:a", "New title", ""), record("doc:b", "", "")},
		Delete: []string{"doc:a"}})
	if !errors.Is(err, kb.ErrRecord) {
		t.Fatalf("Apply returned %v", err)
	}
	want(t, "hits", ids(search(t, x, kb.Query{Text: "title"})), []string{"doc:a"})
}

func testBadQuery(t *testing.T, setup opener) {
	x := setup(t, nil)
	bad := []kb.Query{
		{}, {Text: "a", Limit: -1}, {Text: "a", Limit: kb.MaxLimit + 1}, {Text: "a", Namespaces: []kb.Namespace{"else"}},
		{Text: "a", Types: []kb.Type{"else"}},
		{Text: "a", From: day(2), To: day(1)}, {Text: "\xff"}, {Text: string(make([]rune, kb.MaxQueryRunes+1))},
	}
	for _, q := range bad {
		if _, err := x.Search(t.Context(), q); !errors.Is(err, kb.ErrQuery) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, odd := range []string{" ", "the", "*", "\"a", "(", "+-", "title:x", "\x00", "🚢"} {
		if _, err := x.Search(t.Context(), kb.Query{Text: odd}); err != nil {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

func testFilters(t *testing.T, setup opener) {
	in := func(ns kb.Namespace, d int, tags ...string) func(*kb.Record) {
		return func(r *kb.Record) { r.Namespace, r.LastUpdated, r.Tags = ns, day(d), tags }
	}
	records := []kb.Record{
		record("doc:a", "Boat", "", in(kb.NamespaceStudio, 1, "red", "big")),
		record("doc:b", "Boat", "", in(kb.NamespacePublic, 2, "red")),
		record("person:c", "Boat", "", in(kb.NamespaceStudio, 3, "big", "red", "new")),
		record("link:d", "Boat", "", in(kb.NamespacePersonal, 4)),
		record("doc:e", "Lake", "", in(kb.NamespaceStudio, 1, "red", "big")),
	}
	by := func(r *kb.Record, authors []string, categories ...string) {
		r.Authors, r.Categories = authors, categories
	}
	by(&records[0], []string{"person:c"}, "Know-how")
	by(&records[1], []string{"person:c", "person:x"}, "Rules")
	by(&records[3], []string{"person:x"}, "Know-how", "Rules")
	tests := []struct {
		name  string
		query kb.Query
		want  []string
	}{
		{"none", kb.Query{}, []string{"doc:a", "doc:b", "link:d", "person:c"}},
		{"namespace", kb.Query{Namespaces: []kb.Namespace{kb.NamespaceStudio}}, []string{"doc:a", "person:c"}},
		{"either of two namespaces", kb.Query{Namespaces: []kb.Namespace{kb.NamespacePublic, kb.NamespacePersonal}},
			[]string{"doc:b", "link:d"}},
		{"type", kb.Query{Types: []kb.Type{kb.TypeDoc}}, []string{"doc:a", "doc:b"}},
		{"either of two types", kb.Query{Types: []kb.Type{kb.TypePerson, kb.TypeLink}}, []string{"link:d", "person:c"}},
		{"an author", kb.Query{Authors: []string{"person:c"}}, []string{"doc:a", "doc:b"}},
		{"either of two authors", kb.Query{Authors: []string{"person:x", "person:nobody"}}, []string{"doc:b", "link:d"}},
		{"a category", kb.Query{Categories: []string{"Know-how"}}, []string{"doc:a", "link:d"}},
		{"a category as records have it", kb.Query{Categories: []string{"know-how"}}, []string{}},
		{"author, category and types", kb.Query{Authors: []string{"person:x"}, Categories: []string{"Rules", "Know-how"},
			Types: []kb.Type{kb.TypeDoc, kb.TypeLink}}, []string{"doc:b", "link:d"}},
		{"one tag", kb.Query{Tags: []string{"red"}}, []string{"doc:a", "doc:b", "person:c"}},
		{"tags must all be there", kb.Query{Tags: []string{"red", "big"}}, []string{"doc:a", "person:c"}},
		{"tags are compared without case", kb.Query{Tags: []string{" Red "}}, []string{"doc:a", "doc:b", "person:c"}},
		{"an unused tag", kb.Query{Tags: []string{"green"}}, []string{}},
		{"from, inclusive", kb.Query{From: day(3)}, []string{"link:d", "person:c"}},
		{"just after", kb.Query{From: day(3).Add(time.Nanosecond)}, []string{"link:d"}},
		{"to, inclusive", kb.Query{To: day(2)}, []string{"doc:a", "doc:b"}},
		{"just before", kb.Query{To: day(2).Add(-time.Nanosecond)}, []string{"doc:a"}},
		{"from and to", kb.Query{From: day(2), To: day(3)}, []string{"doc:b", "person:c"}},
		{"all", kb.Query{Namespaces: []kb.Namespace{kb.NamespaceStudio}, Types: []kb.Type{kb.TypeDoc}, Tags: []string{"big"},
			From: day(1), To: day(1)}, []string{"doc:a"}},
	}
	for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
		x := filled(t, setup, embedder, records...)
		for _, test := range tests {
			test.query.Text = "boat"
			got := ids(search(t, x, test.query))
			if embedder != nil { // the vectors of lake and boat are a little similar
				got = slices.DeleteFunc(got, func(id string) bool { return id == "doc:e" })
			}
			slices.Sort(got)
			want(t, test.name, got, test.want)
		}
	}
}

func testNames(t *testing.T, setup opener) {
	in := func(ns kb.Namespace, authors []string, categories ...string) func(*kb.Record) {
		return func(r *kb.Record) { r.Namespace, r.Authors, r.Categories = ns, authors, categories }
	}
	names := func(x kb.Index, namespaces ...kb.Namespace) kb.Names {
		n, err := x.Names(t.Context(), namespaces)
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Categories) == 0 {
			n.Categories = nil
		}
		return n
	}
	x := setup(t, nil)
	want(t, "of nothing", names(x), kb.Names{})
	apply(t, x, kb.Batch{Upsert: []kb.Record{
		record("doc:a", "A", "", in(kb.NamespaceStudio, []string{"ada_l", "person:bo"}, " Human  Resources", "Rules")),
		record("doc:b", "B", "", in(kb.NamespacePersonal, []string{"zoe"}, "Salaries", "Rules")),
		record("person:ada_l", "Ada Lindqvist", "", in(kb.NamespaceStudio, nil)),
		record("person:cy", "Cy", "", in(kb.NamespacePersonal, nil)),
	}})
	ada, bo := kb.Person{ID: "person:ada_l", Name: "Ada Lindqvist"}, kb.Person{ID: "person:bo"}
	want(t, "of the studio", names(x, kb.NamespaceStudio),
		kb.Names{People: []kb.Person{ada, bo}, Categories: []string{"Human Resources", "Rules"}})
	want(t, "of a namespace without records", names(x, kb.NamespacePublic), kb.Names{})
	all := kb.Names{People: []kb.Person{ada, bo, {ID: "person:cy", Name: "Cy"}, {ID: "person:zoe"}},
		Categories: []string{"Human Resources", "Rules", "Salaries"}}
	want(t, "of two", names(x, kb.NamespaceStudio, kb.NamespacePersonal), all)
	want(t, "of all", names(x), all)
	apply(t, x, kb.Batch{Delete: []string{"doc:a"}})
	want(t, "after a change", names(x, kb.NamespaceStudio), kb.Names{People: []kb.Person{ada}})
}

func testScores(t *testing.T, setup opener) {
	var records []kb.Record
	for i := range 30 {
		records = append(records, record(fmt.Sprintf("doc:d%02d", i), "Ship",
			fmt.Sprintf("A ship with %d masts and a harbour for %d.", i%5, i%3)))
	}
	for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
		x := filled(t, setup, embedder, records...)
		results := search(t, x, kb.Query{Text: "ship with 3 masts in a harbour", Limit: 25})
		if len(results.Hits) != 25 || results.Hybrid != (embedder != nil) || results.Degraded || results.Took <= 0 {
			t.Errorf("%d hits, hybrid %v, degraded %v, after %v", len(results.Hits), results.Hybrid, results.Degraded, results.Took)
		}
		checkOrder(t, results.Hits, embedder != nil)
		if embedder == nil && results.Hits[0].Score != 1 {
			t.Errorf("the best of the words has %v", results.Hits[0].Score)
		}
		want(t, "asked again", ids(search(t, x, kb.Query{Text: "ship with 3 masts in a harbour", Limit: 25})), ids(results))
	}
}

// checkOrder checks the scores, the order, and that no id occurs twice.
func checkOrder(t *testing.T, hits []kb.Hit, hybrid bool) {
	t.Helper()
	seen := map[string]bool{}
	for i, h := range hits {
		if h.Score <= 0 || h.Score > 1 || h.BM25 < 0 || h.Vector < 0 || h.Vector > 1 || !hybrid && (h.Vector != 0 || h.BM25 == 0) {
			t.Errorf("place %d: score %v, BM25 %v, vector %v", i, h.Score, h.BM25, h.Vector)
		}
		if seen[h.Record.ID] {
			t.Errorf("%s occurs twice", h.Record.ID)
		}
		seen[h.Record.ID] = true
		if i == 0 {
			continue
		}
		before := hits[i-1]
		if before.Score < h.Score || before.Score == h.Score && before.Record.ID > h.Record.ID {
			t.Errorf("rank %d: %s %v is after %s %v", i, h.Record.ID, h.Score, before.Record.ID, before.Score)
		}
	}
}

func testWholeTitle(t *testing.T, setup opener) {
	records := []kb.Record{
		record("person:ada", "Ada Lindqvist", "Founder."),
		record("project:talk", "Talk", "Ada Lindqvist talks. Ada Lindqvist. Ada, Ada, Lindqvist. Who is Ada Lindqvist? Who?"),
		record("person:ada_b", "Ada Brandt", "She knows Ada Lindqvist."),
		record("doc:lindqvist", "Lindqvist archive", "Papers of Ada."),
	}
	for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
		x := filled(t, setup, embedder, records...)
		for _, q := range []string{"Ada Lindqvist", "ada lindqvist", "Who is Ada Lindqvist?", "phone number of ada lindqvist please"} {
			if got := ids(search(t, x, kb.Query{Text: q})); len(got) == 0 || got[0] != "person:ada" {
				t.Errorf("%q finds %v", q, got)
			}
		}
	}
}

func testAccents(t *testing.T, setup opener) {
	x := filled(t, setup, nil,
		record("person:nunez", "Joaquín Núñez", "Leads the warehouse."),
		record("person:gruen", "Jörg Grünwald", "Er prüft die Rechnungen."),
		record("person:soren", "Søren Sørensen", "Sails the boat."), record("person:obrien", "Siobhán O'Brien", "Runs the payroll."),
		record("person:strauss", "Anton Strauß", ""), record("doc:mail", "E-mail rules", "Be short."),
		record("person:plain", "Jose Ibanez", ""))
	for query, want := range map[string]string{
		"nunez": "person:nunez", "JOAQUIN NUÑEZ": "person:nunez", "grunwald": "person:gruen", "Gruenwald": "person:gruen",
		"joerg":     "person:gruen",
		"soerensen": "person:soren", "Sorensen": "person:soren", "obrien": "person:obrien", "O’Brien's": "person:obrien",
		"Brien":   "person:obrien",
		"strauss": "person:strauss", "email": "doc:mail", "José Ibáñez": "person:plain", "ｎｕｎｅｚ": "person:nunez",
	} {
		if got := ids(search(t, x, kb.Query{Text: query})); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

func testEndings(t *testing.T, setup opener) {
	x := filled(t, setup, nil,
		record("doc:en", "Returns", "The customers are returning parcels to the warehouse."),
		record("doc:de", "Mahnungen", "Die Kunden bekommen nach zwei Wochen eine Mahnung und dann keine Häuser mehr."),
		record("doc:es", "Las devoluciones", "Los empleados pueden devolver las prendas y piden las habitaciones."),
		record("doc:fr", "Les remboursements", "Les salariés sont remboursés à la fin du mois pour les chevaux."))
	for query, want := range map[string]string{
		"parcel": "doc:en", "return of a parcel": "doc:en", "Haus": "doc:de", "Mahnung": "doc:de", "prenda": "doc:es",
		"devolución": "doc:es",
		"devolucion": "doc:es", "habitación": "doc:es", "remboursement": "doc:fr", "salarié": "doc:fr",
	} {
		if got := ids(search(t, x, kb.Query{Text: query})); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

func testAlternatives(t *testing.T, setup opener) {
	x := filled(t, setup, nil, record("doc:leave", "Parental leave", "Sixteen weeks."), record("doc:baby", "Baby blanket", "Wool."))
	want(t, "without", ids(search(t, x, kb.Query{Text: "time off for a father"})), []string{})
	got := search(t, x, kb.Query{Text: "time off for a father", Alternatives: []string{"parental leave", "paternity"}})
	want(t, "with", ids(got), []string{"doc:leave"})
	if got.Hits[0].Score > kb.AlternativeWeight || got.Hits[0].BM25 == 0 {
		t.Errorf("%+v", got.Hits[0])
	}
	want(t, "the query counts more", ids(search(t,
		x, kb.Query{Text: "baby blanket", Alternatives: []string{"parental leave"}})), []string{"doc:baby", "doc:leave"})
	for _, q := range []kb.Query{{Text: "a", Alternatives: []string{"a", "b", "c", "d"}},
		{Text: "a", Alternatives: []string{""}}, {Text: "a", Alternatives: []string{"\xff"}}} {
		if _, err := x.Search(t.Context(), q); !errors.Is(err, kb.ErrQuery) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// testDegraded tests an index with an embedder and records that have no vectors yet.
func testDegraded(t *testing.T, setup opener) {
	x := setup(t, &fakeEmbedder{})
	a := record("doc:a", "Anchor", "Iron.")
	apply(t, x, kb.Batch{Upsert: []kb.Record{a}, WordsOnly: true})
	if got := search(t, x, kb.Query{Text: "anchor"}); got.Hybrid || !got.Degraded || len(got.Hits) != 1 {
		t.Errorf("before any vector: hybrid %t, degraded %t, %d hits", got.Hybrid, got.Degraded, len(got.Hits))
	}
	apply(t, x, kb.Batch{Upsert: []kb.Record{a}})
	if got := search(t, x, kb.Query{Text: "anchor"}); !got.Hybrid || got.Degraded {
		t.Errorf("with vectors: hybrid %t, degraded %t", got.Hybrid, got.Degraded)
	}
	if got := search(t, filled(t, setup, nil, a), kb.Query{Text: "anchor"}); got.Hybrid || got.Degraded {
		t.Errorf("without an embedder: hybrid %t, degraded %t", got.Hybrid, got.Degraded)
	}
}

func testLimit(t *testing.T, setup opener) {
	var records []kb.Record
	for i := range 60 {
		records = append(records, record(fmt.Sprintf("doc:d%02d", i), "Buoy", "A buoy."))
	}
	x := filled(t, setup, nil, records...)
	for limit, n := range map[int]int{0: kb.DefaultLimit, 1: 1, 3: 3, kb.MaxLimit: kb.MaxLimit} {
		got := ids(search(t, x, kb.Query{Text: "buoy", Limit: limit}))
		if len(got) != n {
			t.Errorf("limit %d: %d hits", limit, len(got))
		}
		var first []string // ids decide between equal scores
		for i := range n {
			first = append(first, fmt.Sprintf("doc:d%02d", i))
		}
		want(t, fmt.Sprintf("limit %d", limit), got, first)
	}
}

func testUpdate(t *testing.T, setup opener) {
	x := filled(t, setup, &fakeEmbedder{}, record("doc:a", "Anchor", "Iron."), record("doc:b", "Rope", "Hemp."))
	apply(t, x, kb.Batch{Upsert: []kb.Record{record("doc:a", "Lantern", "Glass.")}})
	results := search(t, x, kb.Query{Text: "anchor iron"})
	for _, h := range results.Hits {
		if h.BM25 > 0 {
			t.Errorf("%s is found by words it has no more", h.Record.ID)
		}
	}
	if got := ids(search(t, x, kb.Query{Text: "lantern"})); len(got) == 0 || got[0] != "doc:a" {
		t.Errorf("the new words find %v", got)
	}
	found, _, err := x.Get(t.Context(), []string{"doc:a"})
	if err != nil || found[0].Title != "Lantern" {
		t.Errorf("Get returned %v, %v", found, err)
	}
}

func testDelete(t *testing.T, setup opener) {
	x := filled(t, setup, &fakeEmbedder{}, record("doc:a", "Anchor", ""), record("doc:b", "Anchor", ""), record("doc:c", "Anchor", ""))
	apply(t, x, kb.Batch{Delete: []string{"doc:a", "doc:b", "doc:x"}, Upsert: []kb.Record{record("doc:b", "Anchor", "new")}})
	want(t, "hits", ids(search(t, x, kb.Query{Text: "anchor"})), []string{"doc:b", "doc:c"})
	_, missing, err := x.Get(t.Context(), []string{"doc:a", "doc:b"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "missing", missing, []string{"doc:a"})
}

func held(t *testing.T, x kb.Index) map[string]kb.Held {
	t.Helper()
	h, err := x.Held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func testHeld(t *testing.T, setup opener) {
	a := record("doc:a", "Anchor", "")
	x := filled(t, setup, nil, a)
	want(t, "held without an embedder", held(t, x), map[string]kb.Held{"doc:a": {Hash: a.Hash(), Complete: true}})

	x = setup(t, &fakeEmbedder{})
	apply(t, x, kb.Batch{Upsert: []kb.Record{a}, WordsOnly: true})
	want(t, "held after words alone", held(t, x), map[string]kb.Held{"doc:a": {Hash: a.Hash()}})
	want(t, "hits by words", ids(search(t, x, kb.Query{Text: "anchor"})), []string{"doc:a"})
	apply(t, x, kb.Batch{Upsert: []kb.Record{a}})
	want(t, "held with a vector", held(t, x), map[string]kb.Held{"doc:a": {Hash: a.Hash(), Complete: true}})
}

func testHybrid(t *testing.T, setup opener) {
	x := filled(t, setup, &fakeEmbedder{}, record("doc:bill", "Invoices", "Sent monthly."), record("doc:boat", "Boats", "They float."))
	results := search(t, x, kb.Query{Text: "bill"}) // a synonym for the tests' embedder, which no record contains
	if len(results.Hits) == 0 || results.Hits[0].Record.ID != "doc:bill" || results.Hits[0].Vector <= 0 || results.Hits[0].BM25 != 0 {
		t.Errorf("found %+v", results.Hits)
	}
	if !results.Hybrid || results.Degraded {
		t.Errorf("hybrid %v, degraded %v", results.Hybrid, results.Degraded)
	}
}

func testSameText(t *testing.T, setup opener) {
	embedder := &fakeEmbedder{}
	x := filled(t, setup, embedder, record("doc:a", "Anchor", "Iron."))
	before := embedder.Embedded()
	apply(t, x, kb.Batch{Upsert: []kb.Record{record("doc:a", "Anchor", "Iron.",
		func(r *kb.Record) { r.URL = "https://example.org" })}, WordsOnly: true})
	if h := held(t, x)["doc:a"]; !h.Complete {
		t.Error("another URL cost the record its vector")
	}
	if n := embedder.Embedded() - before; n > 0 {
		t.Errorf("another URL made the index embed %d texts", n)
	}
	apply(t, x, kb.Batch{Upsert: []kb.Record{record("doc:a", "Anchor", "Steel.")}, WordsOnly: true})
	if h := held(t, x)["doc:a"]; h.Complete {
		t.Error("another text has the vector of the old one")
	}
}

func testEmbedderFails(t *testing.T, setup opener) {
	embedder := &fakeEmbedder{}
	x := setup(t, embedder)
	embedder.Fail(errEmbedder)
	a, b := record("doc:a", "Anchor", ""), record("doc:b", "Boat", "")
	apply(t, x, kb.Batch{Upsert: []kb.Record{a}})
	if h := held(t, x)["doc:a"]; h.Complete {
		t.Error("a record that was not embedded is complete")
	}
	want(t, "hits by words", ids(search(t, x, kb.Query{Text: "anchor"})), []string{"doc:a"})
	embedder.Fail(nil)
	apply(t, x, kb.Batch{Upsert: []kb.Record{a, b}})
	if h := held(t, x); !h["doc:a"].Complete || !h["doc:b"].Complete {
		t.Errorf("held %+v after the embedder works again", h)
	}
	embedder.Fail(errEmbedder)
	for range 2 {
		results := search(t, x, kb.Query{Text: "anchor"})
		want(t, "hits when the query cannot be embedded", ids(results), []string{"doc:a"})
		if results.Hybrid || !results.Degraded {
			t.Errorf("hybrid %v, degraded %v", results.Hybrid, results.Degraded)
		}
	}
}

func testSnippet(t *testing.T, setup opener) {
	long := ""
	for i := range 100 {
		long += fmt.Sprintf("Sentence %d is about nothing at all. ", i)
	}
	x := filled(t, setup, nil, record("doc:a", "Long", long+"The **lighthouse** is painted red every year. "+long))
	h := search(t, x, kb.Query{Text: "painting the lighthouse"}).Hits[0]
	if got := []rune(h.Snippet); len(got) > kb.SnippetRunes || !slices.Contains(got, '…') {
		t.Errorf("%d characters: %s", len(got), h.Snippet)
	}
	if want := "The lighthouse is painted red"; !strings.Contains(h.Snippet, want) {
		t.Errorf("the snippet is %q", h.Snippet)
	}
}

func testConcurrent(t *testing.T, setup opener) {
	x := filled(t, setup, &fakeEmbedder{}, record("doc:fixed", "Fixed anchor", ""))
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprintf("doc:w%d_%d", worker, i)
				if err := x.Apply(t.Context(), kb.Batch{Upsert: []kb.Record{record(id, "Moving anchor", "")}}); err != nil {
					t.Error(err)
				}
				results, err := x.Search(t.Context(), kb.Query{Text: "anchor", Limit: kb.MaxLimit})
				if err != nil || !slices.Contains(ids(results), id) || !slices.Contains(ids(results), "doc:fixed") {
					t.Errorf("after %s: %v, %v", id, ids(results), err)
				}
				if _, _, err := x.Get(t.Context(), []string{id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(held(t, x)); n != 41 {
		t.Errorf("%d of 41 records are stored", n)
	}
}

func testCancelled(t *testing.T, setup opener) {
	x := filled(t, setup, &fakeEmbedder{}, record("doc:a", "Anchor", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(ctx, kb.Query{Text: "anchor"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search returned %v", err)
	}
	if err := x.Apply(ctx, kb.Batch{Upsert: []kb.Record{record("doc:b", "B", "")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply returned %v", err)
	}
	if results := search(t, x, kb.Query{Text: "anchor"}); results.Degraded {
		t.Error("a cancelled call counts as a failing embedder")
	}
}

func testClosed(t *testing.T, setup opener) {
	x := filled(t, setup, nil, record("doc:a", "Anchor", ""))
	for range 2 {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, searched := x.Search(t.Context(), kb.Query{Text: "anchor"})
	_, _, got := x.Get(t.Context(), []string{"doc:a"})
	_, told := x.Held(t.Context())
	applied := x.Apply(t.Context(), kb.Batch{})
	for name, err := range map[string]error{"Search": searched, "Get": got, "Held": told, "Apply": applied} {
		if !errors.Is(err, kb.ErrClosed) {
			t.Errorf("%s returned %v", name, err)
		}
	}
}

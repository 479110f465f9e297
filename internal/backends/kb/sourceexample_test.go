package kb_test

import (
	"context"
	"fmt"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

func Example() {
	ctx := context.Background()
	index, err := local.Open(local.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = index.Close() }()
	source, err := kb.OpenSource(ctx, index, kb.SourceOptions{}) // no path: the demo
	if err != nil {
		panic(err)
	}
	defer func() { _ = source.Close() }()

	results, err := index.Search(ctx, kb.Query{Text: "When are you open on Friday?", Namespaces: []kb.Namespace{kb.NamespacePublic}, Limit: 1})
	if err != nil {
		panic(err)
	}
	for _, hit := range results.Hits {
		fmt.Println(hit.Record.ID, hit.Score)
		fmt.Println(hit.Snippet)
	}
	// Output:
	// doc:opening_hours 1
	// The studio is open to visitors Monday to Thursday 9:00 to 17:30 and Friday 9:00 to 14:00. We are closed on Saturday, Sunday and public holidays. Between 21 December and 3 January the studio is shut; urgent messages are read once a day.…
}

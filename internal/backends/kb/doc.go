// Package kb is the knowledge base that the retrieval tools work on: what a record is, what an
// index of records promises, who may read which of them ([Library]), whom a name in a query means
// ([ResolveAuthors]), and how tools present records to a model ([Evidence]).
//
// Package internal/backends/kb/source reads records from a folder into an Index and keeps it up to date.
// Two indexes exist: package internal/backends/kb/local, in this process, and package internal/backends/kb/qdrant,
// over the network; they rank alike with package internal/backends/kb/rank. Package internal/backends/kb/embed makes
// an Embedder of any OpenAI-compatible endpoint, and package internal/backends/kb/kbtest holds the tests
// that every Index must pass.
package kb

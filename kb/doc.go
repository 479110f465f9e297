// Package kb is the knowledge base that the retrieval tools work on: what a record
// is, how records are read from a folder and kept up to date, and what an index of
// them promises.
//
// A folder of Markdown files with front matter and of JSON lines is the source
// (OpenSource); an Index answers questions about it. Two indexes exist: package
// kb/local, in this process, and package kb/qdrant, over the network. They rank
// alike: BM25 and, with an Embedder, vectors, fused by reciprocal rank (Fuse).
// Package kb/embed makes an Embedder of any OpenAI-compatible endpoint, and package
// kb/kbtest holds the tests that every Index must pass.
//
// The limits on what outside files may hold are the constants of this package.
// A file that breaks one is reported as a Problem and hides no other.
package kb

// Package kb is the knowledge base that the retrieval tools work on: what a record
// is, how records are read from a folder and kept up to date, and what an index of
// them promises.
//
// A folder of Markdown files with front matter and of JSON lines is the source
// (OpenSource); an Index answers questions about it. Two indexes exist: package
// backends/kb/local, in this process, and package backends/kb/qdrant, over the network. They rank
// alike: BM25 and, with an Embedder, vectors, fused by reciprocal rank (Fuse).
// Package backends/kb/embed makes an Embedder of any OpenAI-compatible endpoint, and package
// backends/kb/kbtest holds the tests that every Index must pass.
//
// A Markdown file (.md) holds one record:
//
//	---
//	id: person:ada_l            # type:name; the types are those of Types
//	title: Ada Lindqvist        # or the heading on the first line of the text
//	namespace: studio           # studio (if absent), personal or public
//	tags: [founder, brand]
//	url: https://example.org/ada
//	source_type: handbook
//	last_updated: 2026-09-14T08:30:00Z   # or 2026-09-14; the file's time if absent
//	metadata: {role: Founder}
//	---
//	The text, in Markdown.
//
// A JSON lines file (.jsonl) holds one object a line with the same names and "text".
// Names that begin with a dot or an underscore, and README.md, are left out.
//
// The limits on what outside files may hold are the constants of this package.
// A file that breaks one is reported as a Problem and hides no other.
package kb

// Package source reads the records of a knowledge base from a folder of Markdown files with front
// matter and of JSON lines, and keeps an index equal to the folder (Open).
//
// A Markdown file (.md) holds one record:
//
//	---
//	id: person:ada_l            # type:name; the types are those of Types
//	title: Ada Lindqvist        # or the heading on the first line of the text
//	namespace: studio           # studio (if absent), personal or public
//	tags: [founder, brand]
//	authors: [mara_k]           # handles or ids of persons
//	categories: [People]
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
// The limits on what these files may hold are constants of this package and of package kb. A file
// that breaks one is reported as a kb.Problem and hides no other.
package source

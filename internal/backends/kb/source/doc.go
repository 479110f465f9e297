// Package source reads records from a folder of Markdown and JSON lines files, and keeps an index equal to the folder
// ([Open]).
//
// A Markdown file (.md) has one record:
//
//	---
//	id: person:ada_l            # type:name; the types are those of kb.Types
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
// A JSON lines file (.jsonl) has one object in each line with the same names and "text". Open ignores README.md and
// names that begin with a dot or an underscore. It follows links to files, not to folders.
//
// Constants of this package and of package kb limit the files. A file that exceeds one is a [kb.Problem].
package source

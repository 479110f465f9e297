// Package schema checks and compiles the JSON Schema of a tool's arguments or of its data
// ([CompileParameters], [CompileOutput]). A compiled [Schema] fills in defaults, validates a value, and says in
// words for a model what is wrong with it.
//
// It takes a strict part of draft 2020-12 that every provider has a form for, and opens no file and no
// address: a schema that refers outside itself is refused.
package schema

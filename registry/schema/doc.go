// Package schema compiles the JSON Schema of a tool's arguments or data ([CompileParameters], [CompileOutput]). A
// compiled [Schema] fills in defaults, validates values, and explains errors to a model.
//
// It supports a strict part of draft 2020-12 that every provider has a form for, and opens no files and no URLs:
// schemas with external references are rejected.
package schema

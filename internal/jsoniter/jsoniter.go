// Package jsoniter stands in for github.com/json-iterator/go, which the index's library
// for geographic shapes asks for in an old version. The gateway has no shapes. So the
// two functions that the library calls are the standard library's, and a parser that has
// not been looked after for years stays out of the program. See docs/dependencies.md.
package jsoniter

import "encoding/json"

// API is the part of json-iterator's type of this name that the library uses. Its methods
// may be called concurrently; the errors are encoding/json's.
type API struct{}

// ConfigCompatibleWithStandardLibrary is what the library calls.
var ConfigCompatibleWithStandardLibrary API

// Marshal is json.Marshal.
func (API) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal is json.Unmarshal.
func (API) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

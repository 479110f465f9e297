package store

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode writes a record for a bucket: JSON in which embedded JSON keeps its own bytes,
// except for white space between its values.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("store: a record that cannot be written: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads a record of a bucket. An unknown field comes from a newer version and is not
// an error.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

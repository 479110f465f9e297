package store

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode is the form of records in buckets: JSON in which the bytes of what is JSON
// already stay as they are, but for white space between its values.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("store: a record that cannot be written: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads a record of a bucket. A field that it does not know is a newer
// version's, and no mistake.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

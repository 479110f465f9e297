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

// recordVersion is the form of the records of nodes, sessions and checkpoints that this version
// writes. A field may be added without a new number: older versions ignore or keep it. A new
// number says that older versions must not use the record.
const recordVersion = 1

// decodeVersioned is decode for a record with a version.
func decodeVersioned(data []byte, v any) error {
	var head struct {
		V int `json:"v"`
	}
	switch err := decode(data, &head); {
	case err != nil:
		return err
	case head.V > recordVersion:
		return fmt.Errorf("%w (its form is %d, the newest known is %d)", ErrVersion, head.V, recordVersion)
	case head.V < 1:
		return fmt.Errorf("%w: a record without a version", ErrCorrupt)
	}
	return decode(data, v)
}

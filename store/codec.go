package store

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode encodes a record as JSON; embedded JSON keeps its bytes, except for white space between values.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("store: encode a record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode decodes a record. Unknown fields come from newer versions and are ignored.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// recordVersion is the format of versioned records, in the field "v". Adding a field doesn't change it, because older
// versions ignore or keep it. A new number stops older versions from using the record.
const recordVersion = 1

// encodeVersioned is encode for a record that has a version and at least one field.
func encodeVersioned(v any) ([]byte, error) {
	data, err := encode(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"v":%d,%s`, recordVersion, data[1:]), nil
}

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

// decodeAs decodes a record with decode or decodeVersioned. wrong describes an invalid one.
func decodeAs[T any](data []byte, decode func([]byte, any) error, wrong string, valid func(T) bool) (T, error) {
	var record, none T
	if err := decode(data, &record); err != nil {
		return none, err
	}
	if !valid(record) {
		return none, fmt.Errorf("%w: %s", ErrCorrupt, wrong)
	}
	return record, nil
}

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Object is a JSON object with its keys in this order: a key, its value, the next key and so on.
type Object []any

// MarshalJSON writes the keys in their order.
func (o Object) MarshalJSON() ([]byte, error) { return o.Encode(true) }

// Encode is MarshalJSON; escape is as in json.Encoder.SetEscapeHTML.
func (o Object) Encode(escape bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escape)
	b.WriteByte('{')
	for i := 0; i+1 < len(o); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", o[i])
		if err := enc.Encode(o[i+1]); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the new line that Encode adds
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"voicegw/registry"
)

// checkExample validates the arguments of an example.
func checkExample(schema, args json.RawMessage) []registry.Problem {
	const url = "tool:///example.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is opened") }
	if err := c.AddResource(url, bytes.NewReader(schema)); err != nil {
		return []registry.Problem{{Message: err.Error()}}
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return []registry.Problem{{Message: err.Error()}}
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return []registry.Problem{{Message: err.Error()}}
	}
	if err := compiled.Validate(v); err != nil {
		return []registry.Problem{{Message: fmt.Sprintf("%v", err)}}
	}
	return nil
}

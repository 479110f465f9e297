package spec

import "encoding/json"

// NoParameters is the schema of a tool that takes no arguments: what Parse puts into a Spec
// whose author has left "parameters" out or empty.
const NoParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// parametersOf returns the parameters of a schema.json, of which raw are the bytes.
func parametersOf(object map[string]any, raw json.RawMessage) json.RawMessage {
	v, has := object["parameters"]
	if empty, is := v.(map[string]any); !has || is && len(empty) == 0 {
		return json.RawMessage(NoParameters)
	}
	return raw
}

package spec

import "encoding/json"

// NoParameters is the schema of a tool without arguments, for specs that omit "parameters".
const NoParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// parametersOf returns the parameters of a schema.json.
func parametersOf(object map[string]any, raw json.RawMessage) json.RawMessage {
	v, has := object["parameters"]
	if empty, is := v.(map[string]any); !has || is && len(empty) == 0 {
		return json.RawMessage(NoParameters)
	}
	return raw
}

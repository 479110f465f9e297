package adapter

import "encoding/json"

func openAIForm(json.RawMessage) (json.RawMessage, error) { return nil, Problems{{Message: "not yet"}} }
func geminiForm(json.RawMessage) (json.RawMessage, error) { return nil, Problems{{Message: "not yet"}} }

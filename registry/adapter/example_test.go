package adapter_test

import (
	"errors"
	"fmt"

	"voicegw/registry/adapter"
)

func ExampleGeminiParameters() {
	form, err := adapter.GeminiParameters([]byte(`{
		"type": "object",
		"properties": {
			"minutes": {"type": "integer", "exclusiveMinimum": 0, "maximum": 90},
			"label": {"type": ["string", "null"], "maxLength": 40}
		},
		"required": ["minutes"],
		"additionalProperties": false
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(form))
	// Output:
	// {"type":"OBJECT","properties":{"minutes":{"type":"INTEGER","minimum":1,"maximum":90},"label":{"type":"STRING","nullable":true,"maxLength":40}},"propertyOrdering":["minutes","label"],"required":["minutes"]}
}

func ExampleProblems() {
	_, _, err := adapter.All([]byte(`{"type": "object", "properties": {
		"at": {"type": "string", "pattern": "(?i)noon"},
		"ring": {"type": "string", "enum": ["loud", ""]}
	}, "additionalProperties": false}`))
	var problems adapter.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Println(p.Path, p.Keyword)
		}
	}
	// Output:
	// /properties/at pattern
	// /properties/ring enum
}

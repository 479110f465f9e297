package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// TestTheTableAgreesWithTheBuild: a property with a keyword is built if and only if the table of docs/tool-schemas.md
// has the keyword.
func TestTheTableAgreesWithTheBuild(t *testing.T) {
	const str, num, list = `"type":"string"`, `"type":"integer"`, `"type":"array","items":{"type":"string"}`
	const obj = `"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"additionalProperties":false`
	samples := map[string]string{
		"type": str, "title": str + `,"title":"T"`, "description": str + `,"description":"D"`, "enum": str + `,"enum":["x"]`, "const": `"const":"x"`,
		"default": str + `,"default":"x"`, "examples": str + `,"examples":["x"]`, "deprecated": str + `,"deprecated":true`, "readOnly": str + `,"readOnly":true`,
		"writeOnly": str + `,"writeOnly":true`, "format": str + `,"format":"date"`, "contentEncoding": str + `,"contentEncoding":"base64"`,
		"contentMediaType": str + `,"contentMediaType":"text/csv"`, "contentSchema": str + `,"contentMediaType":"application/json","contentSchema":{"type":"string"}`,
		"pattern": str + `,"pattern":"^a$"`, "minLength": str + `,"minLength":1`, "maxLength": str + `,"maxLength":9`, "minimum": num + `,"minimum":1`,
		"exclusiveMinimum": num + `,"exclusiveMinimum":1`, "maximum": num + `,"maximum":1`, "exclusiveMaximum": num + `,"exclusiveMaximum":1`, "multipleOf": num + `,"multipleOf":2`,
		"items": list, "prefixItems": list + `,"prefixItems":[{"type":"string"}]`, "minItems": list + `,"minItems":1`, "maxItems": list + `,"maxItems":1`,
		"uniqueItems": list + `,"uniqueItems":true`, "contains": list + `,"contains":{"type":"string"}`, "minContains": list + `,"contains":{"type":"string"},"minContains":1`,
		"maxContains": list + `,"contains":{"type":"string"},"maxContains":1`, "properties": obj, "required": obj + `,"required":["b"]`, "minProperties": obj + `,"minProperties":1`,
		"maxProperties": obj + `,"maxProperties":1`, "additionalProperties": obj, "patternProperties": obj + `,"patternProperties":{"^x":{"type":"string"}}`,
		"propertyNames": obj + `,"propertyNames":{"maxLength":5}`, "dependentRequired": obj + `,"dependentRequired":{"b":["c"]}`,
		"dependentSchemas": obj + `,"dependentSchemas":{"b":{"required":["c"]}}`, "anyOf": `"anyOf":[{"type":"string"},{"type":"integer"}]`,
		"oneOf": `"oneOf":[{"type":"string"},{"type":"integer"}]`, "allOf": `"allOf":[{"type":"string"},{"minLength":1}]`, "not": str + `,"not":{"const":"x"}`,
		"if": str + `,"if":{"minLength":2},"then":{"maxLength":3}`, "then": str + `,"if":{"minLength":2},"then":{"maxLength":3}`, "else": str + `,"if":{"minLength":2},"else":{"maxLength":3}`,
		"$ref": `"$ref":"#/$defs/d"`, "$defs": `"$ref":"#/$defs/d"`, "definitions": str + `,"definitions":{"d":{"type":"string"}}`, "$anchor": str + `,"$anchor":"here"`,
		"$schema": str, "$id": str + `,"$id":"https://example.org/x"`, "$comment": str + `,"$comment":"C"`, "$dynamicRef": str + `,"$dynamicRef":"#d"`,
		"$dynamicAnchor": str + `,"$dynamicAnchor":"d"`, "$recursiveRef": str + `,"$recursiveRef":"#"`, "$recursiveAnchor": str + `,"$recursiveAnchor":true`,
		"$vocabulary": str + `,"$vocabulary":{}`, "unevaluatedProperties": obj + `,"unevaluatedProperties":false`, "unevaluatedItems": list + `,"unevaluatedItems":false`,
		"dependencies": obj + `,"dependencies":{"b":["c"]}`, "additionalItems": list + `,"additionalItems":false`, "nullable": str + `,"nullable":true`, "example": str + `,"example":"x"`,
	}
	inTable := map[string]bool{"x-note": true}
	for _, k := range document.Keywords {
		inTable[k.Name] = true
	}
	names := slices.Sorted(maps.Keys(samples))
	for name := range inTable {
		if samples[name] == "" && name != "x-note" {
			t.Errorf("%s has no sample in this test", name)
		}
	}
	for _, name := range append(names, "x-note", "minlength") {
		sample := cmp.Or(samples[name], str+`,"`+name+`":1`)
		schema := `"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{` + sample + `}},"$defs":{"d":{"type":"string"}},"additionalProperties":false`
		if name != "$schema" {
			schema = schema[len(`"$schema":"https://json-schema.org/draft/2020-12/schema",`):]
		}
		parsed, problems := spec.Parse(fmt.Appendf(nil, `{"toolId":"probe","version":"1.0.0","description":"Probes.","category":"utility","sideEffects":"none","idempotent":true,
			"requiresConfirmation":false,"allowedModes":["text"],"latencyBudgetMs":100,"parameters":{%s}}`, schema))
		parsed.Parameters = json.RawMessage("{" + schema + "}")
		_, _, err := adapter.All(parsed.Parameters)
		refused := !inTable[name]
		if got := len(problems) > 0 || err != nil; got != refused {
			t.Errorf("%s is refused: %t, but the table has %t: %v %v", name, got, refused, problems, err)
		}
	}
}

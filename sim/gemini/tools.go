package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Tool declarations: schemas that parse as the provider's Schema but are refused anyway
// (https://ai.google.dev/api/caching#Schema and #FunctionDeclaration, read 2026-11-20). Unknown keywords such as
// additionalProperties are refused earlier, as unknown names.

var (
	toolName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

type schema struct {
	Type       string            `json:"type"`
	Enum       []string          `json:"enum"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	AnyOf      []schema          `json:"anyOf"`
}

var schemaTypes = []string{"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}

func checkTools(groups []toolGroup, path string, h habits) ([]functionDeclaration, *closeError) {
	var out []functionDeclaration
	seen := map[string]bool{}
	for i, g := range groups {
		for j, d := range g.FunctionDeclarations {
			at := fmt.Sprintf("%s[%d].function_declarations[%d]", path, i, j)
			if err := checkDeclaration(d, at, h); err != nil {
				return nil, err
			}
			if seen[d.Name] {
				return nil, invalid("Duplicate function declaration found: %s", d.Name)
			}
			seen[d.Name] = true
			out = append(out, d)
		}
	}
	return out, nil
}

func checkDeclaration(d functionDeclaration, at string, h habits) *closeError {
	if !toolName.MatchString(d.Name) {
		return invalid("* BidiGenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an underscore. "+
			"Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 128.", at)
	}
	switch d.Behavior {
	case "", "UNSPECIFIED", "NON_BLOCKING":
	case "BLOCKING":
		if !h.blockingAllowed {
			return invalid(reasonInvalidArgument)
		}
	default:
		return invalid("Invalid value at '%s.behavior' "+
			"(type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionDeclaration.Behavior), %q", at, d.Behavior)
	}
	if len(d.Parameters) > 0 && len(d.JSONSchema) > 0 {
		return invalid(reasonInvalidArgument)
	}
	if len(d.Parameters) == 0 {
		return nil
	}
	var s schema
	if err := json.Unmarshal(d.Parameters, &s); err != nil {
		return invalid(reasonInvalidArgument)
	}
	if s.Type != "" && !strings.EqualFold(s.Type, "OBJECT") {
		return invalid("* BidiGenerateContentRequest.%s.parameters.type: must be OBJECT", at)
	}
	return checkSchema(s, at+".parameters")
}

func checkSchema(s schema, at string) *closeError {
	if s.Type != "" && !slices.Contains(schemaTypes, strings.ToUpper(s.Type)) {
		return invalid("Invalid value at '%s.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), %q", at, s.Type)
	}
	if len(s.Enum) > 0 && s.Type != "" && !strings.EqualFold(s.Type, "STRING") {
		return invalid("* BidiGenerateContentRequest.%s.enum: only allowed for STRING type", at)
	}
	if strings.EqualFold(s.Type, "ARRAY") && s.Items == nil {
		return invalid("* BidiGenerateContentRequest.%s.items: missing field.", at)
	}
	for i, name := range s.Required {
		if _, ok := s.Properties[name]; !ok && len(s.AnyOf) == 0 {
			return invalid("* BidiGenerateContentRequest.%s.required[%d]: property is not defined", at, i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if !parameterName.MatchString(name) {
			return invalid("* BidiGenerateContentRequest.%s.properties[%s]: Invalid property name.", at, name)
		}
		if err := checkSchema(p, fmt.Sprintf("%s.properties[%s]", at, name)); err != nil {
			return err
		}
	}
	for i, a := range s.AnyOf {
		if err := checkSchema(a, fmt.Sprintf("%s.any_of[%d]", at, i)); err != nil {
			return err
		}
	}
	if s.Items != nil {
		return checkSchema(*s.Items, at+".items")
	}
	return nil
}

package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// errOutput means that a result doesn't match the tool's output schema; only for the log.
var errOutput = errors.New("the handler's result breaks the tool's own output schema")

// fitOutput checks data against the tool's output schema, after replacing Go's nil slices and maps with empty lists
// and objects. If it doesn't match, the outcome is INTERNAL, with the places in its details. The log gets the places
// without values.
func (t *Tool) fitOutput(data json.RawMessage) (json.RawMessage, *outcome) {
	form := t.compiled.Output
	if form == nil {
		return data, nil
	}
	value, problems, _ := document.Decode(data, MaxDataBytes, document.MaxSpecDepth)
	changed := false
	if len(problems) == 0 {
		value, changed = form.Emptied(value)
		problems = form.Validate(value)
	}
	switch {
	case len(problems) > 0:
		return nil, t.brokenOutput(problems)
	case changed:
		return document.AppendCanonical(make([]byte, 0, len(data)), value), nil
	}
	return data, nil
}

func (t *Tool) brokenOutput(problems []document.Problem) *outcome {
	problems, more, details := problemDetails(problems)
	var places []string
	for _, p := range problems {
		places = append(places, document.Shorten(cmp.Or(p.Path, "the data as a whole"), 100))
	}
	if more > 0 {
		places = append(places, fmt.Sprintf("and %d more", more))
	}
	told := NewError(ErrorInternal, prompts.BrokenOutput(t.ToolID))
	told.Details = details
	return &outcome{err: fmt.Errorf("%w, at %s", errOutput, strings.Join(places, ", ")), told: told}
}

// problemDetails returns the problems that a model is told, how many more there are, and the details of an error.
func problemDetails(problems []document.Problem) (told []document.Problem, more int, details json.RawMessage) {
	more = max(0, len(problems)-document.MaxProblems)
	told = problems[:len(problems)-more]
	details, _ = document.Marshal(struct { // strings only: cannot fail
		Errors []document.Problem `json:"errors"`
		More   int                `json:"more,omitempty"`
	}{told, more})
	return told, more, details
}

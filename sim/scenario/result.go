package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const maxSpokenResult = 400

type outcome struct {
	ok      bool
	errType string
	value   any // decoded JSON; nil for plain text
}

// judge reads a result. A JSON object with ok false or a non-null error is an error; its type is error.type,
// error.code or the error itself.
func judge(output string) outcome {
	var v any
	if json.Unmarshal([]byte(output), &v) != nil {
		return outcome{ok: true}
	}
	o := outcome{ok: true, value: v}
	m, isObject := v.(map[string]any)
	if !isObject {
		return o
	}
	if ok, is := m["ok"].(bool); is && !ok {
		o.ok = false
	}
	switch e := m["error"].(type) {
	case string:
		o.ok, o.errType = false, e
	case map[string]any:
		o.ok = false
		for _, key := range []string{"type", "code"} {
			if s, is := e[key].(string); is && s != "" {
				o.errType = s
				break
			}
		}
	}
	return o
}

func speakResults(rs []Result) string {
	var parts []string
	for _, r := range rs {
		parts = append(parts, speakResult(r.Name, r.Output))
	}
	return strings.Join(parts, " ")
}

func speakResult(tool, output string) string {
	o := judge(output)
	if !o.ok {
		return shorten(speakError(o), maxSpokenResult)
	}
	if text, ok := speakBuiltin(tool, o); ok {
		return sentence(shorten(strings.Join(strings.Fields(text), " "), maxSpokenResult))
	}
	text := output
	if o.value != nil {
		text = speakValue(o.value, 0)
	}
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "Done."
	}
	return sentence(shorten(text, maxSpokenResult))
}

func speakError(o outcome) string {
	m, _ := o.value.(map[string]any)
	why := ""
	if e, ok := m["error"].(map[string]any); ok {
		if s, ok := e["message"].(string); ok {
			why = s
		}
	}
	if why == "" {
		why = strings.ToLower(strings.ReplaceAll(o.errType, "_", " "))
	}
	if why == "" {
		return "That did not work."
	}
	return "That did not work: " + sentence(why)
}

// speakValue describes a JSON value. Keys that only wrap answers are skipped, and keys about the call are omitted.
func speakValue(v any, depth int) string {
	switch x := v.(type) {
	case string:
		return x
	case nil:
		return ""
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case []any:
		return speakList(x, depth)
	case map[string]any:
		return speakObject(x, depth)
	}
	return fmt.Sprint(v)
}

func speakList(list []any, depth int) string {
	if depth > 3 {
		return ""
	}
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for i, e := range list {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %s more", number(len(list)-3)))
			break
		}
		if s := speakValue(e, depth+1); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

var ofTheCall = []string{"ok", "meta", "intents", "id"}

func speakObject(m map[string]any, depth int) string {
	if depth > 3 {
		return ""
	}
	for _, key := range []string{"output", "result", "results", "records", "data", "message", "title", "text"} {
		if e, ok := m[key]; ok && e != nil {
			return speakValue(e, depth+1)
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(ofTheCall, k) {
			continue
		}
		if s := speakValue(m[k], depth+1); s != "" {
			parts = append(parts, strings.ToLower(strings.Join(words(k), " "))+" "+s)
		}
	}
	return strings.Join(parts, ", ")
}

package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type fields map[string]any

func (f fields) text(key string) string { s, _ := f[key].(string); return strings.TrimSpace(s) }

func (f fields) list(key string) []fields {
	entries, _ := f[key].([]any)
	var out []fields
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (f fields) count(key string) int { entries, _ := f[key].([]any); return len(entries) }

var builtin = map[string]func(fields) string{
	"kb_search": func(f fields) string { return found(f.list("results"), "record", "title") },
	"kb_get":    speakRecords,
	"calendar_get_availability": func(f fields) string {
		return cmp.Or(f.text("summary"), fmt.Sprintf("There are %s appointments", number(f.count("busy"))))
	},
	"calendar_create_event": speakEvent,
	"extract_contacts":      speakContacts,
	"image_draft_prompt":    func(f fields) string { return found(f.list("variants"), "draft", "prompt") },
	"image_generate":        speakImages,
	"agent_list":            func(f fields) string { return found(f.list("agents"), "agent", "name") },
	"agent_get":             func(f fields) string { return "The agent is called " + orID(f) + ". " + f.text("description") },
	"agent_create":          func(f fields) string { return "I have made the agent " + orID(f) },
	"agent_update":          func(f fields) string { return "I have changed the agent " + orID(f) },
	"agent_delete": func(f fields) string {
		if stays, _ := f["stays"].(bool); stays {
			return "The edit of the agent " + f.text("id") + " is gone, and the agent stays as it is configured"
		}
		return "The agent " + f.text("id") + " is deleted"
	},
	"ignore_user":         func(f fields) string { return f.text("farewell_message") },
	"end_voice_session":   func(f fields) string { return f.text("farewell_message") },
	"start_voice_session": func(fields) string { return "You can go on by voice now" },
}

func speakBuiltin(tool string, o outcome) (string, bool) {
	speak := builtin[tool]
	data, ok := dataOf(o.value)
	if speak == nil || !ok {
		return "", false
	}
	text := strings.TrimSpace(speak(data))
	if text == "" {
		text = "That is done"
	}
	return text, true
}

func dataOf(value any) (fields, bool) {
	m, ok := value.(map[string]any)
	for range 3 {
		for _, wrapper := range []string{"output", "result", "data"} {
			if inner, is := m[wrapper].(map[string]any); is {
				if wrapper == "data" {
					return inner, true
				}
				m = inner
			}
		}
	}
	_, enveloped := m["ok"]
	return m, ok && !enveloped
}

// found counts the entries and names the first ones by a field.
func found(entries []fields, one, name string) string {
	var names []string
	for _, e := range entries {
		if n := e.text(name); n != "" {
			names = append(names, n)
		}
	}
	switch {
	case len(entries) == 0:
		return "I found no " + one
	case len(entries) == 1 && len(names) == 1:
		return "I found one " + one + ": " + names[0]
	default:
		return fmt.Sprintf("I found %s %ss: %s", number(len(entries)), one, listed(names))
	}
}

func listed(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), number(more)+" more")
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func orID(f fields) string { return cmp.Or(f.text("name"), f.text("id")) }

func speakRecords(f fields) string {
	records := f.list("records")
	if len(records) == 0 {
		return "There is no such record"
	}
	said := found(records, "record", "title")
	if text := records[0].text("snippet"); text != "" && len(records) == 1 {
		said = sentence(said) + " " + text
	}
	return said
}

func speakEvent(f fields) string {
	said := "It is in the calendar"
	if title := f.text("title"); title != "" {
		said = title + " is in the calendar"
	}
	if when := f.text("words"); when != "" {
		said += ": " + when
	}
	if made, is := f["created"].(bool); is && !made {
		said += ". It was there already"
	}
	return said
}

func speakContacts(f fields) string {
	var parts []string
	for _, kind := range []struct{ key, one, more, name string }{
		{"persons", "name", "names", "name"}, {"emails", "e-mail address", "e-mail addresses", "address"},
		{"phones", "phone number", "phone numbers", "e164"}, {"urls", "web address", "web addresses", "url"},
	} {
		entries := f.list(kind.key)
		switch len(entries) {
		case 0:
			continue
		case 1:
			kind.more = kind.one
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.text(kind.name))
		}
		parts = append(parts, fmt.Sprintf("%s %s, %s", number(len(entries)), kind.more, listed(names)))
	}
	if len(parts) == 0 {
		return "I found no contacts in it"
	}
	return "I found " + strings.Join(parts, "; ")
}

func speakImages(f fields) string {
	switch n := f.count("images"); n {
	case 0:
		return "There is no picture"
	case 1:
		return "Here is your picture"
	default:
		return fmt.Sprintf("Here are %s pictures", number(n))
	}
}

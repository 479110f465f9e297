package build

import (
	"regexp"
	"slices"
	"strings"

	"voicegw/registry/document"
)

var placeholder = regexp.MustCompile(`\b(TODO|FIXME|XXX|TBD)\b`)

const scaffolded = "TODO: do the work. Until then"

// legible rejects invisible characters in the guide, and warns of placeholders. read has already reported control
// characters and line ends.
func (l *linter) legible(file, text string) {
	line := 0
	for s := range strings.Lines(text) {
		line++
		told := func(r rune) rune { // reported by read
			if isControl(r) || r == '\r' {
				return -1
			}
			return r
		}
		if what, _ := document.Hidden(strings.Map(told, s)); what != "" {
			l.add(file, line, "", ruleFiles, "The line holds the character %s, which people cannot see but a model reads. Remove it.", what)
		}
		if found := placeholder.FindString(s); found != "" {
			l.warn(file, line, "", ruleGuide, "The line still holds %s, which a model reads. Write what is meant.", found)
		}
	}
}

func (l *linter) wording(file *text) {
	var walk func(v any, at document.Pointer, data bool)
	walk = func(v any, at document.Pointer, data bool) {
		pointer := at.String()
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				place := at.With(key)
				inData := data || slices.Contains([]string{"default", "examples", "enum", "const"}, key) || strings.HasPrefix(key, "x-")
				words, isText := value.(string)
				if isText && strings.HasPrefix(pointer, "/parameters") && !data && (key == "description" || key == "title") &&
					document.Wordless(words) {
					l.warnAt(file, place.String(), ruleOf(pointer),
						"The %s holds no word, so that it tells a model nothing. Write one, or leave it out.", key)
				}
				walk(value, place, inData)
			}
		case []any:
			for i, item := range v {
				walk(item, at.Index(i), data)
			}
		case string:
			if found := placeholder.FindString(v); found != "" && !strings.HasSuffix(pointer, "/$comment") {
				l.warnAt(file, pointer, ruleOf(pointer), "The text still holds %s, which a model reads. Write what is meant.", found)
			}
		}
	}
	walk(file.doc, nil, false)
}

func (l *linter) preview(file *text) {
	object, _ := file.doc.(map[string]any)
	preview, _ := object["preview"].(string)
	properties, _ := document.At(object["parameters"], document.Pointer{"properties"})
	if named, _ := properties.(map[string]any); preview == "" || len(named) == 0 {
		return
	}
	if !strings.Contains(strings.NewReplacer("{{", "", "}}", "").Replace(preview), "{") {
		l.warnAt(file, "/preview", "preview",
			"The preview names no argument, so the person who approves a call does not see what it does. Write {name} for an argument.")
	}
}

func speaksOf(text, name string) bool {
	const border = `[^_\pL\p{Nd}]`
	return name != "" && regexp.MustCompile(`(?:^|`+border+`)`+regexp.QuoteMeta(name)+`(?:$|`+border+`)`).MatchString(text)
}

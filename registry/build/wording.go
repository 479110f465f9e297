package build

import (
	"regexp"
	"strconv"
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

// wording warns of useless texts in schema.json: placeholders, and descriptions without words.
func (l *linter) wording(file string, tree *node) {
	var walk func(n *node, pointer string, data bool)
	walk = func(n *node, pointer string, data bool) {
		for _, m := range n.members {
			at := pointer + document.Pointer{m.key}.String()
			inData := data || m.key == "default" || m.key == "examples" || m.key == "enum" || m.key == "const" ||
				strings.HasPrefix(m.key, "x-")
			if m.value.kind == kindString && strings.HasPrefix(pointer, "/parameters") && !data &&
				(m.key == "description" || m.key == "title") && document.Wordless(m.value.text) {
				l.warn(file, m.line, at, ruleOf(at),
					"The %s holds no word, so that it tells a model nothing. Write one, or leave it out.", m.key)
			}
			walk(m.value, at, inData)
		}
		for i, item := range n.items {
			walk(item, pointer+"/"+strconv.Itoa(i), data)
		}
		if n.kind == kindString && !strings.HasSuffix(pointer, "/$comment") {
			if found := placeholder.FindString(n.text); found != "" {
				l.warn(file, tree.lineOf(pointer), pointer, ruleOf(pointer),
					"The text still holds %s, which a model reads. Write what is meant.", found)
			}
		}
	}
	walk(tree, "", false)
}

// preview warns of a preview that is equal for all calls.
func (l *linter) preview(file string, tree *node) {
	text := tree.str("preview")
	if text == "" || len(membersOf(tree.get("parameters").get("properties"))) == 0 {
		return
	}
	if !strings.Contains(strings.NewReplacer("{{", "", "}}", "").Replace(text), "{") {
		l.warn(file, tree.lineOf("/preview"), "/preview", "preview",
			"The preview names no argument, so the person who approves a call does not see what it does. Write {name} for an argument.")
	}
}

func speaksOf(text, name string) bool {
	const border = `[^_\pL\p{Nd}]`
	return name != "" && regexp.MustCompile(`(?:^|`+border+`)`+regexp.QuoteMeta(name)+`(?:$|`+border+`)`).MatchString(text)
}

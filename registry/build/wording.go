package build

import (
	"regexp"
	"strconv"
	"strings"

	"voicegw/registry/document"
)

// placeholder matches what remains of a template or of an author's to-do note.
var placeholder = regexp.MustCompile(`\b(TODO|FIXME|XXX|TBD)\b`)

// scaffolded is the line of a new handler that says that it does nothing yet.
const scaffolded = "TODO: do the work. Until then"

// legible refuses invisible characters in the guide, and warns of placeholders in it. Control
// characters and line ends were reported when the file was read.
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

// wording warns of texts in schema.json that tell a model nothing: placeholders, and
// descriptions of parameters without a word.
func (l *linter) wording(file string, tree *node) {
	var walk func(n *node, pointer string, data bool)
	walk = func(n *node, pointer string, data bool) {
		for _, m := range n.members {
			at := pointer + document.Pointer{m.key}.String()
			inData := data || m.key == "default" || m.key == "examples" || m.key == "enum" || m.key == "const" || strings.HasPrefix(m.key, "x-")
			if m.value.kind == kindString && strings.HasPrefix(pointer, "/parameters") && !data && (m.key == "description" || m.key == "title") && document.Wordless(m.value.text) {
				l.warn(file, m.line, at, ruleOf(at), "The %s holds no word, so that it tells a model nothing. Write one, or leave it out.", m.key)
			}
			walk(m.value, at, inData)
		}
		for i, item := range n.items {
			walk(item, pointer+"/"+strconv.Itoa(i), data)
		}
		if n.kind == kindString && !strings.HasSuffix(pointer, "/$comment") {
			if found := placeholder.FindString(n.text); found != "" {
				l.warn(file, tree.lineOf(pointer), pointer, ruleOf(pointer), "The text still holds %s, which a model reads. Write what is meant.", found)
			}
		}
	}
	walk(tree, "", false)
}

// preview warns of a preview that is the same for all calls.
func (l *linter) preview(file string, tree *node) {
	text := tree.str("preview")
	if text == "" || len(membersOf(tree.get("parameters").get("properties"))) == 0 {
		return
	}
	if !strings.Contains(strings.NewReplacer("{{", "", "}}", "").Replace(text), "{") {
		l.warn(file, tree.lineOf("/preview"), "/preview", "preview", "The preview names no argument, so the person who approves a call does not see what it does. Write {name} for an argument.")
	}
}

var (
	// listed matches the beginning of a line of "## Parameters" that describes parameters: a list
	// item, a table row or a heading that begins with names in code.
	listed = regexp.MustCompile("^\\s*(?:[-*+]|[0-9]+[.)]|\\||#{3,6})\\s*(?:\\*\\*|__)?((?:`[^`]+`[\\s,/&]*(?:and |or )?)+)")
	inCode = regexp.MustCompile("`([^`]+)`")
	// nameForm matches the name of a parameter, or of a part of one: slot.start, items[].id.
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\[\]|\.[A-Za-z_][A-Za-z0-9_]*)*$`)
)

// onlyGuide warns of parameters that are in the guide and not in the schema.
func (l *linter) onlyGuide(file string, s *section, parameters *node) {
	known := map[string]bool{}
	namesIn(parameters, known)
	fence := ""
	line := s.line
	for text := range strings.Lines(s.text) {
		line++
		text = strings.TrimRight(text, "\n")
		if fence != "" {
			if closesFence(text, fence) {
				fence = ""
			}
			continue
		}
		if fence, _ = opensFence(text); fence != "" {
			continue
		}
		begin := listed.FindStringSubmatch(text)
		if begin == nil {
			continue
		}
		for _, code := range inCode.FindAllStringSubmatch(begin[1], -1) {
			if !nameForm.MatchString(code[1]) {
				continue
			}
			for part := range strings.SplitSeq(strings.ReplaceAll(code[1], "[]", ""), ".") {
				if !known[part] {
					l.warn(file, line, "", ruleGuide, "The guide mentions %s, but the schema has no %q. A call with it is refused; correct one of the two.", code[1], part)
					break
				}
			}
		}
	}
}

// namesIn collects the names of all properties below a schema, and the texts of enums and
// constants, which a guide lists as well.
func namesIn(n *node, names map[string]bool) {
	for _, m := range n.members {
		if m.key == "properties" {
			for _, p := range m.value.members {
				names[p.key] = true
			}
		}
		if (m.key == "enum" || m.key == "const") && m.value != nil {
			for _, v := range append([]*node{m.value}, m.value.items...) {
				names[v.text] = true
			}
		}
		namesIn(m.value, names)
	}
	for _, item := range n.items {
		namesIn(item, names)
	}
}

// speaksOf reports whether a text contains name as a word.
func speaksOf(text, name string) bool {
	const border = `[^_\pL\p{Nd}]`
	return name != "" && regexp.MustCompile(`(?:^|`+border+`)`+regexp.QuoteMeta(name)+`(?:$|`+border+`)`).MatchString(text)
}

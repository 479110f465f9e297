package build

import (
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const maxName = 64

var dashName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

var reserved = [...]string{"main", "internal", "vendor", "testdata", "documentation", "init", "tools", "registry"}

func checkName(name string) string {
	pkg := packageName(name)
	switch {
	case !dashName.MatchString(name):
		return "must be small letters and digits in words joined by single dashes, a letter first, as in weather-lookup"
	case len(name) > maxName:
		return "has " + strconv.Itoa(len(name)) + " characters; a provider takes at most " + strconv.Itoa(maxName)
	case token.IsKeyword(pkg):
		return "makes the Go package " + pkg + ", which is a word of the language; choose another name"
	case slices.Contains(reserved[:], pkg):
		return "makes the Go package " + pkg + ", which has a meaning of its own; choose another name"
	case strings.HasSuffix(pkg, "test") && strings.HasSuffix(name, "-test"):
		return "ends in -test, which names Go's test packages; choose another name"
	default:
		return ""
	}
}

func toolID(name string) string { return strings.ReplaceAll(name, "-", "_") }

func packageName(name string) string { return strings.ReplaceAll(name, "-", "") }

var initialisms = map[string]string{
	"api": "API", "css": "CSS", "csv": "CSV", "html": "HTML", "http": "HTTP", "https": "HTTPS",
	"id": "ID", "ids": "IDs", "ip": "IP", "json": "JSON", "kb": "KB", "ms": "MS", "pdf": "PDF", "sql": "SQL",
	"ui": "UI", "uri": "URI", "url": "URL", "urls": "URLs", "utc": "UTC", "uuid": "UUID", "xml": "XML",
}

func goName(text string) string {
	name := camel(text)
	if !token.IsIdentifier(name) || !token.IsExported(name) {
		name = "X" + name
	}
	return name
}

func camel(text string) string {
	var b strings.Builder
	for _, w := range words(text) {
		if full, ok := initialisms[strings.ToLower(w)]; ok {
			b.WriteString(full)
			continue
		}
		r := []rune(w)
		b.WriteString(string(unicode.ToUpper(r[0])) + string(r[1:]))
	}
	return b.String()
}

func words(text string) []string {
	var all []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all, word = append(all, string(word)), nil
		}
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && !unicode.IsUpper(word[len(word)-1]):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return all
}

type scope map[string]bool

func (s scope) take(name string) string {
	unique := name
	for i := 2; s[unique]; i++ {
		unique = name + strconv.Itoa(i)
	}
	s[unique] = true
	return unique
}

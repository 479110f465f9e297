package build

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"voicegw/registry/spec"
)

// templates are the files of new tools.
//
//go:embed template/*/*.tmpl
var templates embed.FS

// New creates a tool in the project dir that builds and runs immediately: the three files, a test, and the generated
// types. It is an example of its category, by default retrieval. It returns the files, relative to the project. The
// error wraps [ErrName], [ErrExists] or [ErrNoTools], or is a file system error.
//
// With foreign, the name of a handler's file that is not Go code, dir is a directory of tools.
func New(dir, name string, category spec.Category, foreign ...string) ([]string, error) {
	if why := cmp.Or(checkName(name), spec.Reserved(toolID(name))); why != "" {
		return nil, fmt.Errorf("%w: %q %s", ErrName, name, why)
	}
	p, err := open(dir, foreign...)
	if err != nil {
		return nil, err
	}
	files, err := p.scaffold(name, cmp.Or(category, spec.CategoryRetrieval))
	return files, errors.Join(err, p.root.Close())
}

func (p *project) scaffold(name string, category spec.Category) ([]string, error) {
	if _, err := p.names(p.root.FS()); err != nil {
		return nil, err
	}
	dir := path.Join(p.base, name)
	if err := p.root.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s", ErrExists, dir)
	} else if err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	all, err := template.ParseFS(templates, path.Join("template", string(category), "*.tmpl"), "template/foreign/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("the templates of a tool: %w", err)
	}
	about := struct {
		Module, Name, ID, Package string
		Category                  spec.Category
	}{p.module, name, toolID(name), packageName(name), category}
	var written []string
	put := func(file string, text []byte) error {
		written = append(written, path.Join(dir, file))
		if err := os.WriteFile(filepath.Join(p.dir, filepath.FromSlash(dir), file), text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path.Join(dir, file), err)
		}
		return nil
	}
	files := []string{schemaFile, guideFile, handlerFile, "handler_test.go"}
	if p.foreign != nil {
		files = append(files[:2], p.foreign...)
	}
	for _, file := range files {
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, file+".tmpl", about); err != nil {
			return written, fmt.Errorf("the template of %s: %w", file, err)
		}
		if err := put(file, b.Bytes()); err != nil {
			return written, err
		}
	}
	t := p.linter.check(p.root.FS(), name)
	if t == nil {
		return written, fmt.Errorf("the new tool is refused by the build: %v", p.findings)
	}
	if p.foreign != nil {
		return written, nil
	}
	return written, put(ArgsFile, t.args)
}

const maxName = 64

var dashName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

var reserved = [...]string{"main", "internal", "vendor", "testdata", "documentation", "init", "tools", "registry"}

func checkName(name string) string {
	pkg := packageName(name)
	switch {
	case !dashName.MatchString(name):
		return "must be words of lower-case letters and digits, joined by single dashes and beginning with a letter, as in weather-lookup"
	case len(name) > maxName:
		return "has " + strconv.Itoa(len(name)) + " characters; a provider takes at most " + strconv.Itoa(maxName)
	case token.IsKeyword(pkg):
		return "makes the Go package " + pkg + ", which is a Go keyword; choose another name"
	case slices.Contains(reserved[:], pkg):
		return "makes the Go package " + pkg + ", which has a special meaning; choose another name"
	case strings.HasSuffix(pkg, "test") && strings.HasSuffix(name, "-test"):
		return "ends in -test, which names Go's test packages; choose another name"
	default:
		return ""
	}
}

func toolID(name string) string { return strings.ReplaceAll(name, "-", "_") }

func toolIDs(names []string) []string {
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = toolID(name)
	}
	return ids
}

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

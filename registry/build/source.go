package build

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	gobuild "go/build"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// The files of a tool.
const (
	schemaFile  = "schema.json"
	guideFile   = "guide.md"
	handlerFile = "handler.go"
	networkFile = "handler.js" // the handlers that use network
)

// Maximum sizes of the files, in bytes. Models read the first two.
const (
	maxSchema  = 64 << 10
	maxGuide   = 64 << 10
	maxHandler = 1 << 20
)

const toolsDir = "tools"

type source struct {
	name    string // of the directory
	dir     string // its path
	named   bool   // the name is valid
	schema  []byte // nil if unreadable, like the others
	guide   []byte
	handler []byte
	kind    string            // the name of the handler's file
	args    []byte            // the current zz_args.go
	others  map[string][]byte // the build's other Go files
	left    map[string][]byte // excluded Go files: tests, and those with unmet constraints
}

func (s *source) file(name string) string { return path.Join(s.dir, name) }

// names lists the sorted directories of tools. Like the go command, it ignores names that start with a dot or an
// underscore.
func (l *linter) names(root fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(root, l.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoTools
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tools: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") || e.Name() == "testdata" {
			continue
		}
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil // ReadDir sorts
}

// read reads a tool's files. root is limited by os.Root, so links cannot leave the project; links inside are rejected
// too.
func (l *linter) read(root fs.FS, name string) *source {
	dir := path.Join(l.base, name)
	s := &source{name: name, dir: dir, others: map[string][]byte{}, left: map[string][]byte{}}
	info, err := fs.Lstat(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.add(dir, 0, "", ruleDirectory, "There is no directory %s.", dir)
		return s
	}
	if err != nil || !info.IsDir() {
		l.add(dir, 0, "", ruleDirectory, "The directory %s is a link or cannot be read. Tools must be real directories: "+
			"copy the files here.", dir)
		return s
	}
	text := checkName(name)
	s.named = text == ""
	if !s.named {
		l.add(dir, 0, "", ruleDirectory, "The directory's name %q %s.", name, text)
	}
	s.schema = l.file(root, s.file(schemaFile), maxSchema)
	s.guide = l.file(root, s.file(guideFile), maxGuide)
	if l.foreign != nil {
		if s.kind = l.kind(root, dir); s.kind != "" {
			s.handler = l.file(root, s.file(s.kind), maxHandler)
		}
		return s
	}
	s.kind = handlerFile
	s.handler = l.file(root, s.file(handlerFile), maxHandler)
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		l.add(dir, 0, "", ruleDirectory, "The directory cannot be read: %v.", err)
	}
	for _, e := range entries {
		switch n := e.Name(); {
		case n == schemaFile, n == guideFile, n == handlerFile, !strings.HasSuffix(n, ".go"):
		case strings.HasSuffix(n, "_test.go"), strings.HasPrefix(n, "_"), strings.HasPrefix(n, "."):
			s.left[n], _ = readFile(root, s.file(n), maxHandler) // only for hints, and for the names in it
		case n == ArgsFile:
			s.args, _ = readFile(root, s.file(n), maxHandler) // an unreadable file counts as outdated
		default:
			switch text := l.file(root, s.file(n), maxHandler); {
			case text == nil:
			case built(n, text):
				s.others[n] = text
			default:
				s.left[n] = text
			}
		}
	}
	return s
}

// built reports whether the go command compiles a file, on this system.
func built(name string, text []byte) bool {
	context := gobuild.Default
	context.CgoEnabled = false
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	match, err := context.MatchFile(".", name)
	return match || err != nil // an invalid Go file is reported elsewhere
}

// file reads one required file; nil if it is unusable.
func (l *linter) file(root fs.FS, name string, most int64) []byte {
	data, err := readFile(root, name, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.add(name, 0, "", ruleFiles, "The file is missing. A tool has schema.json, guide.md and %s.",
			cmp.Or(strings.Join(l.foreign, " or "), handlerFile))
		return nil
	case err != nil:
		l.add(name, 0, "", ruleFiles, "The file cannot be used: %v.", err)
		return nil
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		l.add(name, 1, "", ruleFiles, "The file begins with a byte order mark. Save it as UTF-8 without one.")
		return nil
	case !utf8.Valid(data):
		l.add(name, lineAt(data, firstInvalid(data)), "", ruleFiles, "The file is not UTF-8. Save it as UTF-8.")
		return nil
	}
	if i := bytes.IndexByte(data, '\r'); i >= 0 {
		l.add(name, lineAt(data, i), "", ruleFiles,
			"The line ends in CR LF, so the tool would have a different version on another machine. Save the file with LF line endings.")
	}
	if i := bytes.IndexFunc(data, isControl); i >= 0 {
		l.add(name, lineAt(data, i), "", ruleFiles, "The line has the control character %U, which is invisible. Remove it.", data[i])
	}
	return data
}

// isControl reports whether r is a forbidden control character; the caller checks line ends.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f
}

func readFile(root fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Lstat(root, name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("it is a symbolic link, and nothing outside the tool's directory is read; copy the file here")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("it has %d bytes; the maximum is %d", info.Size(), most)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, errors.Join(err, f.Close())
}

// names reports whether a hand-written Go file, including tests, has a name with that prefix. The file may be
// invalid.
func (s *source) names(prefix string) bool {
	has := func(text []byte) bool {
		var words scanner.Scanner
		words.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
		for {
			switch _, kind, name := words.Scan(); {
			case kind == token.EOF:
				return false
			case kind == token.IDENT && strings.HasPrefix(name, prefix):
				return true
			}
		}
	}
	return has(s.handler) || slices.ContainsFunc(slices.Collect(maps.Values(s.others)), has) ||
		slices.ContainsFunc(slices.Collect(maps.Values(s.left)), has)
}

func (s *source) handlerHash(name string) string {
	files := maps.Clone(s.others)
	files[name] = s.handler
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum.Write(fmt.Appendf(nil, "%s %d\n%s", name, len(files[name]), files[name]))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return 0
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	// fencedCode and lineCode match the code of a page.
	fencedCode = regexp.MustCompile("(?ms)^ *```[a-z]*\n(.*?)^ *```")
	lineCode   = regexp.MustCompile("`([^`\n]+)`")
	// calledProgram matches a call of this program, with its arguments.
	calledProgram = regexp.MustCompile(`(?:^|[$;&|(] *|=\S+ +)(?:\./bin/|bin/)?voicegw((?: +[^\s|;&)#]+)+)`)
)

// TestPagesCallCommandsThatExist checks the commands and flags of voicegw in the code of the docs.
func TestPagesCallCommandsThatExist(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Vars{"scripts": ""})
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../web/*.md", "../../web/*/README.md", "../../deploy/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	calls := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		var lines []string
		for _, m := range fencedCode.FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Split(strings.ReplaceAll(m[1], "\\\n", " "), "\n")...)
		}
		for _, m := range lineCode.FindAllStringSubmatch(fencedCode.ReplaceAllString(text, ""), -1) {
			lines = append(lines, m[1])
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "    ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		for _, line := range lines {
			for _, m := range calledProgram.FindAllStringSubmatch(line, -1) {
				args := strings.Fields(m[1])
				if strings.HasSuffix(args[0], ":") {
					continue // output of the program
				}
				calls++
				if wrong := wrongCall(parser.Model.Node, args); wrong != "" {
					t.Errorf("%s: voicegw%s: %s", page, m[1], wrong)
				}
			}
		}
	}
	if calls < 50 {
		t.Errorf("the pages have only %d calls of voicegw; has their form changed?", calls)
	}
}

// wrongCall returns the first unknown command or flag of a call; empty without one.
func wrongCall(node *kong.Node, args []string) string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if name := strings.TrimLeft(arg, "-"); name != arg {
			name, _, hasValue := strings.Cut(name, "=")
			flags := slices.Concat(node.AllFlags(false)...)
			at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name || len(name) == 1 && f.Short == rune(name[0]) })
			switch {
			case name == "":
			case at < 0 && node.DefaultCmd != nil:
				node = node.DefaultCmd
				i-- // it may be a flag of the default command
			case at < 0:
				return "there is no flag " + arg
			case !hasValue && !flags[at].IsBool():
				i++ // its value
			}
			continue
		}
		child := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == arg })
		switch {
		case child >= 0:
			node = node.Children[child]
		case len(node.Children) > 0:
			return "there is no command " + arg
		}
	}
	return ""
}

package protocol

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden conversations as the codec writes them now")

// golden is a line of a golden conversation: a sign for its sender, and its content. testdata/speech.txtar explains the
// signs.
type golden struct {
	sign byte
	text string
}

// conversation reads a file of testdata.
func conversation(t testing.TB, file string) (*txtar.Archive, []golden) {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(ar.Files) != 1 || ar.Files[0].Name != "conversation" || len(strings.TrimSpace(string(ar.Comment))) == 0 {
		t.Fatalf("%s: want a description and one section conversation", file)
	}
	var lines []golden
	for line := range strings.Lines(string(ar.Files[0].Data)) {
		sign, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || len(sign) != 1 || !strings.Contains("><!~", sign) {
			t.Fatalf("%s: invalid line: %s", file, line)
		}
		lines = append(lines, golden{sign[0], text})
	}
	return ar, lines
}

// TestGoldenConversations: each line of testdata matches the codec: messages are unchanged after reading and writing,
// and refused messages get the error that follows them.
func TestGoldenConversations(t *testing.T) {
	files := goldenFiles(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, lines := conversation(t, file)
			var out strings.Builder
			for i, line := range lines {
				got := ""
				if i > 0 && lines[i-1].sign == '!' {
					got = refusalOf(t, lines[i-1].text, line)
				} else {
					got = rewritten(t, line)
				}
				if got != line.text && !*update {
					t.Errorf("line %d\ngot  %s\nwant %s", i+1, got, line.text)
				}
				out.WriteString(string(line.sign) + " " + got + "\n")
			}
			if n := len(lines); n > 0 && lines[n-1].sign == '!' {
				t.Error("no error follows the refused last line")
			}
			if *update && !t.Failed() {
				ar.Files[0].Data = []byte(out.String())
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func goldenFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	return files
}

// rewritten reads a line and writes it again.
func rewritten(t *testing.T, line golden) string {
	t.Helper()
	switch line.sign {
	case '>':
		m, err := ParseClient([]byte(line.text))
		if err != nil {
			t.Fatalf("%s: %v", line.text, err)
		}
		text, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	case '<':
		m, err := ParseServer([]byte(line.text))
		if err != nil {
			t.Fatalf("%s: %v", line.text, err)
		}
		if _, unknown := m.(*Unknown); unknown {
			t.Errorf("unknown: %s", line.text)
		}
		return encoded(t, m)
	case '~':
		if m, err := ParseServer([]byte(line.text)); err != nil {
			t.Errorf("not ignored: %s: %v", line.text, err)
		} else if _, unknown := m.(*Unknown); !unknown {
			t.Errorf("not unknown: %s", line.text)
		}
	case '!':
		if _, err := ParseClient([]byte(line.text)); err == nil {
			t.Errorf("not refused: %s", line.text)
		}
	}
	return line.text
}

// refusalOf returns the error for a refused frame, with the seq of answer.
func refusalOf(t *testing.T, frame string, answer golden) string {
	t.Helper()
	_, err := ParseClient([]byte(frame))
	var bad *MessageError
	if !errors.As(err, &bad) {
		t.Fatalf("%s is refused with %v, want a MessageError", frame, err)
	}
	var head Header
	if err := json.Unmarshal([]byte(answer.text), &head); err != nil || answer.sign != '<' || head.Type != "error" {
		t.Fatalf("%s is refused, and %s follows it, want an error: %v", frame, answer.text, err)
	}
	return encodedAs(t, head.Seq, &Error{Code: bad.Code, Message: bad.Message, Ref: bad.Field})
}

func encoded(t *testing.T, m ServerMessage) string {
	t.Helper()
	return encodedAs(t, HeaderOf(m).Seq, m)
}

func encodedAs(t *testing.T, seq int64, m ServerMessage) string {
	t.Helper()
	text, err := EncodeServer(seq, m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGoldenConversationsAreComplete: testdata has every type of message with each of its fields, as a test for codecs
// in other languages.
func TestGoldenConversationsAreComplete(t *testing.T) {
	seen := map[string]map[string]bool{} // the paths of fields, by type
	for _, file := range goldenFiles(t) {
		_, lines := conversation(t, file)
		for _, line := range lines {
			if line.sign != '>' && line.sign != '<' {
				continue
			}
			var fields map[string]any
			if err := json.Unmarshal([]byte(line.text), &fields); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			typ, _ := fields["type"].(string)
			if seen[typ] == nil {
				seen[typ] = map[string]bool{}
			}
			collect(seen[typ], "", fields)
		}
	}
	want := maps.Clone(clientTypes)
	maps.Copy(want, serverTypes)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, path := range fieldsOf(want[name], "") {
			if !seen[name][path] {
				t.Errorf("no line of testdata has %s with the field %s", name, path)
			}
		}
		if seen[name] == nil {
			t.Errorf("no line of testdata has the type %s", name)
		}
	}
}

// collect records the paths of all members.
func collect(seen map[string]bool, prefix string, fields map[string]any) {
	for name, v := range fields {
		seen[prefix+name] = true
		if inner, ok := v.(map[string]any); ok {
			collect(seen, prefix+name+".", inner)
		}
	}
}

// fieldsOf returns the paths of a message's own fields in JSON, without those of its header, which not every message
// has.
func fieldsOf(typ reflect.Type, prefix string) []string {
	var paths []string
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		under := f.Type
		if under.Kind() == reflect.Pointer {
			under = under.Elem()
		}
		switch {
		case f.Type == reflect.TypeFor[Header]() || name == "-":
		case f.Anonymous && name == "":
			paths = append(paths, fieldsOf(under, prefix)...)
		case under.Kind() == reflect.Struct && under != reflect.TypeFor[Time]():
			paths = append(paths, prefix+name)
			paths = append(paths, fieldsOf(under, prefix+name+".")...)
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// goldenSeeds returns the lines of testdata with one of the signs, for fuzzing.
func goldenSeeds(t testing.TB, signs string) [][]byte {
	t.Helper()
	var seeds [][]byte
	for _, file := range goldenFiles(t) {
		_, lines := conversation(t, file)
		for _, line := range lines {
			if strings.ContainsRune(signs, rune(line.sign)) {
				seeds = append(seeds, []byte(line.text))
			}
		}
	}
	return seeds
}

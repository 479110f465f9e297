package build

import (
	"go/ast"
	gobuild "go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/adapter"
)

// argsOf is argsSource for parameters as an author writes them.
func argsOf(pkg string, parameters []byte) ([]byte, error) {
	form, err := adapter.OpenAIParameters(parameters)
	if err != nil {
		return nil, err
	}
	return argsSource(pkg, bindings{parameters: form})
}

// TestShapes compares the code generated from testdata/shapes.json with zz_shapes_test.go, which shapes_test.go uses:
// so it compiles too.
func TestShapes(t *testing.T) {
	data, err := os.ReadFile("testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := argsOf("build_test", data)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "zz_shapes_test.go"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// checker type-checks generated Go.
type checker struct {
	fset *token.FileSet
	conf types.Config
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	// A test compiled with -trimpath does not know the location of the standard library.
	if gobuild.Default.GOROOT == "" {
		root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		gobuild.Default.GOROOT = strings.TrimSpace(string(root))
	}
	fset := token.NewFileSet()
	return &checker{fset, types.Config{Importer: importer.ForCompiler(fset, "source", nil)}}
}

func (c *checker) check(text []byte) error {
	file, err := parser.ParseFile(c.fset, ArgsFile, text, parser.ParseComments)
	if err != nil {
		return err
	}
	_, err = c.conf.Check("tool", c.fset, []*ast.File{file}, nil)
	return err
}

func TestGeneratedGoCompiles(t *testing.T) {
	checker := newChecker(t)
	for name, schema := range map[string]string{
		"nothing":         `{"type":"object","additionalProperties":false}`,
		"colliding names": `{"type":"object","properties":{"user_id":{"type":"string"},"userId":{"type":"string"},"user__id":{"type":"string"},"USER_ID":{"type":"string"},"_":{"type":"string"},"__":{"type":"string"},"type":{"type":"string"},"_9":{"type":"integer"}},"additionalProperties":false}`,
		"colliding types": `{"type":"object","properties":{"a":{"type":"object","properties":{"b_item":{"enum":["x"]},"b":{"type":"array","items":{"enum":["x"]}}},"additionalProperties":false},"a_b":{"enum":["item_x","item-x","Item X"]},"needs":{"enum":["a"]}},"additionalProperties":false}`,
		"odd values":      `{"type":"object","properties":{"s":{"enum":["","  ","-","+","a b","a-b","é","日本","x","\"quo` + "`" + `ted\"","\u0000","line\nbreak"]},"i":{"type":"integer","enum":[-1,0,1,9223372036854775807,1.0,1e2]},"n":{"type":"number","enum":[-1.5,1e300,0.1,3]},"b":{"const":true},"m":{"enum":[1,"a"]},"z":{"enum":["a",null]}},"additionalProperties":false}`,
		"bad comments":    `{"type":"object","description":"*/ package x\n//go:embed secret\nfunc main() {}","properties":{"a":{"type":"string","description":"\u2028 evil\r\n*/ ` + "`" + ` //go:build ignore\n\t# Heading\n- list"}},"additionalProperties":false}`,
		"references":      `{"type":"object","properties":{"a":{"$ref":"#/$defs/p"},"b":{"allOf":[{"$ref":"#/$defs/p"}],"description":"B."},"c":{"anyOf":[{"$ref":"#/$defs/p"},{"type":"null"}]}},"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}},"additionalProperties":false}`,
		"raw":             `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{"type":["string","integer"]},"c":{"type":"array","prefixItems":[{"type":"string"}]},"d":{"type":"array","items":{"type":"array","items":{"type":["boolean","null"]}}}},"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := argsOf("tool", []byte(schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := checker.check(text); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			again, err := argsOf("tool", []byte(schema))
			if err != nil || string(again) != string(text) {
				t.Errorf("the second time it is different: %v", err)
			}
		})
	}
}

func TestNoGoType(t *testing.T) {
	for name, schema := range map[string]string{
		"not an object":     `{"type":"string"}`,
		"recursive":         `{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}`,
		"circle":            `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}},"additionalProperties":false}`,
		"dangling":          `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"additionalProperties":false}`,
		"outside":           `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}},"additionalProperties":false}`,
		"too large an enum": `{"type":"object","properties":{"a":{"type":"integer","enum":[9223372036854775808]}},"additionalProperties":false}`,
		"a name in the tag": `{"type":"object","properties":{"a\"b":{"type":"string"}},"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			if text, err := argsOf("tool", []byte(schema)); err == nil {
				t.Errorf("it became\n%s", text)
			}
		})
	}
}

func TestGoNames(t *testing.T) {
	for text, want := range map[string]string{
		"top_k": "TopK", "user_id": "UserID", "userId": "UserID", "ids": "IDs", "HTTPServer": "HTTPServer", "a": "A",
		"3d": "X3d", "_": "X", "date-time": "DateTime", "url": "URL", "日本": "X日本", "élan": "Élan",
	} {
		if got := goName(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}

func FuzzArgs(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x",null]}}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b","default":3}},"$defs":{"b":{"type":"integer","minimum":1e999}}}`,
		`{"properties":{"a":true,"b":{"anyOf":[{"type":"null"},{"allOf":[{"$ref":"#"}]}]}}}`,
		`{"type":"object","properties":[1],"required":{"a":1},"enum":{},"items":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := argsSource("tool", bindings{parameters: data})
		if err != nil {
			return
		}
		if _, err := parser.ParseFile(token.NewFileSet(), ArgsFile, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if strings.Contains(string(text), "map[") && !strings.Contains(string(data), "map[") {
			t.Errorf("a map:\n%s", text)
		}
	})
}

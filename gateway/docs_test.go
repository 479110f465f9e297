package gateway

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"voicegw/internal/user"
)

// curls matches the requests with a body on a page: their paths and bodies.
var curls = regexp.MustCompile(`curl (?:-N )?http://127\.0\.0\.1:8080(/v1/[a-z/]+)[^\n]*(?: \\\n)?[^\n]*-d '([^']+)'`)

// TestPagesRequests: the requests in docs/chat.md, docs/chat-completions.md and docs/handoff.md are accepted.
func TestPagesRequests(t *testing.T) {
	seen := map[string]int{}
	for _, page := range []string{"chat.md", "chat-completions.md", "handoff.md"} {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range curls.FindAllSubmatch(text, -1) {
			path, body := string(found[1]), string(found[2])
			seen[path]++
			if path == "/v1/sessions" {
				var b sessionBody
				if err := json.Unmarshal([]byte(body), &b); err != nil {
					t.Errorf("%s: %v", body, err)
				} else if _, wrong := invitation(b, user.User{}); wrong != "" {
					t.Errorf("%s: %s", body, wrong)
				}
				continue
			}
			s, _ := chatServer(t, &fakeAgent{}, nil)
			if w := send(s, path, body, nil); w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
	for path, n := range map[string]int{"/v1/chat": 2, "/v1/chat/completions": 1, "/v1/sessions": 1} {
		if seen[path] != n {
			t.Errorf("the pages show %d requests to %s, want %d", seen[path], path, n)
		}
	}
}

// TestEveryErrorCodeIsDocumented: each code of an HTTP error is on a page of the docs.
func TestEveryErrorCodeIsDocumented(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for i, arg := range call.Args[:max(len(call.Args)-1, 0)] {
				status, isStatus := arg.(*ast.SelectorExpr)
				literal, isLiteral := call.Args[i+1].(*ast.BasicLit)
				if !isStatus || !isLiteral || !strings.HasPrefix(status.Sel.Name, "Status") || literal.Kind != token.STRING {
					continue
				}
				code, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if codes++; !strings.Contains(docs.String(), "`"+code+"`") {
					t.Errorf("%s: no page of docs has the code `%s`", name, code)
				}
			}
			return true
		})
	}
	if codes < 50 {
		t.Errorf("only %d codes were found", codes)
	}
}

package voicegw_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"voicegw/internal/bounded"
)

// mayConnect are the files outside of internal/bounded that may name what it takes the
// place of, each with the reason.
var mayConnect = map[string]string{
	"internal/nonblock/dial.go":      "copies the transport of a WebSocket handshake; ws.Dial bounds it",
	"internal/ws/dial.go":            "is the one that bounds handshakes, and copies a transport for each",
	"internal/server/wiring.go":      "makes the client that ws.Dial copies, from bounded.NewTransport",
	"cmd/voicegw/tls.go":             "makes the client that ws.Dial copies, from bounded.NewTransport; what else is asked goes through bounded.Client",
	"transport/gemini/options.go":    "makes the client that ws.Dial copies, from bounded.NewTransport",
	"client/load/run.go":             "makes the client that ws.Dial copies, from bounded.NewTransport; what else is asked goes through bounded.Client",
	"internal/backends/kb/qdrant.go": "makes the client from bounded.NewTransport that the next line hands to bounded.Client",
	"transport/openai/service.go":    "makes the client that ws.Dial copies",
	"internal/testutil/main.go":      "looks at the answers of servers of tests",
}

// connects are the names of net/http that connect without a bound.
var connects = []string{"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Post", "PostForm", "Head"}

// sdks are the modules that send HTTP by a client that they are given, or by their own.
var sdks = []string{
	"github.com/openai/openai-go/v3/option", "google.golang.org/genai", "github.com/emersion/go-webdav",
	"golang.org/x/oauth2", "github.com/coder/websocket",
}

// TestEveryClientIsBounded: no HTTP client is made but by internal/bounded, which reads no
// answer without an end, and what uses an SDK hands it one of those.
func TestEveryClientIsBounded(t *testing.T) {
	used := map[string]bool{}
	bounds := map[string]bool{}            // packages that import internal/bounded
	imports := map[string]map[string]int{} // of SDKs that connect, by package
	for _, path := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(path)
		names := map[string]string{} // of imports, by the name that they have here
		for _, i := range file.Imports {
			from, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			name := from[strings.LastIndexByte(from, '/')+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = from
			bounds[dir] = bounds[dir] || from == module+"/internal/bounded"
		}
		for _, found := range unbounded(file, names) {
			if used[path] = true; mayConnect[path] == "" {
				t.Errorf("%s uses http.%s; use internal/bounded, or say in mayConnect (clients_test.go) why its answers have an end", path, found)
			}
		}
		for _, sdk := range calledSDKs(file, names) {
			if imports[dir] == nil {
				imports[dir] = map[string]int{}
			}
			imports[dir][sdk]++
		}
	}
	for dir, of := range imports {
		for sdk := range of {
			if !bounds[dir] {
				t.Errorf("%s connects with %s and does not import internal/bounded: hand the SDK a bounded.Client", dir, sdk)
			}
		}
	}
	for path := range mayConnect {
		if !used[path] {
			t.Errorf("%s is in mayConnect and makes no client", path)
		}
	}
	if len(imports) < 5 {
		t.Errorf("only %d packages use an SDK; is one of them called otherwise now?", len(imports))
	}
}

// sources are the Go files of the module without its tests, examples and internal/bounded.
func sources(t *testing.T) []string {
	t.Helper()
	return goFiles(t, func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/bounded/") && !strings.HasPrefix(path, "examples/")
	})
}

// goFiles are those Go files of the module that a test wants.
func goFiles(t *testing.T, wanted func(path string) bool) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go") && wanted(path):
			all = append(all, path)
		}
		return nil
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d Go files: %v", len(all), err)
	}
	return all
}

// unbounded are the names of net/http by which a file makes or takes an unbounded client.
// Client and Transport count as values, not where they are part of a type.
func unbounded(file *ast.File, names map[string]string) []string {
	var found []string
	see := func(e ast.Expr, only ...string) {
		if s, ok := e.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && names[x.Name] == "net/http" && slices.Contains(only, s.Sel.Name) {
				found = append(found, s.Sel.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			see(n.Type, "Client", "Transport")
		case *ast.ValueSpec: // var c http.Client
			see(n.Type, "Client", "Transport")
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" && len(n.Args) == 1 {
				see(n.Args[0], "Client", "Transport")
			}
		case *ast.SelectorExpr:
			see(n, connects[2:]...)
		}
		return true
	})
	return found
}

// calledSDKs are the SDKs whose connecting functions a file calls.
func calledSDKs(file *ast.File, names map[string]string) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		from := names[x.Name]
		isSDK := slices.ContainsFunc(sdks, func(sdk string) bool { return from == sdk || strings.HasPrefix(from, sdk+"/") })
		makes := strings.HasPrefix(s.Sel.Name, "New") && !strings.HasPrefix(s.Sel.Name, "NewOpt")
		if isSDK && (makes || s.Sel.Name == "Dial" || s.Sel.Name == "WithHTTPClient" || s.Sel.Name == "WithBaseURL") {
			found = append(found, from)
		}
		return true
	})
	return found
}

// setsProxy says which files decide for a client of internal/bounded which proxy it uses, and why. All others use
// that of the environment (docs/operations.md).
var setsProxy = map[string]string{
	"internal/cluster/relay.go": "other gateways are in the same network",
}

// TestOneProxyRule: every client uses the proxy of the environment, except for those that have a reason.
func TestOneProxyRule(t *testing.T) {
	if p := bounded.NewTransport().Proxy; reflect.ValueOf(p).Pointer() != reflect.ValueOf(http.ProxyFromEnvironment).Pointer() {
		t.Error("internal/bounded does not use the proxy of the environment")
	}
	found := map[string]bool{}
	for _, path := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var set []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				set = n.Lhs
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Proxy" {
					found[path] = true
				}
			}
			for _, e := range set {
				if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == "Proxy" {
					found[path] = true
				}
			}
			return true
		})
	}
	for path := range found {
		if setsProxy[path] == "" {
			t.Errorf("%s chooses a proxy; leave it to internal/bounded, or say in setsProxy why not", path)
		}
	}
	for path := range setsProxy {
		if !found[path] {
			t.Errorf("%s is in setsProxy and chooses no proxy", path)
		}
	}
}

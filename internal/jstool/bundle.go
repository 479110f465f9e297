package jstool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"
	"github.com/evanw/esbuild/pkg/api"

	"voicegw/registry"
)

// maxBundle limits a bundle, in bytes.
const maxBundle = 2 << 20

// Problem is a problem of a handler. Line is 0 if it concerns the whole file.
type Problem struct {
	File    string
	Line    int
	Text    string
	Warning bool
}

// bundle is a handler with its imports, as a script.
type bundle struct {
	code string
	hash string
}

type bundler struct {
	root, real string // the directory of tools, and the same without symbolic links
	name       string // the tool's directory
	own        []string
	words      map[string]bool // identifiers in the tool's own files
}

// bundleOf bundles a tool's handler. File names in problems begin with root.
func bundleOf(root, name string) (bundle, []Problem) {
	abs, err := filepath.Abs(root)
	if err == nil {
		root = abs
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return bundle{}, []Problem{{File: filepath.Join(root, name, FileName), Text: fmt.Sprintf("The directory cannot be read: %v.", err)}}
	}
	b := &bundler{root: root, real: real, name: name, words: map[string]bool{}}
	result := api.Build(b.options("", nil))
	problems := b.problems(result)
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return bundle{}, problems
	}
	code := string(result.OutputFiles[0].Contents)
	if len(code) > maxBundle {
		return bundle{}, append(problems, b.problem("The handler with its imports has %d bytes, at most %d are allowed.", len(code), maxBundle))
	}
	if _, err := compile(code); err != nil {
		return bundle{}, append(problems, b.problem("The interpreter refuses the handler: %v.", err))
	}
	sum := sha256.Sum256([]byte(code))
	return bundle{code, hex.EncodeToString(sum[:8])}, append(problems, b.free()...)
}

func (b *bundler) problem(format string, args ...any) Problem {
	return Problem{File: filepath.Join(b.root, b.name, FileName), Text: fmt.Sprintf(format, args...)}
}

// options are those of a build. The interpreter knows ES2023 except what Supported lists. inject is a module whose exports
// replace undeclared identifiers; it may be empty.
func (b *bundler) options(inject string, words []string) api.BuildOptions {
	o := api.BuildOptions{
		Stdin: &api.StdinOptions{
			Contents: "import { execute } from './" + b.name + "/" + FileName + "'; export { execute }", ResolveDir: b.real, Sourcefile: "gateway",
		},
		AbsWorkingDir: b.real, Outdir: b.real, Bundle: true, Format: api.FormatIIFE, GlobalName: globalName,
		Platform: api.PlatformNeutral, MainFields: []string{"module", "main"}, Conditions: []string{"module"},
		Target: api.ES2023, Supported: map[string]bool{
			"async-generator": false, "for-await": false, "dynamic-import": false, "import-meta": false, "top-level-await": false,
			"regexp-set-notation": false, "regexp-match-indices": false, "regexp-unicode-property-escapes": false,
		},
		LogOverride: map[string]api.LogLevel{"unsupported-regexp": api.LogLevelSilent}, // prelude.js helps
		Banner:      map[string]string{"js": `"use strict";`},
		Define:      map[string]string{"process.env.NODE_ENV": `"production"`, "global": "globalThis"},
		TsconfigRaw: "{}", LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent,
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude,
		ResolveExtensions: []string{".js", ".mjs", ".cjs", ".json"},
		Plugins:           []api.Plugin{{Name: "voicegw", Setup: b.setup}},
	}
	if inject != "" {
		o.Inject, o.Sourcemap, o.MinifyWhitespace = []string{inject}, api.SourceMapNone, true
		o.Plugins[0].Setup = func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: "^" + regexp.QuoteMeta(inject) + "$"}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{Path: inject, Namespace: namespace, SideEffects: api.SideEffectsFalse}, nil
			})
			build.OnLoad(api.OnLoadOptions{Filter: "^" + regexp.QuoteMeta(inject) + "$", Namespace: namespace},
				func(api.OnLoadArgs) (api.OnLoadResult, error) {
					text := freeModule(words)
					return api.OnLoadResult{Contents: &text}, nil
				})
			b.setup(build)
		}
	}
	return o
}

const (
	namespace  = "voicegw"
	errorTypes = "_core/error-types.js"
)

// checked marks imports that setup resolves itself.
type checked struct{}

// setup limits what a handler imports.
func (b *bundler) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: "."}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if _, again := args.PluginData.(checked); again {
			return api.OnResolveResult{}, nil
		}
		if instead, is := nodeModules[strings.TrimPrefix(args.Path, "node:")]; is || strings.HasPrefix(args.Path, "node:") {
			return refused("The import %q is a module of Node, which tools do not have; %s.", args.Path,
				cmp.Or(instead, "use a package in plain JavaScript or a tool over HTTP")), nil
		}
		if filepath.IsAbs(args.Path) || strings.Contains(args.Path, "://") {
			return refused("The import %q is an absolute path or URL. Import a file by a relative path, or a package from node_modules.", args.Path), nil
		}
		at := filepath.Join(args.ResolveDir, args.Path)
		if at == filepath.Join(b.real, errorTypes) {
			if _, err := os.Stat(at); err != nil {
				return api.OnResolveResult{Path: errorTypes, Namespace: namespace}, nil
			}
		}
		found := build.Resolve(args.Path, api.ResolveOptions{
			ResolveDir: args.ResolveDir, Importer: args.Importer, Kind: args.Kind, Namespace: args.Namespace, PluginData: checked{}})
		if len(found.Errors) > 0 {
			return refused("The import %q is not found. Tools may import files below %s, and packages in its node_modules.", args.Path, b.root), nil
		}
		rel, err := filepath.Rel(b.real, found.Path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return refused("The import %q leads out of %s, and nothing else is read; copy the file there.", args.Path, b.root), nil
		}
		return api.OnResolveResult{Path: found.Path, Suffix: found.Suffix}, nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: "^" + regexp.QuoteMeta(errorTypes) + "$", Namespace: namespace},
		func(api.OnLoadArgs) (api.OnLoadResult, error) {
			text := errorTypesModule()
			return api.OnLoadResult{Contents: &text}, nil
		})
	build.OnLoad(api.OnLoadOptions{Filter: `\.([cm]?js)$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		data, err := os.ReadFile(args.Path)
		if err != nil {
			return api.OnLoadResult{}, fmt.Errorf("it cannot be read: %w", err)
		}
		text := string(data)
		if rel, err := filepath.Rel(b.real, args.Path); err == nil && !strings.Contains(rel, "node_modules") {
			b.remember(rel, text)
		}
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS, ResolveDir: filepath.Dir(args.Path)}, nil
	})
}

func refused(format string, args ...any) api.OnResolveResult {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, args...)}}}
}

// nodeModules say what to use instead of modules of Node.
var nodeModules = func() map[string]string {
	all := map[string]string{
		"crypto": "use crypto.randomUUID and crypto.getRandomValues", "url": "URL and URLSearchParams are globals",
		"http": "use fetch", "https": "use fetch", "timers": "setTimeout is a global", "timers/promises": "setTimeout is a global",
		"fs": "tools have no files; keep data in a service", "fs/promises": "tools have no files; keep data in a service",
		"process": `declare "settings" in schema.json and use context.settings`, "buffer": "use Uint8Array, TextEncoder, atob and btoa",
	}
	for name := range strings.FieldsSeq("assert async_hooks child_process cluster dgram diagnostics_channel dns events http2 inspector module net os " +
		"path perf_hooks punycode querystring readline stream string_decoder tls tty util v8 vm worker_threads zlib") {
		all[name] = "use a package in plain JavaScript or a tool over HTTP"
	}
	return all
}()

// errorTypesModule is the file that the authoring guide's tools import.
var errorTypesModule = sync.OnceValue(func() string {
	var s strings.Builder
	list := func(name string, words []string) {
		fmt.Fprintf(&s, "export const %s = Object.freeze({", name)
		for _, w := range words {
			fmt.Fprintf(&s, "%s: '%s',", w, w)
		}
		s.WriteString("});\n")
	}
	var types []string
	for _, t := range registry.ErrorTypes() {
		types = append(types, string(t))
	}
	list("ErrorType", types)
	list("IntentType", []string{string(registry.IntentEndVoiceSession), string(registry.IntentSuppressAudio),
		string(registry.IntentSuppressTranscript), string(registry.IntentSetPendingMessage), string(registry.IntentSwitchAgent)})
	s.WriteString(`export class ToolError extends Error {
  constructor(type, message, options = {}) {
    super(message);
    this.name = 'ToolError';
    this.type = type;
    this.retryable = options.retryable ?? (type === 'TRANSIENT' || type === 'RATE_LIMIT');
    this.partialSideEffects = options.partialSideEffects ?? false;
    this.details = options.details;
    this.suggestion = options.suggestion;
  }
}
`)
	return s.String()
})

// problems converts esbuild's messages.
func (b *bundler) problems(r api.BuildResult) []Problem {
	var all []Problem
	for i, m := range slices.Concat(r.Errors, r.Warnings) {
		p := b.problem("%s", sentence(m.Text))
		p.Warning = i >= len(r.Errors)
		if p.Warning && m.Location != nil && strings.Contains(m.Location.File, "node_modules") {
			continue // not the author's code
		}
		if l := m.Location; l != nil && l.File != "gateway" {
			p.File, p.Line = filepath.Join(b.root, filepath.FromSlash(l.File)), l.Line
		} else if strings.HasPrefix(m.Text, "No matching export") || strings.HasPrefix(m.Text, `Import "execute" will always be undefined`) {
			p.Warning, p.Text = false, "There is no exported function execute; write: export async function execute(context) { … }."
		}
		all = append(all, p)
	}
	return all
}

func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

var identifiers = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)

// remember keeps the identifiers of one of the tool's own files, and its name.
func (b *bundler) remember(rel, text string) {
	found := identifiers.FindAllString(text, -1)
	boundary.Lock()
	defer boundary.Unlock()
	for _, w := range found {
		b.words[w] = true
	}
	if !slices.Contains(b.own, rel) {
		b.own = append(b.own, rel)
	}
}

// boundary guards the words and files of bundlers: esbuild loads files concurrently.
var boundary sync.Mutex

// free reports identifiers that are not declared. esbuild knows the scopes: it replaces an undeclared identifier by the
// export of an injected module, so a second build with a module that exports all words shows which ones are free.
func (b *bundler) free() []Problem {
	known := knownGlobals()
	var words []string
	for _, w := range slices.Sorted(maps.Keys(b.words)) {
		if !known[w] && !keywords[w] {
			words = append(words, w)
		}
	}
	result := api.Build(b.options("voicegw:free", words))
	if len(result.Errors) > 0 {
		return b.problems(result)
	}
	var all []Problem
	for _, m := range freeMark.FindAllStringSubmatch(string(result.OutputFiles[0].Contents), -1) {
		all = append(all, b.undeclared(m[1])...)
	}
	return all
}

// undeclared reports a free identifier, unless a file asks for its type, and so knows that it may be missing.
func (b *bundler) undeclared(word string) []Problem {
	asks := regexp.MustCompile(`typeof\s+\(?` + regexp.QuoteMeta(word))
	uses := regexp.MustCompile(`(^|[^\pL\pN_$.])` + regexp.QuoteMeta(word) + `($|[^\pL\pN_$])`)
	p := b.problem("%s is not declared%s.", word, instead[word])
	slices.Sort(b.own)
	for _, rel := range b.own {
		data, err := os.ReadFile(filepath.Join(b.real, rel))
		if err != nil {
			continue // it has been read before
		}
		if asks.Match(data) {
			return nil
		}
		if at := uses.FindIndex(data); at != nil && p.Line == 0 {
			p.File, p.Line = filepath.Join(b.root, rel), 1+strings.Count(string(data[:at[1]-1]), "\n")
		}
	}
	return []Problem{p}
}

// instead ends the message about an identifier that Node has.
var instead = map[string]string{
	"process":        `, as tools are not run by Node; declare "settings" in schema.json and use context.settings`,
	"Buffer":         ", as tools are not run by Node; use Uint8Array, TextEncoder, atob and btoa",
	"require":        ", as tools are not run by Node; use import",
	"module":         ", as tools are not run by Node; use export",
	"__dirname":      ", as tools have no files",
	"__filename":     ", as tools have no files",
	"Intl":           ", as the interpreter does not have it; use a package in plain JavaScript",
	"WebSocket":      ", as tools have only fetch",
	"XMLHttpRequest": ", as tools have only fetch",
	"FormData":       ", as tools do not have it; use URLSearchParams or JSON",
	"setImmediate":   ", as tools do not have it; use setTimeout",
	"WeakRef":        ", as the interpreter does not have it",
	"ReadableStream": ", as tools have no streams; use text() or json() of the answer",
	"ToolError":      "; import it from '../_core/error-types.js'",
	"ErrorType":      "; import it from '../_core/error-types.js'",
	"IntentType":     "; import it from '../_core/error-types.js'",
}

var freeMark = regexp.MustCompile(`__voicegw_free\("([^"]+)"\)`)

// freeModule exports each word as a call that shows in the output if the word is used.
func freeModule(words []string) string {
	var s, list strings.Builder
	for i, w := range words {
		fmt.Fprintf(&s, "let v%d = /* @__PURE__ */ __voicegw_free(%q);\n", i, w)
		fmt.Fprintf(&list, "v%d as %s,", i, w)
	}
	return s.String() + "export {" + list.String() + "};"
}

// keywords are words that are no identifiers, or that every function has.
var keywords = func() map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq("arguments async await break case catch class const continue debugger default delete do else enum export " +
		"extends false finally for from function get if implements import in instanceof interface let new null of package private protected " +
		"public return set static super switch this throw true try typeof var void while with yield eval undefined NaN Infinity exports") {
		all[w] = true
	}
	return all
}()

// knownGlobals are the globals of a tool.
var knownGlobals = sync.OnceValue(func() map[string]bool {
	c := &vmCall{vm: goja.New()}
	all := map[string]bool{}
	if _, err := c.globals(); err != nil {
		panic("jstool: prelude.js: " + err.Error()) // every test runs it
	}
	names, _ := c.vm.RunString("Object.getOwnPropertyNames(globalThis)")
	for _, n := range names.Export().([]any) {
		all[n.(string)] = true
	}
	return all
})

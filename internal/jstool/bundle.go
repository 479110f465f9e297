package jstool

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // for tool-error.js
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

type bundle struct {
	code string
	hash string
}

type bundler struct {
	root, real string // the directory of tools, and the same without symbolic links
	name       string // the tool's directory

	mu  sync.Mutex        // guards own: esbuild loads files concurrently
	own map[string]string // the texts of the files that are not of packages, by path
}

// bundleOf bundles a tool's handler. File names in problems begin with root.
func bundleOf(root, name string) (bundle, []Problem) {
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return bundle{}, []Problem{{File: filepath.Join(root, name, FileName), Text: fmt.Sprintf("The directory cannot be read: %v.", err)}}
	}
	b := &bundler{root: root, real: real, name: name, own: map[string]string{}}
	code, problems := b.build(b.options(nil))
	if code != "" && check(code) != nil { // the interpreter does not know all that classes can be
		lowered := b.options(nil)
		maps.Copy(lowered.Supported, map[string]bool{"class-field": false, "class-static-field": false, "class-private-field": false,
			"class-private-method": false, "class-private-accessor": false, "class-private-static-field": false})
		lowered.KeepNames = true
		code, problems = b.build(lowered)
	}
	if code == "" {
		return bundle{}, problems
	}
	if len(code) > maxBundle {
		return bundle{}, append(problems, b.problem("The handler with its imports has %d bytes, at most %d are allowed.",
			len(code), maxBundle))
	}
	if err := check(code); err != nil {
		return bundle{}, append(problems, b.problem("The interpreter refuses the handler: %v.", err))
	}
	sum := sha256.Sum256([]byte(code))
	return bundle{code, hex.EncodeToString(sum[:8])}, slices.Concat(problems, b.free(), b.unlike(code))
}

func (b *bundler) build(o api.BuildOptions) (string, []Problem) {
	result := api.Build(o)
	problems := b.problems(result)
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return "", problems
	}
	return string(result.OutputFiles[0].Contents), problems
}

var (
	bigInts  = regexp.MustCompile(`\b(0[xXoObB][0-9a-fA-F_]+|[\d_]+)n\b`)
	patterns = regexp.MustCompile(`\bnew RegExp\(("(?:[^"\\\n]|\\.)*"), "([a-z]*)"\)`)
)

// check compiles a bundle. Constants are evaluated then, so large integers become small.
func check(code string) error {
	_, err := compile(bigInts.ReplaceAllString(code, "1n"))
	return err
}

// unlikely are uses of members that the interpreter lacks, or that behave otherwise than in Node.
var unlikely = []struct {
	use  *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\.toLocale(Date|Time)?String\b`), "formats no languages here, as there is no Intl"},
	{regexp.MustCompile(`\.toLocale(Upper|Lower)Case\([^)]|` +
		`\.localeCompare\([^()]*(\([^()]*\)[^()]*)*,`), "ignores languages and options here"},
	{regexp.MustCompile(`\bTextDecoder\(\s*["'\x60]([^uU"'\x60]|[uU][^tT]|[uU][tT][fF]-?1)`), "knows only utf-8 here"},
	{regexp.MustCompile(`\bRegExp(\.(\$[\d&+_]|lastMatch|lastParen|leftContext|rightContext|input)\b|\[)`), "is always undefined here"},
	{regexp.MustCompile(`\bcrypto\.subtle\b`), "does not exist here; use a package in plain JavaScript"},
	{regexp.MustCompile(`\.(getReader|pipeTo|pipeThrough|formData|blob)\(`), "does not exist here; use text(), json() or arrayBuffer()"},
	{regexp.MustCompile(`\.(withResolvers|fromAsync|isWellFormed|toWellFormed|transferToFixedLength)\b|` +
		`\bmaxByteLength\b|\b((Object|Map)\.groupBy|` +
		`Symbol\.(asyncDispose|dispose)|URL\.parse|Iterator\.from|RegExp\.escape)\b`), "does not exist here"},
}

// unlike warns of uses of them that are in the bundle, which has no comments, and of patterns that are not compiled with it.
func (b *bundler) unlike(code string) []Problem {
	var all []Problem
	c := &vmCall{vm: goja.New()}
	_, _ = c.globals() // knownGlobals reports errors
	for _, m := range patterns.FindAllStringSubmatch(code, -1) {
		if _, err := c.vm.RunString(m[0]); err != nil {
			p := b.problem("The interpreter does not know a part of the pattern %s with flags %q.", m[1], m[2])
			p.Warning = true
			all = append(all, p)
		}
	}
	for _, u := range unlikely {
		for _, rel := range slices.Sorted(maps.Keys(b.own)) {
			at := u.use.FindStringIndex(b.own[rel])
			if at == nil || !u.use.MatchString(code) {
				continue
			}
			p := b.problem("%s %s.", strings.Trim(b.own[rel][at[0]:at[1]], ".([, "), u.text)
			p.File, p.Line, p.Warning = filepath.Join(b.root, rel), 1+strings.Count(b.own[rel][:at[0]], "\n"), true
			all = append(all, p)
		}
	}
	return all
}

func (b *bundler) problem(format string, args ...any) Problem {
	return Problem{File: filepath.Join(b.root, b.name, FileName), Text: fmt.Sprintf(format, args...)}
}

// options are those of a build. The interpreter knows ES2023 except what Supported lists. With words, the build is the one
// that finds free identifiers.
func (b *bundler) options(words []string) api.BuildOptions {
	o := api.BuildOptions{
		Stdin: &api.StdinOptions{
			Contents:   "import { execute } from './" + b.name + "/" + FileName + "'; export { execute }",
			ResolveDir: b.real, Sourcefile: "gateway",
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
		Plugins:           []api.Plugin{{Name: namespace, Setup: func(build api.PluginBuild) { b.setup(build, words) }}},
	}
	if words != nil {
		o.Inject, o.Sourcemap, o.MinifyWhitespace = []string{freeWords}, api.SourceMapNone, true
	}
	return o
}

const (
	namespace  = "voicegw" // of the following modules, which are not files
	errorTypes = "_core/error-types.js"
	freeWords  = "free-words"
)

type checked struct{}

func (b *bundler) setup(build api.PluginBuild, words []string) {
	build.OnResolve(api.OnResolveOptions{Filter: "."}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if _, again := args.PluginData.(checked); again {
			return api.OnResolveResult{}, nil
		}
		if args.Path == freeWords && words != nil {
			return api.OnResolveResult{Path: freeWords, Namespace: namespace, SideEffects: api.SideEffectsFalse}, nil
		}
		name, is := strings.CutPrefix(args.Path, "node:")
		if is || slices.Contains(nodeModules, name) {
			return refused("The import %q is a module of Node, which tools do not have; %s.", args.Path,
				cmp.Or(insteadOf[name], "use a package in plain JavaScript or a tool over HTTP")), nil
		}
		if filepath.IsAbs(args.Path) || strings.Contains(args.Path, "://") {
			return refused("The import %q is an absolute path or URL. Import a file by a relative path, or a package from node_modules.",
				args.Path), nil
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
			return refused("The import %q is not found. Tools may import files below %s, and packages in its node_modules.",
				args.Path, b.root), nil
		}
		rel, err := filepath.Rel(b.real, found.Path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return refused("The import %q leads out of %s, and nothing else is read; copy the file there.", args.Path, b.root), nil
		}
		return api.OnResolveResult{}, nil // esbuild resolves it again, and keeps what package.json says about it
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".", Namespace: namespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		text := errorTypesModule()
		if args.Path == freeWords {
			text = freeModule(words)
		}
		return api.OnLoadResult{Contents: &text}, nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: `\.[cm]?js$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		data, err := os.ReadFile(args.Path)
		if err != nil {
			return api.OnLoadResult{}, fmt.Errorf("it cannot be read: %w", err)
		}
		text := string(data)
		if rel, err := filepath.Rel(b.real, args.Path); err == nil && !strings.Contains(rel, "node_modules") {
			b.mu.Lock()
			b.own[rel] = text
			b.mu.Unlock()
		}
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS, ResolveDir: filepath.Dir(args.Path)}, nil
	})
}

func refused(format string, args ...any) api.OnResolveResult {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, args...)}}}
}

// nodeModules are modules of Node. insteadOf says what to use instead of some of them.
var (
	nodeModules = strings.Fields("assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel " +
		"dns domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream " +
		"string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib assert/strict dns/promises fs/promises " +
		"path/posix path/win32 readline/promises stream/consumers stream/promises stream/web timers/promises util/types")
	insteadOf = map[string]string{
		"crypto": "crypto.randomUUID is a global", "timers": "setTimeout is a global", "timers/promises": "setTimeout is a global",
		"url":  "URL and URLSearchParams are globals",
		"http": "use fetch", "https": "use fetch", "fs": noFiles, "fs/promises": noFiles, "process": useSettings, "buffer": useArrays,
	}
)

const (
	noFiles     = "keep data in a service, as tools have no files"
	useSettings = `declare "settings" in schema.json and use context.settings`
	useArrays   = "use Uint8Array, TextEncoder, atob and btoa"
	useImport   = "import it from '../_core/error-types.js'"
)

var instead = map[string]string{
	"process": useSettings, "Buffer": useArrays, "__dirname": noFiles, "__filename": noFiles, "XMLHttpRequest": "use fetch",
	"FormData": "use URLSearchParams or JSON", "setImmediate": "use setTimeout", "ReadableStream": "use text() or json() of the answer",
	"Intl": "use a package in plain JavaScript", "ToolError": useImport, "ErrorType": useImport, "IntentType": useImport,
}

// errorTypesModule is the file that the authoring guide's tools import.
var errorTypesModule = sync.OnceValue(func() string {
	return frozen("ErrorType", registry.ErrorTypes()...) + frozen("IntentType", registry.IntentEndVoiceSession,
		registry.IntentSuppressAudio, registry.IntentSuppressTranscript, registry.IntentSetPendingMessage, registry.IntentSwitchAgent,
		registry.IntentTransferCall, registry.IntentSayExactly) + toolErrorText
})

func frozen[T ~string](name string, words ...T) string {
	text := "export const " + name + " = Object.freeze({"
	for _, w := range words {
		text += fmt.Sprintf("%s: '%s',", w, w)
	}
	return text + "});\n"
}

//go:embed tool-error.js
var toolErrorText string

func (b *bundler) problems(r api.BuildResult) []Problem {
	var all []Problem
	for i, m := range slices.Concat(r.Errors, r.Warnings) {
		p := b.problem("%s.", strings.TrimSuffix(m.Text, "."))
		p.Warning = i >= len(r.Errors)
		if p.Warning && m.Location != nil && strings.Contains(m.Location.File, "node_modules") {
			continue // not the author's code
		}
		if l := m.Location; l != nil && l.File != "gateway" {
			p.File, p.Line = filepath.Join(b.root, filepath.FromSlash(l.File)), l.Line
		} else if strings.HasPrefix(m.Text, "No matching export") ||
			strings.HasPrefix(m.Text, `Import "execute" will always be undefined`) {
			p.Warning, p.Text = false, "There is no exported function execute; write: export async function execute(context) { … }."
		}
		all = append(all, p)
	}
	return all
}

var (
	identifiers = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)
	freeMark    = regexp.MustCompile(`__voicegw_free\("([^"]+)"\)`)
)

// free reports identifiers that are not declared. esbuild knows the scopes: it replaces an undeclared identifier by the
// export of an injected module, so a second build with a module that exports all words shows which ones are free.
func (b *bundler) free() []Problem {
	words := map[string]bool{}
	for _, text := range b.own {
		for _, w := range identifiers.FindAllString(text, -1) {
			words[w] = true
		}
	}
	maps.DeleteFunc(words, func(w string, _ bool) bool { return knownGlobals()[w] })
	result := api.Build(b.options(slices.Sorted(maps.Keys(words))))
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
	p := b.problem("%s is not declared.", word)
	if use, has := instead[word]; has {
		p.Text = fmt.Sprintf("Tools have no %s unless they declare it; %s.", word, use)
	}
	for _, rel := range slices.Sorted(maps.Keys(b.own)) {
		text := b.own[rel]
		if asks.MatchString(text) {
			return nil
		}
		if at := uses.FindStringIndex(text); at != nil && p.Line == 0 {
			p.File, p.Line = filepath.Join(b.root, rel), 1+strings.Count(text[:at[1]-1], "\n")
		}
	}
	return []Problem{p}
}

// freeModule exports each word as a call that shows in the output if the word is used.
func freeModule(words []string) string {
	var s, list strings.Builder
	for i, w := range words {
		fmt.Fprintf(&s, "let v%d = /* @__PURE__ */ __voicegw_free(%q);\n", i, w)
		fmt.Fprintf(&list, "v%d as %s,", i, w)
	}
	return s.String() + "export {" + list.String() + "};"
}

// knownGlobals are the globals of a tool, and the names that esbuild itself gives a meaning.
var knownGlobals = sync.OnceValue(func() map[string]bool {
	c := &vmCall{vm: goja.New()}
	all := map[string]bool{"arguments": true, "exports": true, "module": true, "require": true}
	if _, err := c.globals(); err != nil {
		panic("jstool: prelude.js: " + err.Error()) // every test runs it
	}
	names, _ := c.vm.RunString("Object.getOwnPropertyNames(globalThis)")
	for _, n := range names.Export().([]any) {
		all[n.(string)] = true
	}
	return all
})

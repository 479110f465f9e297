// Package bundle builds the page that the gateway serves: TypeScript, style
// and HTML in web/page become the files of web/dist.
//
// It is the only importer of esbuild besides the test of package web, so that
// the bundler never gets into the gateway's binary. The output depends on the
// sources and on esbuild's pinned version alone: no time, no path, no network.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Assets is the folder of the content-hashed files, below the page.
const Assets = "assets"

// hashLength is how many hex digits of a file's SHA-256 stand in its name.
const hashLength = 10

// ErrBuild is wrapped by every error about the sources.
var ErrBuild = errors.New("bundle: the page does not build")

// Page builds the page of the project's web folder. The keys are slash
// separated paths below web/dist: index.html and the files it needs, of which
// every name in Assets holds the hash of its content. It writes nothing and
// may be called concurrently.
func Page(webDir string) (map[string][]byte, error) {
	webDir, err := filepath.Abs(webDir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBuild, err)
	}
	version, err := pageVersion(filepath.Join(webDir, "package.json"))
	if err != nil {
		return nil, err
	}
	b := &builder{dir: filepath.Join(webDir, "page"), files: map[string][]byte{}}
	defines := map[string]string{"PAGE_VERSION": quote(version)}
	for _, worklet := range []string{"capture", "playback"} {
		code, err := b.compile("worklets/"+worklet+".ts", nil)
		if err != nil {
			return nil, err
		}
		defines[strings.ToUpper(worklet)+"_WORKLET"] = quote(b.add(worklet+".js", code))
	}
	code, err := b.compile("main.ts", defines)
	if err != nil {
		return nil, err
	}
	style, err := b.compile("style.css", nil)
	if err != nil {
		return nil, err
	}
	icon, err := b.read("icon.svg")
	if err != nil {
		return nil, err
	}
	err = b.index(map[string]string{
		`src="main.ts"`:    `src="` + b.add("main.js", code) + `"`,
		`href="style.css"`: `href="` + b.add("style.css", style) + `"`,
		`href="icon.svg"`:  `href="` + b.add("icon.svg", icon) + `"`,
	})
	if err != nil {
		return nil, err
	}
	return b.files, nil
}

// Tests builds the unit tests of the page, web/test/*.test.ts, as modules that
// node can run. The keys are file names.
func Tests(webDir string) (map[string][]byte, error) {
	webDir, err := filepath.Abs(webDir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBuild, err)
	}
	sources, err := filepath.Glob(filepath.Join(webDir, "test", "*.test.ts"))
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: no test in %s", ErrBuild, filepath.Join(webDir, "test"))
	}
	files := map[string][]byte{}
	for _, source := range sources {
		name := filepath.Base(source)
		code, err := run(api.BuildOptions{
			AbsWorkingDir: filepath.Dir(source),
			EntryPoints:   []string{name},
			Platform:      api.PlatformNode,
			Format:        api.FormatESModule,
		})
		if err != nil {
			return nil, err
		}
		files[strings.TrimSuffix(name, ".ts")+".mjs"] = code
	}
	return files, nil
}

type builder struct {
	dir   string
	files map[string][]byte
}

func (b *builder) compile(entry string, defines map[string]string) ([]byte, error) {
	return run(api.BuildOptions{
		AbsWorkingDir:     b.dir,
		EntryPoints:       []string{entry},
		Format:            api.FormatESModule,
		Platform:          api.PlatformBrowser,
		Define:            defines,
		MinifyWhitespace:  true,
		MinifySyntax:      true,
		MinifyIdentifiers: true,
	})
}

// add takes a file under a name with its hash and returns its path as the
// page refers to it.
func (b *builder) add(name string, content []byte) string {
	sum := sha256.Sum256(content)
	ext := filepath.Ext(name)
	path := Assets + "/" + strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:])[:hashLength] + ext
	b.files[path] = content
	return path
}

// index takes over index.html with every reference to a source replaced.
func (b *builder) index(references map[string]string) error {
	content, err := b.read("index.html")
	if err != nil {
		return err
	}
	page := string(content)
	for source, built := range references {
		if n := strings.Count(page, source); n != 1 {
			return fmt.Errorf("%w: index.html holds %s %d times, want once", ErrBuild, source, n)
		}
		page = strings.Replace(page, source, built, 1)
	}
	b.files["index.html"] = []byte(page)
	return nil
}

func (b *builder) read(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBuild, err)
	}
	return content, nil
}

// run bundles one entry point into one file.
func run(options api.BuildOptions) ([]byte, error) {
	options.Bundle = true
	options.Write = false
	options.Outdir = options.AbsWorkingDir
	options.Charset = api.CharsetUTF8
	options.LegalComments = api.LegalCommentsNone
	options.TsconfigRaw = "{}"
	if !strings.HasSuffix(options.EntryPoints[0], ".css") {
		options.Target = api.ES2022
	}
	result := api.Build(options)
	problems := api.FormatMessages(append(result.Errors, result.Warnings...), api.FormatMessagesOptions{})
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w:\n%s", ErrBuild, strings.Join(problems, ""))
	}
	if n := len(result.OutputFiles); n != 1 {
		return nil, fmt.Errorf("%w: %s became %d files, want one", ErrBuild, options.EntryPoints[0], n)
	}
	return result.OutputFiles[0].Contents, nil
}

func pageVersion(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBuild, err)
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrBuild, path, err)
	}
	if manifest.Version == "" {
		return "", fmt.Errorf("%w: %s has no version", ErrBuild, path)
	}
	return manifest.Version, nil
}

func quote(s string) string {
	return `"` + s + `"`
}

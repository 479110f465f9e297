// Package web serves the console, the gateway's own page: talk, type, approve, and watch
// all that happens.
//
// Beside the Go code lie the sources of what runs in browsers: client (the library
// @voicegw/client), react (its hooks), console, and browser (their tests in Chromium).
// The built console is in dist, committed and embedded in the binary. `make web` builds
// it; a test fails when it is stale.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed dist
var dist embed.FS

// contentSecurityPolicy lets the page load its own files and talk to its own
// gateway, and nothing else: no inline script or style, no other origin, no
// frame. 'self' in connect-src covers ws and wss of the same host (CSP Level
// 3, section 6.7.2.8); the audio worklets and the worker that draws come under
// script-src.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// permissionsPolicy keeps the microphone for this origin.
const permissionsPolicy = "microphone=(self), camera=(), geolocation=(), display-capture=()"

const notFound = "There is nothing at this address. The console is at /.\n"

// file is one file of the page, ready to be served.
type file struct {
	content     []byte
	contentType string
	cache       string
	etag        string
}

// Handler serves the console at /: index.html, and the files it refers to, whose
// names hold the hash of their content. Everything else is a 404 in plain
// words, methods other than GET and HEAD a 405. Put it behind more special
// routes of the same mux, at the pattern "/". It is safe for concurrent use.
func Handler() http.Handler {
	files, err := load(dist)
	if err != nil {
		// The embedded files are part of the binary and a test loads them:
		// this is a broken build, not something that happens at run time.
		panic(err)
	}
	return handler(files)
}

type handler map[string]file

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Permissions-Policy", permissionsPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		plain(w, r, http.StatusMethodNotAllowed, "This address can only be read (GET or HEAD).\n")
		return
	}
	f, ok := h[r.URL.Path]
	if !ok {
		plain(w, r, http.StatusNotFound, notFound)
		return
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", f.cache)
	header.Set("ETag", f.etag)
	if matches(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, r, http.StatusOK, f.content)
}

func plain(w http.ResponseWriter, r *http.Request, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	send(w, r, status, []byte(text))
}

func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	// A failing write means the reader has gone; there is nobody to tell.
	_, _ = w.Write(body)
}

// matches compares an If-None-Match list, weakly (RFC 9110, section 13.1.2).
func matches(list, etag string) bool {
	for candidate := range strings.SplitSeq(list, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}

// load reads the built page into the paths it is served at.
func load(built fs.FS) (handler, error) {
	files := handler{}
	err := fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		contentType, ok := contentTypes[path.Ext(name)]
		if !ok {
			return fmt.Errorf("web: %s: no content type is known for this kind of file", name)
		}
		sum := sha256.Sum256(content)
		f := file{
			content:     content,
			contentType: contentType,
			cache:       "no-cache",
			etag:        `"` + hex.EncodeToString(sum[:16]) + `"`,
		}
		served := strings.TrimPrefix(name, "dist")
		if strings.HasPrefix(served, "/assets/") {
			// Another content has another name, so a copy is good for ever.
			f.cache = "public, max-age=31536000, immutable"
		}
		files[served] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	index, ok := files["/index.html"]
	if !ok {
		return nil, fmt.Errorf("web: dist holds no index.html; run `make web` and build again")
	}
	delete(files, "/index.html")
	files["/"] = index
	return files, nil
}

// contentTypes are fixed: what the system's own table says differs between
// machines, and a browser refuses a script that comes as text/plain.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

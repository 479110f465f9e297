// Package web serves the console. The folder also has browser code: client (@voicegw/client), react (hooks), console,
// and browser (tests in Chromium). `make web` builds the committed, embedded dist.
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

// contentSecurityPolicy allows only the page's own files and gateway. 'self' covers ws and wss of the same host (CSP
// Level 3, 6.7.2.8), and in script-src the audio worklets and the drawing worker.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const permissionsPolicy = "microphone=(self), camera=(), geolocation=(), display-capture=()"

const notFound = "There is nothing at this address. The console is at /.\n"

type file struct {
	content     []byte
	contentType string
	cache       string
	etag        string
}

// Handler serves index.html at / and its assets; other paths get a 404, other methods than GET and HEAD a 405.
func Handler() http.Handler {
	files, err := load(dist)
	if err != nil {
		panic(err) // a broken build: the files are embedded, and a test loads them
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
		plain(w, r, http.StatusMethodNotAllowed, "Use GET or HEAD at this address.\n")
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
	_, _ = w.Write(body) // fails only if the client has gone
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
			return fmt.Errorf("web: %s: unknown file type; add it to contentTypes", name)
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
			// Another content has another name, so a copy never expires.
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
		return nil, fmt.Errorf("web: dist has no index.html; run `make web` and build again")
	}
	delete(files, "/index.html")
	files["/"] = index
	return files, nil
}

// contentTypes are fixed because the tables of systems differ, and a browser refuses a script of type text/plain.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

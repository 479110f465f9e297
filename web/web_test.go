package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// roots are the inputs of stamp.mjs: the sources of the console and the build.
var roots = []string{"client/src", "client/build.mjs", "client/package.json", "console/src", "console/public", "console/index.html",
	"console/package.json", "console/vite.config.ts", "package-lock.json", "dist"}

func TestBuildIsCurrent(t *testing.T) {
	const fix = "run `make web` and commit web/dist and web/dist.sum"
	stamped := map[string]string{}
	sums, err := os.ReadFile("dist.sum")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		stamped[name] = sum
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(name)
			if sum := sha256.Sum256(content); stamped[name] != hex.EncodeToString(sum[:]) {
				t.Errorf("web/dist is stale: %s has changed since it was built; %s", name, fix)
			}
			delete(stamped, name)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for name := range stamped {
		t.Errorf("web/dist is stale: %s is gone; %s", name, fix)
	}
}

func get(t *testing.T, method, target string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func loaded(t *testing.T) handler {
	t.Helper()
	files, err := load(dist)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// references matches the files that the page loads: src and href attributes, and names in scripts.
var references = regexp.MustCompile("[\"`](?:\\./)?(?:assets/)?([A-Za-z0-9_.-]+-[A-Za-z0-9_-]{8}\\.[a-z]+)[\"`]")

func TestReferencedFilesAreServed(t *testing.T) {
	index := get(t, "GET", "/", nil)
	if index.StatusCode != 200 || index.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("GET / = %d %s", index.StatusCode, index.Header.Get("Content-Type"))
	}
	if got := index.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the page's Cache-Control = %q, want no-cache: it names the newest files", got)
	}
	types := map[string]string{
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	}
	todo := references.FindAllStringSubmatch(body(t, index), -1)
	seen := map[string]bool{}
	for len(todo) > 0 {
		name := "assets/" + todo[0][1]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		r := get(t, "GET", "/"+name, nil)
		content := body(t, r)
		todo = append(todo, references.FindAllStringSubmatch(content, -1)...)
		if r.StatusCode != 200 {
			t.Errorf("GET /%s = %d", name, r.StatusCode)
			continue
		}
		if want := types[path.Ext(name)]; r.Header.Get("Content-Type") != want {
			t.Errorf("/%s is %q, want %q", name, r.Header.Get("Content-Type"), want)
		}
		if got := r.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("/%s: Cache-Control = %q, want immutable", name, got)
		}
	}
	var built []string
	for name := range loaded(t) {
		if strings.HasPrefix(name, "/assets/") {
			built = append(built, name[1:])
		}
	}
	for _, name := range built {
		if !seen[name] {
			t.Errorf("/%s is served without a reference to it", name)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/", 200},
		{"HEAD", "/", 200},
		{"GET", "/index.html", 404},
		{"GET", "/nothing", 404},
		{"GET", "/assets/", 404},
		{"GET", "/../web.go", 404},
		{"POST", "/", 405},
		{"DELETE", "/nothing", 405},
	} {
		r := get(t, c.method, c.target, nil)
		if r.StatusCode != c.status {
			t.Errorf("%s %s = %d, want %d", c.method, c.target, r.StatusCode, c.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": contentSecurityPolicy,
			"Permissions-Policy":      permissionsPolicy,
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s %s: %s = %q, want %q", c.method, c.target, name, got, want)
			}
		}
		text := body(t, r)
		if c.method == "HEAD" && text != "" {
			t.Errorf("HEAD %s has a body", c.target)
		}
		if c.status == 404 && text != notFound {
			t.Errorf("404 says %q", text)
		}
		if c.status == 405 && r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("405 allows %q", r.Header.Get("Allow"))
		}
	}
}

func TestContentSecurityPolicy(t *testing.T) {
	for _, forbidden := range []string{"unsafe", "*", "http:", "https:", "data:", "blob:"} {
		if strings.Contains(contentSecurityPolicy, forbidden) {
			t.Errorf("the policy contains %q", forbidden)
		}
	}
	inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\son[a-z]+=|\sstyle=|https?://`)
	if found := inline.FindString(body(t, get(t, "GET", "/", nil))); found != "" {
		t.Errorf("index.html contains %q, which the policy forbids", found)
	}
}

func TestConditionalRequests(t *testing.T) {
	etag := get(t, "GET", "/", nil).Header.Get("ETag")
	for condition, want := range map[string]int{
		etag:                    304,
		"W/" + etag:             304,
		`"other", ` + etag:      304,
		"*":                     304,
		`"other"`:               200,
		strings.Trim(etag, `"`): 200,
	} {
		r := get(t, "GET", "/", http.Header{"If-None-Match": {condition}})
		if r.StatusCode != want {
			t.Errorf("If-None-Match %s = %d, want %d", condition, r.StatusCode, want)
		}
		if r.StatusCode == 304 && body(t, r) != "" {
			t.Error("a 304 has a body")
		}
	}
}

func TestLoadRefusesBrokenBuild(t *testing.T) {
	for name, built := range map[string]fstest.MapFS{
		"no index":     {"dist/assets/main-1.js": {}},
		"unknown kind": {"dist/index.html": {}, "dist/assets/tune.ogg": {}},
		"nothing":      {},
	} {
		if _, err := load(built); err == nil {
			t.Errorf("%s: load succeeded", name)
		}
	}
}

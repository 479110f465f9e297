package gateway

import (
	"bytes"
	"errors"
	stdimage "image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/backends/image"
)

// TestImages: a client with its URL gets an image with its own type and without active content, until it expires.
func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, err := image.OpenFiles(image.FilesOptions{Dir: t.TempDir(), Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		var b bytes.Buffer
		if err := png.Encode(&b, stdimage.NewGray(stdimage.Rect(0, 0, 8, 4))); err != nil {
			t.Fatal(err)
		}
		id, _, err := files.Keep(t.Context(), b.Bytes(), image.Info{Type: image.TypePNG, Width: 8, Height: 4})
		if err != nil {
			t.Fatal(err)
		}
		s := New(Options{Images: files})
		ask := func(method, id string, header ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "http://localhost/v1/images/"+id, nil)
			if len(header) == 2 {
				r.Header.Set(header[0], header[1])
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		w := ask(http.MethodGet, id)
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), b.Bytes()) {
			t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
		}
		for name, want := range map[string]string{
			"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": `inline; filename="image.png"`,
			"Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if w := ask(http.MethodHead, id); w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
			t.Errorf("HEAD: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
		}
		if w := ask(http.MethodGet, id, "Range", "bytes=1-3"); w.Code != http.StatusPartialContent || w.Body.String() != "PNG" {
			t.Errorf("a part: %d, %q", w.Code, w.Body)
		}
		if w := ask(http.MethodPost, id); w.Code == http.StatusOK {
			t.Error("POST is answered")
		}
		for _, other := range []string{strings.Repeat("A", 43), "x", "..%2f..%2fetc%2fpasswd", id + "A"} {
			if w := ask(http.MethodGet, other); w.Code != http.StatusNotFound || !strings.Contains(w.Header().Get("Content-Type"), "json") {
				t.Errorf("%s: %d", other, w.Code)
			}
		}
		page, _, err := files.Keep(t.Context(), []byte("<html><script>"), image.Info{Type: image.TypeJPEG})
		if err != nil {
			t.Fatal(err)
		}
		if w := ask(http.MethodGet, page); w.Header().Get("Content-Type") != image.TypeJPEG {
			t.Errorf("a file like a page is served as %s", w.Header().Get("Content-Type"))
		}
		<-time.After(time.Hour)
		if w := ask(http.MethodGet, id); w.Code != http.StatusGone || !strings.Contains(w.Body.String(), "image_expired") {
			t.Errorf("after its end: %d %s", w.Code, w.Body)
		}
	})
}

// broken is a file that cannot be read.
type broken struct{}

func (broken) Open(string) (*image.Image, error) { return nil, errors.New("the disk hums") }

// TestImagesUnavailable: an error of the disk is logged and reported without its cause, and the log does not have the
// URL.
func TestImagesUnavailable(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Images: broken{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/images/secret-name", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "hums") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "hums") || strings.Contains(log.String(), "secret-name") {
		t.Errorf("the log: %s", log.String())
	}
}

// TestNoImages: a gateway without images has no such endpoint, and a modified file is not served.
func TestNoImages(t *testing.T) {
	w := httptest.NewRecorder()
	New(Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/images/x", nil))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "endpoint") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	dir := t.TempDir()
	files, err := image.OpenFiles(image.FilesOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	id, _, err := files.Keep(t.Context(), []byte("<script>"), image.Info{Type: image.TypePNG})
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], bytes.Replace(data, []byte("image/png"), []byte("text/html"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	w = httptest.NewRecorder()
	New(Options{Images: files}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/images/"+id, nil))
	if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

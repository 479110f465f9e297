package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func openFiles(t *testing.T, o FilesOptions) *Files {
	t.Helper()
	f, err := OpenFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func keep(t *testing.T, f *Files, data []byte) (string, time.Time) {
	t.Helper()
	id, ends, err := f.Keep(t.Context(), data, Info{TypePNG, 8, 4})
	if err != nil {
		t.Fatal(err)
	}
	return id, ends
}

func read(t *testing.T, f *Files, id string) ([]byte, error) {
	t.Helper()
	img, err := f.Open(id)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	data, err := io.ReadAll(img)
	if int64(len(data)) != img.Size || img.Type != TypePNG || img.Width != 8 || img.Height != 4 {
		t.Errorf("%d bytes of %d, %+v", len(data), img.Size, img.Info)
	}
	return data, err
}

// TestExpiry: an image exists until its expiry, its bytes are removed soon after, and an expired one is distinguished
// from an unknown one, also by the next process.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, data := t.TempDir(), []byte("bytes\nof an image")
		f, err := OpenFiles(FilesOptions{Dir: dir, Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		id, ends := keep(t, f, data)
		if len(id) != 43 || !ends.Equal(began.Add(time.Hour)) {
			t.Errorf("%s until %s", id, ends)
		}
		wait := func(d time.Duration) { <-time.After(d) }
		wait(time.Hour - time.Millisecond)
		if got, err := read(t, f, id); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q, %v", got, err)
		}
		wait(time.Millisecond)
		if _, err := f.Open(id); !errors.Is(err, ErrExpired) {
			t.Errorf("at its end: %v", err)
		}
		wait(sweepEvery)
		synctest.Wait()
		if left, err := filepath.Glob(filepath.Join(dir, "*"+kept)); err != nil || len(left) != 0 {
			t.Errorf("%v, %v", left, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		again, err := OpenFiles(FilesOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if _, err := again.Open(id); !errors.Is(err, ErrExpired) {
			t.Errorf("after a restart: %v", err)
		}
		if _, err := again.Open(strings.Repeat("A", 43)); !errors.Is(err, ErrUnknown) {
			t.Errorf("an unknown image: %v", err)
		}
	})
}

// TestRestart: another process, or the next one, has the images too.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first, second := openFiles(t, FilesOptions{Dir: dir}), openFiles(t, FilesOptions{Dir: dir})
	id, _ := keep(t, first, []byte("one"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := read(t, second, id); err != nil || string(data) != "one" {
		t.Errorf("%q, %v", data, err)
	}
	if _, _, err := first.Keep(t.Context(), []byte("two"), Info{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRoom: count and bytes are limited; the oldest images are removed and reported as expired.
func TestRoom(t *testing.T) {
	for name, o := range map[string]FilesOptions{
		"count": {MaxCount: 2}, "bytes": {MaxBytes: 700},
	} {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			f := openFiles(t, o)
			var ids []string
			for i := range 3 {
				id, _ := keep(t, f, make([]byte, 200))
				ids = append(ids, id)
				// Files may be made faster than the clock of a file system ticks.
				at := time.Now().Add(time.Duration(i-10) * time.Second)
				if err := os.Chtimes(f.path(id, kept), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.Open(ids[0]); !errors.Is(err, ErrExpired) {
				t.Errorf("the first: %v", err)
			}
			for _, id := range ids[1:] {
				if _, err := read(t, f, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	f := openFiles(t, FilesOptions{Dir: t.TempDir(), MaxBytes: 100})
	if _, _, err := f.Keep(t.Context(), make([]byte, 101), Info{}); !errors.Is(err, ErrSize) {
		t.Errorf("more than all the room: %v", err)
	}
}

// TestNamesAreSecret: the folder does not show the names, only the owner can read the files, and no name leads out of the
// folder.
func TestNamesAreSecret(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, FilesOptions{Dir: filepath.Join(dir, "images")})
	id, _ := keep(t, f, []byte("one"))
	other, _ := keep(t, f, []byte("one"))
	if id == other {
		t.Error("two images have one name")
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if strings.Contains(path, id) || path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s %s", info.Mode(), path)
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(id)) {
			t.Errorf("%s shows the name", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", ".", "..", "../secret", id + "/..", id + "=", id[:42], id + "A", strings.Repeat("ä", 43), filepath.Base(f.path(id, ""))} {
		if _, err := f.Open(bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestBrokenFiles: partial or changed files are not served, and are swept.
func TestBrokenFiles(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"cut off":      func(b []byte) []byte { return b[:len(b)-1] },
		"longer":       func(b []byte) []byte { return append(b, '!') },
		"no head":      func([]byte) []byte { return []byte("one") },
		"another type": func(b []byte) []byte { return bytes.Replace(b, []byte("image/png"), []byte("text/html"), 1) },
		"empty":        func([]byte) []byte { return nil },
		"long head":    func([]byte) []byte { return bytes.Repeat([]byte("x"), 10_000) },
	} {
		t.Run(name, func(t *testing.T) {
			f := openFiles(t, FilesOptions{Dir: t.TempDir()})
			id, _ := keep(t, f, []byte("one"))
			data, err := os.ReadFile(f.path(id, kept))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f.path(id, kept), spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if img, err := f.Open(id); err == nil {
				img.Close()
				t.Error("it was opened")
			}
			if err := f.sweep(time.Now()); err != nil {
				t.Error(err)
			}
			if _, err := f.Open(id); !errors.Is(err, ErrExpired) {
				t.Errorf("after a sweep: %v", err)
			}
		})
	}
}

// TestSweep: records of expired images and partial files are removed, and foreign files stay.
func TestSweep(t *testing.T) {
	f := openFiles(t, FilesOptions{Dir: t.TempDir()})
	id, _ := keep(t, f, []byte("one"))
	if err := f.sweep(time.Now().Add(25 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(id); !errors.Is(err, ErrExpired) {
		t.Fatal(err)
	}
	unfinished, foreign := f.path("x", partial), filepath.Join(f.opts.Dir, "notes.txt")
	for _, path := range []string{unfinished, foreign} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.sweep(time.Now().Add(rememberFor - time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unfinished); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a partial file: %v", err)
	}
	if _, err := f.Open(id); !errors.Is(err, ErrExpired) {
		t.Errorf("it was removed too soon: %v", err)
	}
	if err := f.sweep(time.Now().Add(rememberFor + time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(id); !errors.Is(err, ErrUnknown) {
		t.Errorf("it is remembered for ever: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a file that is not ours was swept")
	}
}

// TestNoFolder: a folder that cannot be created or written is reported at the start, or at the image; no partial file
// remains.
func TestNoFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenFiles(FilesOptions{Dir: filepath.Join(dir, "file", "images")}); err == nil {
		t.Error("a folder below a file", f.Close())
	}
	if _, err := OpenFiles(FilesOptions{}); err == nil {
		t.Error("no folder")
	}
	f := openFiles(t, FilesOptions{Dir: filepath.Join(dir, "images")})
	if err := os.RemoveAll(f.opts.Dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Keep(t.Context(), []byte("one"), Info{}); err == nil {
		t.Error("it was stored without a folder")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Keep(ctx, nil, Info{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestManyAtOnce: during concurrent writes, reads and sweeps no image within the limits is lost.
func TestManyAtOnce(t *testing.T) {
	f := openFiles(t, FilesOptions{Dir: t.TempDir(), MaxCount: 100})
	var busy sync.WaitGroup
	for i := range 8 {
		busy.Go(func() {
			for range 5 {
				data := bytes.Repeat([]byte{byte(i)}, 100+i)
				id, _, err := f.Keep(context.Background(), data, Info{TypePNG, 8, 4})
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := read(t, f, id); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%v", err)
				}
				if err := f.sweep(time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	busy.Wait()
}

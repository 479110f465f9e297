package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestOwn: the key is made once, with 256 bits, readable by its owner only; several processes that make it at once get
// the same one.
func TestOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	if _, err := ReadOperatorKey(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := OwnOperatorKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	all.Wait()
	for _, key := range keys {
		if key != keys[0] || len(key) != 2*size {
			t.Fatalf("the keys are %q", keys)
		}
	}
	info, err := os.Stat(filepath.Join(dir, OperatorKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if other, err := OwnOperatorKey(t.TempDir()); err != nil || other == keys[0] {
		t.Errorf("another folder's key: %v", err)
	}
}

// TestFilesThatAreRefused: each error has a reason and does not show the key.
func TestFilesThatAreRefused(t *testing.T) {
	good := strings.Repeat("5ec2e7", 11)[:64]
	write := func(text string, mode os.FileMode) func(string) error {
		return func(name string) error {
			return errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chmod(name, mode))
		}
	}
	for name, tc := range map[string]struct {
		make func(string) error
		word string // of the error; empty for an accepted key
	}{
		"a new key":             {write(good+"\n", 0o600), ""},
		"for its owner only":    {write(good, 0o400), ""},
		"read by a group":       {write(good, 0o640), "0640"},
		"readable by all users": {write(good, 0o604), "accessible to others"},
		"written by a group":    {write(good, 0o620), "0620"},
		"empty":                 {write("", 0o600), "64 digits"},
		"half":                  {write(good[:32], 0o600), "64 digits"},
		"too long":              {write(good+"0", 0o600), "64 digits"},
		"two lines":             {write(good+"\n\n", 0o600), "64 digits"},
		"no digits":             {write(strings.Repeat("x", 64), 0o600), "64 digits"},
		"huge":                  {write(strings.Repeat(good, 1000), 0o600), "64 digits"},
		"a folder":              {func(name string) error { return os.Mkdir(name, 0o700) }, "not a regular file"},
		"a link":                {func(name string) error { return os.Symlink("/etc/passwd", name) }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("modes are Unix's")
			}
			dir := t.TempDir()
			if err := tc.make(filepath.Join(dir, OperatorKeyFile)); err != nil {
				t.Fatal(err)
			}
			for _, read := range []func(string) (string, error){ReadOperatorKey, OwnOperatorKey} {
				key, err := read(dir)
				if tc.word == "" {
					if err != nil || key != good {
						t.Errorf("%v", err)
					}
					continue
				}
				if !errors.Is(err, ErrOperatorKeyUnusable) || !strings.Contains(err.Error(), tc.word) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "5ec2e7") || key != "" {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

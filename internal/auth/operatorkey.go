package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"voicegw/internal/logging"
)

// OperatorKeyFile is the key's file name in the data folder.
const OperatorKeyFile = "operators.key"

const size = 32

var form = regexp.MustCompile(`^([0-9a-f]{64})\n?$`)

// ErrOperatorKeyUnusable is wrapped if the file exists but is unusable.
var ErrOperatorKeyUnusable = errors.New("the operators' key is unusable")

// ReadOperatorKey reads the operators' key in dir. Its error wraps fs.ErrNotExist or ErrOperatorKeyUnusable and never
// contains the key.
func ReadOperatorKey(dir string) (string, error) {
	name := filepath.Join(dir, OperatorKeyFile)
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: %s %w", ErrOperatorKeyUnusable, name, fmt.Errorf(format, args...))
	}
	// Opening a pipe would block.
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil:
		return refuse("is inaccessible: %w", bare(err))
	case !info.Mode().IsRegular():
		return refuse("is not a regular file; remove it, and the gateway creates a new one at its next start")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return refuse("is accessible to others (mode %04o), so the key may have leaked; remove it, and the gateway creates a "+
			"new one at its next start", info.Mode().Perm())
	}
	f, err := os.Open(name)
	if err != nil {
		return refuse("cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 2*size+2))
	if err != nil {
		return refuse("cannot be read: %w", bare(err))
	}
	found := form.FindSubmatch(text)
	if found == nil {
		return refuse("has no key (64 digits of 0 to 9 and a to f); remove it, and the gateway creates a new one at its next start")
	}
	return string(found[1]), nil
}

func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// OwnOperatorKey returns the key, creating it if missing; all processes that create it at once return the same. It is
// on disk.
func OwnOperatorKey(dir string) (string, error) {
	key, err := ReadOperatorKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w: cannot create %s: %w; configure an api_key, or make the data folder writable",
			ErrOperatorKeyUnusable, filepath.Join(dir, OperatorKeyFile), err)
	}
	return ReadOperatorKey(dir)
}

// makeKey writes a new key, complete when it gets its name. The error wraps fs.ErrExist if there is one.
func makeKey(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	raw := make([]byte, size)
	_, _ = rand.Read(raw) // never fails
	key := hex.EncodeToString(raw)
	logging.Made(logging.OperatorsKey, key)
	// The mode is 0600, whatever the umask.
	f, err := os.CreateTemp(dir, OperatorKeyFile+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it keeps its final name
	_, err = f.WriteString(key + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(dir, OperatorKeyFile)); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes a folder's names durable where supported.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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

// OperatorKeyFile is the name of the key's file in the data folder.
const OperatorKeyFile = "operators.key"

// size is how much chance is in the key, in bytes.
const size = 32

// form is what the file holds.
var form = regexp.MustCompile(`^([0-9a-f]{64})\n?$`)

// ErrOperatorKeyUnusable is wrapped where the file is there and cannot be used.
var ErrOperatorKeyUnusable = errors.New("the operators' key cannot be used")

// ReadOperatorKey reads the key of a data folder. The error wraps fs.ErrNotExist if the file is missing,
// or ErrOperatorKeyUnusable. No error holds the key.
func ReadOperatorKey(dir string) (string, error) {
	name := filepath.Join(dir, OperatorKeyFile)
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: %s %w", ErrOperatorKeyUnusable, name, fmt.Errorf(format, args...))
	}
	// What is not a plain file is not opened: a pipe would wait for ever.
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil:
		return refuse("cannot be looked at: %w", bare(err))
	case !info.Mode().IsRegular():
		return refuse("is no plain file; remove it, and the gateway makes a new one at its next start")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return refuse("may be read or written by others (its mode is %04o). Whoever has read it may have the key: remove it, and the gateway makes a new one at its next start", info.Mode().Perm())
	}
	f, err := os.Open(name)
	if err != nil {
		return refuse("cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, 2*size+2))
	if err != nil {
		return refuse("cannot be read: %w", bare(err))
	}
	found := form.FindSubmatch(text)
	if found == nil {
		return refuse("does not hold a key (64 digits of 0 to 9 and a to f); remove it, and the gateway makes a new one at its next start")
	}
	return string(found[1]), nil
}

// bare is an error of the file system without the path that it repeats.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// OwnOperatorKey returns the key of a data folder, and makes it if the file is missing. Of several
// processes that make it at once one wins, and all return that one's. The key is on the disk
// when it returns.
func OwnOperatorKey(dir string) (string, error) {
	key, err := ReadOperatorKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w: %s cannot be made: %w; configure an api_key, or make the data folder writable", ErrOperatorKeyUnusable, filepath.Join(dir, OperatorKeyFile), err)
	}
	return ReadOperatorKey(dir)
}

// makeKey writes a new key. The file is complete when it gets its name, and takes nobody
// else's: the error then wraps fs.ErrExist.
func makeKey(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	raw := make([]byte, size)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	key := hex.EncodeToString(raw)
	logging.Made(logging.OperatorsKey, key)
	// Its mode is 0600, whatever the umask.
	f, err := os.CreateTemp(dir, OperatorKeyFile+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // its other name stays
	_, err = f.WriteString(key + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(dir, OperatorKeyFile)); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes the names in a folder durable, where that can be asked for.
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

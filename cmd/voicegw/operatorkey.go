package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"voicegw/config"
	"voicegw/internal/origin"
	"voicegw/internal/secretwatch"
)

// keyFile is the name of the file, in the data folder, of the key that a gateway makes at its
// first start where no api_key is configured.
const keyFile = "operators.key"

// keyBytes is how much chance is in that key: 256 bits.
const keyBytes = 32

// keyForm is what the file holds.
var keyForm = regexp.MustCompile(`^([0-9a-f]{64})\n?$`)

// errKeyFile is wrapped where the key's file is there and cannot be used.
var errKeyFile = errors.New("the operators' key cannot be used")

// readKey reads the key of a data folder. The error wraps fs.ErrNotExist if the file is missing,
// or errKeyFile. No error holds the key.
func readKey(dir string) (config.Secret, error) {
	name := filepath.Join(dir, keyFile)
	refused := func(format string, args ...any) (config.Secret, error) {
		return config.Secret{}, fmt.Errorf("%w: %s %w", errKeyFile, name, fmt.Errorf(format, args...))
	}
	// What is not a plain file is not opened: a pipe would wait for ever.
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return config.Secret{}, err
	case err != nil:
		return refused("cannot be looked at: %w", bare(err))
	case !info.Mode().IsRegular():
		return refused("is no plain file; remove it, and the gateway makes a new one at its next start")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return refused("may be read or written by others (its mode is %04o). Whoever has read it may have the key: remove it, and the gateway makes a new one at its next start", info.Mode().Perm())
	}
	f, err := os.Open(name)
	if err != nil {
		return refused("cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, 2*keyBytes+2))
	if err != nil {
		return refused("cannot be read: %w", bare(err))
	}
	found := keyForm.FindSubmatch(text)
	if found == nil {
		return refused("does not hold a key (64 digits of 0 to 9 and a to f); remove it, and the gateway makes a new one at its next start")
	}
	return config.NewSecret(string(found[1])), nil
}

// bare is an error of the file system without the path that it repeats.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// ownKey returns the key of a data folder, and makes it if the file is missing. Of several
// processes that make it at once one wins, and all return that one's. The key is on the disk
// when it returns.
func ownKey(dir string) (config.Secret, error) {
	key, err := readKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return config.Secret{}, fmt.Errorf("%w: %s cannot be made: %w; configure an api_key, or make the data folder writable", errKeyFile, filepath.Join(dir, keyFile), err)
	}
	return readKey(dir)
}

// localKey returns the key of a gateway on this machine, for a command that asks it at base
// and was given no key: the one that the gateway has made in the data folder. It is empty if the
// file is missing, and for every other machine, which must not be sent this key.
func (p Process) localKey(base string, cfg *config.Config) (config.Secret, error) {
	u, err := url.Parse(base)
	if err != nil {
		return config.Secret{}, nil
	}
	host, err := origin.ParseHost(u.Host)
	if err != nil || !host.IP.IsLoopback() && host.Name != "localhost" {
		return config.Secret{}, nil
	}
	dir, err := p.dataDir(cfg)
	if err != nil || dir == "" {
		return config.Secret{}, nil // no folder, no key in it
	}
	key, err := readKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return config.Secret{}, nil
	}
	return key, err
}

// operatorsKey returns what operators have to show: the configured key, else the one of the
// data folder; empty where there is neither.
func (s *server) operatorsKey() (string, error) {
	switch {
	case s.cfg.APIKey.IsSet():
		return s.cfg.APIKey.Reveal(), nil
	case s.dataDir == "":
		s.logger.Warn("nobody can use the endpoints for operators: there is no api_key, and no data folder to keep one in")
		return "", nil
	}
	key, err := ownKey(s.dataDir)
	return key.Reveal(), err
}

// makeKey writes a new key. The file is complete when it gets its name, and takes nobody
// else's: the error then wraps fs.ErrExist.
func makeKey(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	key := hex.EncodeToString(raw)
	secretwatch.Made(secretwatch.OperatorsKey, key)
	// Its mode is 0600, whatever the umask.
	f, err := os.CreateTemp(dir, keyFile+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // its other name stays
	_, err = f.WriteString(key + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(dir, keyFile)); err != nil {
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

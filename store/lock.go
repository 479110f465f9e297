package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockName is the file in a Store's folder which says who has it open. It stays when the
// Store is closed: only the lock on it counts, which the operating system releases when the
// process ends, however it ends.
const lockName = "voicegw.lock"

// folderLock is a lock on a folder.
type folderLock struct{ file *os.File }

// lockFolder creates dir if it is missing and locks it.
func lockFolder(dir string) (*folderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: the data folder %s cannot be made; give one that this user may write to: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: the data folder %s cannot be written; give this user the right to, or another folder: %w", dir, err)
	}
	if err := tryLock(file); err != nil {
		defer file.Close() //nolint:errcheck // nothing was written
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("store: the data folder %s cannot be locked; put it on a local disk: %w", dir, err)
		}
		return nil, fmt.Errorf("%w: %s is open in %s; end that process, or give this one a data folder of its own (several nodes share a NATS cluster by its URL, not by a folder)", ErrInUse, dir, holder(file))
	}
	l := &folderLock{file: file}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: the data folder %s cannot be written; is the disk full? %w", dir, err), l.release())
	}
	return l, nil
}

// sign writes who holds the lock, for the error of a second Open. It also shows early that
// the disk accepts writes.
func (l *folderLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return err
	}
	return l.file.Sync()
}

// holder reads who holds the lock on file.
func holder(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if pid, numberErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && numberErr == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// release unlocks the folder.
func (l *folderLock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("store: letting the lock go: %w", err)
	}
	return nil
}

// errLocked is what tryLock returns if somebody else holds the lock.
var errLocked = errors.New("locked by another process")

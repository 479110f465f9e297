package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"voicegw/internal/backends/kb"
)

// SynonymFile is a file of synonyms (kb.ParseSynonyms) that a Source rereads when it changes. It may be used
// concurrently.
type SynonymFile struct {
	// Fixed after OpenSynonyms.
	path string

	current atomic.Pointer[kb.Synonyms]

	// Owned by OpenSynonyms, then by the Source.
	size     int64
	modified time.Time
	problems []kb.Problem
}

// OpenSynonyms reads a file of synonyms. An unreadable file is an error. The Source reports problems of lines.
func OpenSynonyms(path string) (*SynonymFile, error) {
	f := &SynonymFile{path: path}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("kb: synonyms: %w", err)
	}
	return f, nil
}

// Current returns the current synonyms.
func (f *SynonymFile) Current() *kb.Synonyms { return f.current.Load() }

// reload reads the file if it has changed, and returns its problems. While the file is unreadable, the previous
// synonyms remain.
func (f *SynonymFile) reload() []kb.Problem {
	info, err := os.Stat(f.path)
	if err == nil && info.Size() == f.size && info.ModTime().Equal(f.modified) {
		return f.problems
	}
	if err == nil {
		err = f.read()
	}
	if err != nil {
		f.modified = time.Time{} // makes the next call try again
		return []kb.Problem{{File: f.path, Message: "cannot be read, so the previous synonyms remain: " + reason(err)}}
	}
	return f.problems
}

func (f *SynonymFile) read() error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: f.path, Err: errors.New("it is not a file")}
	}
	synonyms, problems := kb.ParseSynonyms(f.path, file)
	f.size, f.modified, f.problems = info.Size(), info.ModTime(), problems
	f.current.Store(synonyms)
	return nil
}

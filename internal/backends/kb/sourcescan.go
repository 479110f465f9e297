package kb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const maxRecords = 500_000

// scanner reads a folder, after the first scan only changed files. Only one goroutine at a time may use it.
type scanner struct {
	root  fs.FS
	files map[string]*file
}

type file struct {
	info     fs.FileInfo // nil makes the next scan read it again
	records  []located
	problems []Problem
}

// unchanged reports whether a file is the one that was read.
func unchanged(read, now fs.FileInfo) bool {
	return read != nil && read.Size() == now.Size() && read.ModTime().Equal(now.ModTime()) &&
		(now.Sys() == nil || os.SameFile(read, now)) // an embedded file is always the same
}

type scanned struct {
	records  map[string]located
	problems []Problem
	partial  bool     // a part of the folder was not readable, so missing records may still exist
	folders  []string // all walked ones, the root as "."
}

// scan walks the folder. It reads files that are new or have another size or time.
func (s *scanner) scan() *scanned {
	out := &scanned{records: map[string]located{}}
	files := map[string]*file{}
	var names []string
	err := fs.WalkDir(s.root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			out.partial = true
			out.problems = append(out.problems, Problem{File: name, Message: "cannot be read: " + reason(err)})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case name != "." && strings.ContainsRune("._", rune(path.Base(name)[0])):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			out.folders = append(out.folders, name)
			return nil
		case !isRecords(name):
			return nil
		}
		if f := s.file(name); f != nil {
			files[name] = f
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		out.partial = true
		out.problems = append(out.problems, Problem{File: ".", Message: "cannot be read: " + reason(err)})
	}
	if out.partial { // keep the files of unreadable folders
		for name, old := range s.files {
			if files[name] == nil {
				files[name] = old
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	s.files = files
	out.collect(names, files)
	return out
}

// reason returns the text of an error without its path.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

func isRecords(name string) bool {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".md", ".markdown":
		return !strings.EqualFold(path.Base(name), "readme.md")
	case ".jsonl":
		return true
	}
	return false
}

// file reads a file unless it is unchanged; nil if it is not a regular file.
func (s *scanner) file(name string) *file {
	old := s.files[name]
	info, err := fs.Stat(s.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // just removed, or a broken link
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err == nil && old != nil && unchanged(old.info, info) {
		return old
	}
	next := &file{}
	if err == nil {
		err = next.read(s.root, name, info.ModTime())
	}
	if err == nil {
		next.info = info
	} else {
		next.problems = []Problem{{File: name, Message: "cannot be read: " + reason(err)}}
	}
	if len(next.problems) > 0 && old != nil {
		next.keep(old)
	}
	return next
}

// keep adds the missing records of the previous version, so that a problem in a file removes no record.
func (f *file) keep(old *file) {
	have := map[string]bool{}
	for _, one := range f.records {
		have[one.record.ID] = true
	}
	for _, one := range old.records {
		if !have[one.record.ID] {
			f.records = append(f.records, one)
		}
	}
}

func (f *file) read(root fs.FS, name string, modified time.Time) error {
	opened, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // only read
	if modified.IsZero() {                // an embedded file
		modified = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if strings.EqualFold(path.Ext(name), ".jsonl") {
		f.records, f.problems = parseJSONL(name, opened, modified)
		return nil
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(io.LimitReader(opened, maxMarkdownBytes+1)); err != nil {
		return err
	}
	rec, problems := parseMarkdown(name, data.Bytes(), modified)
	f.problems = problems
	if len(problems) == 0 {
		f.records = []located{{rec, 1, rec.Hash()}}
	}
	return nil
}

// collect merges the files in the order of their names. The first record with an id counts.
func (out *scanned) collect(names []string, files map[string]*file) {
	where := map[string]string{}
	left := 0
	for _, name := range names {
		f := files[name]
		out.problems = append(out.problems, f.problems...)
		for _, one := range f.records {
			id := one.record.ID
			if first, ok := where[id]; ok {
				out.problems = append(out.problems, Problem{File: name, Line: one.line,
					Message: fmt.Sprintf("%s is in %s too; this record is ignored", id, first)})
				continue
			}
			if len(out.records) >= maxRecords {
				left++
				continue
			}
			where[id] = fmt.Sprintf("%s:%d", name, one.line)
			out.records[id] = one
		}
	}
	if left > 0 {
		out.problems = append(out.problems, Problem{File: ".",
			Message: fmt.Sprintf("%d records are ignored; the maximum is %d", left, maxRecords)})
	}
}

// SynonymFile is a file of synonyms ([ParseSynonyms]) that a Source rereads when it changes. It may be used
// concurrently.
type SynonymFile struct {
	// Fixed after OpenSynonyms.
	path string

	current atomic.Pointer[Synonyms]

	// Owned by OpenSynonyms, then by the Source.
	info     fs.FileInfo // nil makes the next reload read it again
	problems []Problem
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
func (f *SynonymFile) Current() *Synonyms { return f.current.Load() }

// reload reads the file if it has changed, and returns its problems. While the file is unreadable, the previous
// synonyms remain.
func (f *SynonymFile) reload() []Problem {
	info, err := os.Stat(f.path)
	if err == nil && unchanged(f.info, info) {
		return f.problems
	}
	if err == nil {
		err = f.read()
	}
	if err != nil {
		f.info = nil
		return []Problem{{File: f.path, Message: "cannot be read, so the previous synonyms remain: " + reason(err)}}
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
	synonyms, problems := ParseSynonyms(f.path, file)
	f.info, f.problems = info, problems
	f.current.Store(synonyms)
	return nil
}

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"voicegw/internal/backends/kb"
)

// maxRecords bounds what one source may hold.
const maxRecords = 500_000

// scanner reads a folder; later scans read only the files that changed. Only one goroutine at a
// time may use it.
type scanner struct {
	root  fs.FS
	files map[string]*file
}

// file is the content of one file.
type file struct {
	size     int64
	modified time.Time
	records  []located
	problems []kb.Problem
}

type located struct {
	Located
	hash string
}

// scanned is the content of a whole folder.
type scanned struct {
	records  map[string]located
	problems []kb.Problem
	// partial says that a part of the folder could not be read: records that are missing here
	// may still exist.
	partial bool
	// folders are all that were walked, the root as ".".
	folders []string
}

// load reads everything at once; it is a scan by a new scanner.
func load(root fs.FS) *scanned {
	s := &scanner{root: root}
	return s.scan(nil)
}

// Load reads all records of a folder, sorted by id, and reports everything that is wrong in it.
// Names that begin with a dot or an underscore, files of other kinds and README.md are skipped;
// links to files are followed, links to folders are not.
func Load(root fs.FS) ([]kb.Record, []kb.Problem) {
	all := load(root)
	records := make([]kb.Record, 0, len(all.records))
	for _, one := range all.records {
		records = append(records, one.Record)
	}
	slices.SortFunc(records, func(a, b kb.Record) int { return strings.Compare(a.ID, b.ID) })
	return records, all.problems
}

// scan walks the folder. Files with the same size and time as before are not read again, unless
// they are in dirty.
func (s *scanner) scan(dirty map[string]bool) *scanned {
	out := &scanned{records: map[string]located{}}
	files := map[string]*file{}
	var names []string
	err := fs.WalkDir(s.root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			out.partial = true
			out.problems = append(out.problems, kb.Problem{File: name, Message: "cannot be read: " + reason(err)})
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
		if f := s.file(name, dirty[name]); f != nil {
			files[name] = f
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		out.partial = true
		out.problems = append(out.problems, kb.Problem{File: ".", Message: "cannot be read: " + reason(err)})
	}
	if out.partial { // a part that could not be walked stays as it was
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

// reason is the error without the path, which is printed beside it.
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

// file reads one file if necessary; nil if it is not a file of records.
func (s *scanner) file(name string, dirty bool) *file {
	old := s.files[name]
	info, err := fs.Stat(s.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the walk saw it, or a broken link
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err == nil && old != nil && !dirty && old.size == info.Size() && old.modified.Equal(info.ModTime()) {
		return old
	}
	next := &file{}
	if err == nil {
		next.size, next.modified = info.Size(), info.ModTime()
		err = next.read(s.root, name)
	}
	if err != nil {
		next.modified = time.Time{} // look again next time
		next.problems = []kb.Problem{{File: name, Message: "cannot be read: " + reason(err)}}
	}
	if len(next.problems) > 0 && old != nil {
		next.keep(old)
	}
	return next
}

// keep takes over the previous version's records that are missing in this one: while a file has
// a problem, no record disappears because of it.
func (f *file) keep(old *file) {
	have := map[string]bool{}
	for _, one := range f.records {
		have[one.Record.ID] = true
	}
	for _, one := range old.records {
		if !have[one.Record.ID] {
			f.records = append(f.records, one)
		}
	}
}

func (f *file) read(root fs.FS, name string) error {
	opened, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // only read from
	modified := f.modified
	if modified.IsZero() { // embedded files have no time
		modified = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if strings.EqualFold(path.Ext(name), ".jsonl") {
		records, problems := ParseJSONL(name, opened, modified)
		f.problems = problems
		for _, one := range records {
			f.add(one)
		}
		return nil
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(io.LimitReader(opened, MaxMarkdownBytes+1)); err != nil {
		return err
	}
	rec, problems := ParseMarkdown(name, data.Bytes(), modified)
	f.problems = problems
	if len(problems) == 0 {
		f.add(Located{Record: rec, Line: 1})
	}
	return nil
}

func (f *file) add(one Located) {
	f.records = append(f.records, located{Located: one, hash: one.Record.Hash()})
}

// collect merges the files. Of two records with one id the first counts, in the order of the
// files' names.
func (out *scanned) collect(names []string, files map[string]*file) {
	where := map[string]string{}
	left := 0
	for _, name := range names {
		f := files[name]
		out.problems = append(out.problems, f.problems...)
		for _, one := range f.records {
			id := one.Record.ID
			if first, ok := where[id]; ok {
				out.problems = append(out.problems, kb.Problem{File: name, Line: one.Line,
					Message: fmt.Sprintf("%s stands in %s too; this one is left out", id, first)})
				continue
			}
			if len(out.records) >= maxRecords {
				left++
				continue
			}
			where[id] = fmt.Sprintf("%s:%d", name, one.Line)
			out.records[id] = one
		}
	}
	if left > 0 {
		out.problems = append(out.problems, kb.Problem{File: ".",
			Message: fmt.Sprintf("%d records are left out: at most %d are taken", left, maxRecords)})
	}
}

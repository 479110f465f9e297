package audit

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// FollowOptions configure [Follow].
type FollowOptions struct {
	Every time.Duration
	// Follow calls CaughtUp once, after it has read all existing lines. It may be nil.
	CaughtUp func() error
}

// ReadFiles reads full files and the live file at path, oldest records first, also while they rotate. The error is
// fs.ErrNotExist if there is no file, or ctx's.
func ReadFiles(ctx context.Context, path string, f func(Record, []byte) error) (Report, error) {
	t := newTail(ctx, path, f)
	defer t.close()
	found, err := t.turn()
	if err == nil && !found && t.files == 0 {
		return t.report, fmt.Errorf("audit: %s: %w", path, fs.ErrNotExist)
	}
	if err == nil && t.live != nil {
		err = t.scanner.last(&t.report, t.f)
	}
	return t.report, err
}

// Follow reads as [ReadFiles] does and continues with new lines, through rotations, until ctx is done. The live file
// need not exist yet.
func Follow(ctx context.Context, path string, o FollowOptions, f func(Record, []byte) error) (Report, error) {
	if o.Every <= 0 {
		o.Every = 250 * time.Millisecond
	}
	t := newTail(ctx, path, f)
	defer t.close()
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for caughtUp := false; ; {
		_, err := t.turn()
		if ctx.Err() != nil {
			return t.report, nil
		}
		if err == nil && !caughtUp && o.CaughtUp != nil {
			err = o.CaughtUp()
		}
		if err != nil {
			return t.report, err
		}
		caughtUp = true
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t.report, nil
		}
	}
}

type tail struct {
	path   string
	f      func(Record, []byte) error
	report Report
	files  int // opened so far

	live    *os.File // nil while there is no live file
	info    fs.FileInfo
	scanner *scanner
	known   []fullFile // the full files when live was opened
}

func newTail(ctx context.Context, path string, f func(Record, []byte) error) *tail {
	return &tail{path: path, f: func(r Record, line []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f(r, line)
	}}
}

func (t *tail) close() {
	if t.live != nil {
		_ = t.live.Close() // it was only read
		t.live = nil
	}
}

func (t *tail) turn() (bool, error) {
	for {
		if t.live != nil {
			if err := t.scanner.each(&t.report, t.f); err != nil {
				return true, err
			}
			gone, err := t.gone()
			if err != nil || !gone {
				return true, err
			}
		}
		if ok, err := t.move(); err != nil || !ok {
			return false, err
		}
	}
}

// gone reports whether the live file was rotated or replaced. It rewinds a truncated file.
func (t *tail) gone() (bool, error) {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // between two files: the next look decides
	}
	if err != nil {
		return false, fmt.Errorf("audit: %w", err)
	}
	if !os.SameFile(info, t.info) {
		return true, nil
	}
	if info.Size() < t.scanner.read {
		if _, err := t.live.Seek(0, io.SeekStart); err != nil {
			return false, fmt.Errorf("audit: %w", err)
		}
		t.scanner = newScanner(t.live)
	}
	return false, nil
}

// move reads the full files since the previous live file and opens the present one, if there is one.
func (t *tail) move() (bool, error) {
	live, full, err := t.open()
	if err != nil {
		return false, fmt.Errorf("audit: %w", err)
	}
	between := slices.DeleteFunc(slices.Clone(full), func(f fullFile) bool { return slices.Contains(t.known, f) })
	if t.live != nil {
		if err := t.finish(t.scanner, t.f); err != nil {
			return false, errors.Join(err, closeIf(live))
		}
		between = t.without(between)
		t.close()
	}
	for _, f := range between {
		if err := t.full(f); err != nil {
			return false, errors.Join(err, closeIf(live))
		}
	}
	t.known = full
	if live == nil {
		return false, nil
	}
	t.files++
	t.live, t.scanner = live, newScanner(live)
	t.info, err = live.Stat()
	if err != nil {
		return false, fmt.Errorf("audit: %w", err)
	}
	return true, nil
}

func closeIf(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// finish reads the rest of a file that is full now.
func (t *tail) finish(s *scanner, f func(Record, []byte) error) error {
	if err := s.each(&t.report, f); err != nil {
		return err
	}
	torn := t.report.Torn
	err := s.last(&t.report, f)
	if t.report.Torn && !torn {
		t.report.Foreign++ // the torn line is no longer the last
		t.report.Torn = false
	}
	return err
}

// without removes the previous live file, which finish has read. After compression it is the first new one.
func (t *tail) without(between []fullFile) []fullFile {
	for i, f := range between {
		if info, err := os.Stat(f.path); err == nil && os.SameFile(info, t.info) {
			return slices.Delete(between, i, i+1)
		}
	}
	if len(between) > 0 {
		if _, err := os.Stat(between[0].path); errors.Is(err, fs.ErrNotExist) {
			return between[1:]
		}
	}
	return between
}

const tries = 100 // of open, against rotations

// open opens the live file and lists the full files as of the same time; it tries again after a rotation in between.
func (t *tail) open() (*os.File, []fullFile, error) {
	for range tries {
		before, err := fullFiles(t.path)
		if err != nil {
			return nil, nil, err
		}
		live, err := os.Open(t.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		after, err := fullFiles(t.path)
		if err == nil && slices.Equal(before, after) {
			return live, after, nil
		}
		if err = errors.Join(err, closeIf(live)); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s: the gateway rotates the files faster than they can be listed", t.path)
}

// full skips a missing file, removed because of its age, and reports an unreadable one.
func (t *tail) full(f fullFile) error {
	r, err := openFull(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		t.files++
		var stopped error
		err = t.finish(newScanner(r), func(rec Record, line []byte) error {
			stopped = t.f(rec, line)
			return stopped
		})
		err = errors.Join(err, r.Close())
		if stopped != nil {
			return stopped
		}
	}
	if err != nil {
		t.report.Unreadable = append(t.report.Unreadable, fmt.Errorf("%s: %w", f.path, err))
	}
	return nil
}

func openFull(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	file, err = os.Open(path + gzSuffix)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, file}, nil
}

package audit

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/config/setting"
)

// FileOptions configure a [File].
type FileOptions struct {
	Path     string
	MaxBytes int64
	// Keep is the number of full files to keep. Zero means setting.AuditFiles, a negative number all.
	Keep int
	// MaxAge is how long to keep full files; zero means for ever. A new file then begins every day, or MaxAge.
	MaxAge time.Duration
	Logger *slog.Logger
}

const (
	defaultMaxBytes = setting.AuditFileMB << 20
	// stampLayout is the time in the name of a full file, in UTC.
	stampLayout = "2006-01-02T15-04-05.000"
	gzSuffix    = ".gz"
	day         = 24 * time.Hour
)

// File writes JSON lines to a live file, for the owner only, and rotates it, keeping mode, owner and group. A full
// file's name has the UTC time of its end ("audit-2026-11-20T10-00-00.000.jsonl"); an operator may compress it, to
// ".gz", or move the live file. Only one File may write to a path. Safe for concurrent use.
type File struct {
	// Fixed after OpenFile.
	o       FileOptions
	closing chan struct{} // closed by Close: ends keepTime
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the following fields
	log     *os.File   // the live file; nil if it could not be opened
	closed  bool
	size    int64       // of the live file, in bytes
	begun   time.Time   // of the live file's first record
	live    fs.FileInfo // of the live file
	rotated time.Time   // of the last rotation
	moaned  time.Time   // of the last log line about a failure
}

// OpenFile opens or creates the file. Its error wraps [ErrPath] and the cause.
func OpenFile(o FileOptions) (*File, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	o.Keep = cmp.Or(o.Keep, setting.AuditFiles)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Path == "" {
		return nil, fmt.Errorf("audit: %w: its path is empty", ErrPath)
	}
	f := &File{o: o, closing: make(chan struct{})}
	if err := f.prepare(); err != nil {
		return nil, fmt.Errorf("audit: %w: %w", ErrPath, err)
	}
	if o.MaxAge > 0 {
		f.tidy(time.Now())
		f.wg.Go(f.keepTime)
	}
	return f, nil
}

// prepare opens the live file, reads its size and age, and ends a torn line. The caller must hold mu, except in
// OpenFile.
func (f *File) prepare() error {
	if err := os.MkdirAll(filepath.Dir(f.o.Path), 0o700); err != nil {
		return err
	}
	// A rotation would rename a device.
	if info, err := os.Stat(f.o.Path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file (use %s for standard output)", f.o.Path, StdoutPath)
	}
	file, err := os.OpenFile(f.o.Path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := f.look(file); err != nil {
		return errors.Join(err, file.Close())
	}
	f.log = file
	return nil
}

func (f *File) look(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.size, f.begun, f.live = info.Size(), time.Now(), info
	if f.size == 0 {
		return nil
	}
	f.begun = info.ModTime()
	// The time of the first record is more precise: the file may have changed long after its start.
	if line, err := bufio.NewReaderSize(file, MaxLine).ReadSlice('\n'); err == nil {
		if r, err := ParseLine(line); err == nil {
			f.begun = r.Time
		}
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], f.size-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		n, err := file.Write([]byte{'\n'})
		f.size += int64(n)
		return err
	}
	return nil
}

// Write appends whole lines, to a new file if the old one would become too large and can be rotated.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	if err := f.find(); err != nil {
		return 0, err
	}
	if f.size > 0 && f.size+int64(len(p)) > f.o.MaxBytes {
		f.rotate()
	}
	if f.size == 0 {
		f.begun = time.Now()
	}
	n, err := f.log.Write(p)
	f.size += int64(n)
	return n, err
}

func (f *File) find() error {
	info, err := os.Stat(f.o.Path)
	if err == nil && f.log != nil && os.SameFile(info, f.live) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(f.release(), f.prepare())
}

func (f *File) release() error {
	if f.log == nil {
		return nil
	}
	err := f.log.Close()
	f.log = nil
	return err
}

// rotate begins a new file, at most one in a millisecond: full files need different names.
func (f *File) rotate() {
	now := time.Now()
	if now.UTC().Format(stampLayout) <= f.rotated.UTC().Format(stampLayout) {
		return
	}
	ext := filepath.Ext(f.o.Path)
	full := strings.TrimSuffix(f.o.Path, ext) + "-" + now.UTC().Format(stampLayout) + ext
	f.rotated = now
	if err := os.Rename(f.o.Path, full); err != nil {
		f.moan("cannot rotate the audit file; it grows", err)
		return
	}
	before := f.live
	if err := errors.Join(f.release(), f.prepare(), f.inherit(before)); err != nil {
		f.moan("cannot start a new audit file", err)
	}
	f.prune(func(all []fullFile) []fullFile {
		if f.o.Keep < 0 {
			return nil
		}
		return all[:max(len(all)-f.o.Keep, 0)]
	})
}

func (f *File) inherit(before fs.FileInfo) error {
	if f.log == nil {
		return nil
	}
	return errors.Join(f.log.Chmod(before.Mode().Perm()), chown(f.log, before))
}

// prune removes the full files, compressed or not, that surplus selects.
func (f *File) prune(surplus func(all []fullFile) []fullFile) {
	all, err := fullFiles(f.o.Path)
	if err != nil {
		f.moan("cannot list old audit files", err)
		return
	}
	for _, name := range surplus(all) {
		for _, path := range []string{name.path, name.path + gzSuffix} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				f.moan("cannot remove an old audit file", err)
			}
		}
	}
}

func (f *File) moan(message string, err error) {
	if time.Since(f.moaned) < 5*time.Minute {
		return
	}
	f.moaned = time.Now()
	f.o.Logger.Error(message, slog.String("path", f.o.Path), slog.Any("error", err))
}

// keepTime begins and removes files when they are due, even without Write. Close waits for it.
func (f *File) keepTime() {
	tick := time.NewTicker(max(min(f.span()/8, time.Hour), time.Second))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			f.mu.Lock()
			if !f.closed {
				f.tidy(now)
			}
			f.mu.Unlock()
		case <-f.closing:
			return
		}
	}
}

func (f *File) span() time.Duration { return min(f.o.MaxAge, day) }

func (f *File) tidy(now time.Time) {
	if f.size > 0 && now.Sub(f.begun) >= f.span() {
		f.rotate()
	}
	f.prune(func(all []fullFile) []fullFile {
		return slices.DeleteFunc(all, func(name fullFile) bool { return now.Sub(name.ended) < f.o.MaxAge })
	})
}

// Close closes the live file.
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	close(f.closing)
	err := f.release()
	f.mu.Unlock()
	f.wg.Wait()
	return err
}

type fullFile struct {
	path  string // without .gz: an operator may compress the file at any time
	ended time.Time
}

// fullFiles returns the full files of a live file, oldest first; none if their folder is missing.
func fullFiles(path string) ([]fullFile, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	var full []fullFile
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), gzSuffix)
		stamp, isOurs := strings.CutPrefix(name, prefix)
		stamp, hasExt := strings.CutSuffix(stamp, ext)
		if !isOurs || !hasExt || e.IsDir() {
			continue
		}
		ended, err := time.Parse(stampLayout, stamp)
		if err != nil {
			continue // another program's
		}
		full = append(full, fullFile{filepath.Join(filepath.Dir(path), name), ended})
	}
	slices.SortFunc(full, func(a, b fullFile) int { return a.ended.Compare(b.ended) })
	// During compression a file exists twice.
	return slices.Compact(full), nil
}

// StdoutPath means standard output, or input.
const StdoutPath = "-"

// Stdout returns a writer to w for [Options]. Its Close does not close w.
func Stdout(w io.Writer) io.WriteCloser { return keptOpen{w} }

type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

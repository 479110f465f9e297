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

// FileOptions say where a [File] is and when the next one begins.
type FileOptions struct {
	// Path of the live file. Its folder is created if it is missing. Required.
	Path string
	// MaxBytes is the size at which a new file begins. Zero means defaults.AuditFileMB.
	MaxBytes int64
	// Keep is how many full files are kept. Zero means defaults.AuditFiles, a negative number all.
	Keep int
	// MaxAge is how long full files are kept. If it is set, a new file begins every day, or
	// after MaxAge if that is shorter, so that a record is removed at most that much later.
	// Zero means for ever.
	MaxAge time.Duration
	// Logger gets a line when a new file cannot be begun, or an old one cannot be removed. Nil
	// means no logging.
	Logger *slog.Logger
}

const (
	defaultMaxBytes = setting.AuditFileMB << 20
	// stampLayout is the time in the name of a full file, in UTC.
	stampLayout = "2006-01-02T15-04-05.000"
	gzSuffix    = ".gz"
	day         = 24 * time.Hour
)

// File is JSON lines that rotate: the live file has the name it was given, and a full one has
// the UTC time of its end in its name ("audit-2026-11-20T10-00-00.000.jsonl"; somebody may
// compress it later, to ".gz"). Only the owner can read new files; an existing file keeps its
// mode, and hands its mode, owner and group on to the next one. If somebody moves or removes
// the live file, a new one is begun. Only one File, of one process, may write to a path. Its
// methods may be used concurrently.
type File struct {
	// Fixed after OpenFile.
	o       FileOptions
	closing chan struct{} // closed by Close: ends keepTime
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the following fields
	log     *os.File   // the live file; nil where none could be opened
	closed  bool
	size    int64       // of the live file, in bytes
	begun   time.Time   // of the live file's first record
	live    fs.FileInfo // of the live file
	rotated time.Time   // the earliest time at which the last file was begun
	moaned  time.Time   // when a failure was last logged
}

// OpenFile opens the file, or creates it. Its error is [ErrPath] and says what is wrong with
// the path.
func OpenFile(o FileOptions) (*File, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	o.Keep = cmp.Or(o.Keep, setting.AuditFiles)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Path == "" {
		return nil, fmt.Errorf("audit: %w: it has no name", ErrPath)
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

// prepare opens the live file, which it creates if it is missing, reads its size and age, and
// ends a line that a crash has torn. The caller holds mu, or is alone.
func (f *File) prepare() error {
	if err := os.MkdirAll(filepath.Dir(f.o.Path), 0o700); err != nil {
		return err
	}
	// A device would be renamed once it is full.
	if info, err := os.Stat(f.o.Path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%s is standard output)", f.o.Path, StdoutPath)
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
	// The first line is more precise: the file was changed long after it was begun.
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

// Write appends p, which must be whole lines, to the live file, or to a new one if the live
// file would become too large. If no new file can be begun, the old one is used further.
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

// find notices that the live file was moved or removed, and begins a new one.
func (f *File) find() error {
	info, err := os.Stat(f.o.Path)
	if err == nil && f.log != nil && os.SameFile(info, f.live) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Everything written to the old file is complete: only the descriptor is closed.
	return errors.Join(f.release(), f.prepare())
}

// release closes the live file.
func (f *File) release() error {
	if f.log == nil {
		return nil
	}
	err := f.log.Close()
	f.log = nil
	return err
}

// rotate begins a new file. Two full files of the same millisecond would have the same name, and
// the second would replace the first: then the old file is used further.
func (f *File) rotate() {
	now := time.Now()
	if now.UTC().Format(stampLayout) <= f.rotated.UTC().Format(stampLayout) {
		return
	}
	ext := filepath.Ext(f.o.Path)
	full := strings.TrimSuffix(f.o.Path, ext) + "-" + now.UTC().Format(stampLayout) + ext
	f.rotated = now
	if err := os.Rename(f.o.Path, full); err != nil {
		f.moan("the audit file cannot be rotated and grows", err)
		return
	}
	before := f.live
	if err := errors.Join(f.release(), f.prepare(), f.inherit(before)); err != nil {
		f.moan("the audit file cannot be begun anew", err)
	}
	f.removeSurplus()
}

// inherit gives a new live file the mode, the owner and the group of the one before.
func (f *File) inherit(before fs.FileInfo) error {
	if f.log == nil {
		return nil
	}
	return errors.Join(f.log.Chmod(before.Mode().Perm()), chown(f.log, before))
}

// removeSurplus removes the oldest full files beyond those that are kept.
func (f *File) removeSurplus() {
	full, err := fullFiles(f.o.Path)
	if err != nil {
		f.moan("old audit files cannot be found", err)
		return
	}
	if f.o.Keep > 0 && len(full) > f.o.Keep {
		f.remove(full[:len(full)-f.o.Keep])
	}
}

// remove removes full files, compressed or not.
func (f *File) remove(full []fullFile) {
	for _, name := range full {
		for _, path := range []string{name.path, name.path + gzSuffix} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				f.moan("an old audit file cannot be removed", err)
			}
		}
	}
}

// moan logs a failure, at most every five minutes.
func (f *File) moan(message string, err error) {
	if time.Since(f.moaned) < 5*time.Minute {
		return
	}
	f.moaned = time.Now()
	f.o.Logger.Error(message, slog.String("path", f.o.Path), slog.Any("error", err))
}

// keepTime begins new files and removes old ones when they are due, whether anything is written
// or not. Close ends it and waits for it.
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

// span is how much time one file may hold.
func (f *File) span() time.Duration { return min(f.o.MaxAge, day) }

// tidy begins a new file if the live one is too old, and removes full files that are too old.
func (f *File) tidy(now time.Time) {
	if f.size > 0 && now.Sub(f.begun) >= f.span() {
		f.rotate()
	}
	full, err := fullFiles(f.o.Path)
	if err != nil {
		f.moan("old audit files cannot be found", err)
		return
	}
	f.remove(slices.DeleteFunc(full, func(name fullFile) bool { return now.Sub(name.ended) < f.o.MaxAge }))
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

// fullFile is a file that has been rotated away.
type fullFile struct {
	path  string // without .gz, which it may get at any time
	ended time.Time
}

// fullFiles lists the full files that belong to a live one, the oldest first.
func fullFiles(path string) ([]fullFile, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
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
			continue // somebody else's
		}
		full = append(full, fullFile{filepath.Join(filepath.Dir(path), name), ended})
	}
	slices.SortFunc(full, func(a, b fullFile) int { return a.ended.Compare(b.ended) })
	// A file that is being compressed exists twice.
	return slices.Compact(full), nil
}

// StdoutPath is the path that stands for standard output, or input.
const StdoutPath = "-"

// Stdout turns the process's standard output into a writer for [Options] whose Close does not
// close it.
func Stdout(w io.Writer) io.WriteCloser { return keptOpen{w} }

type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

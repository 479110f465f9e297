package audit

import (
	"bufio"
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

	"gopkg.in/natefinch/lumberjack.v2"
)

// FileOptions say where a [File] is and when the next one begins.
type FileOptions struct {
	// Path of the live file. Its folder is created if it is missing. Required.
	Path string
	// MaxBytes is the size at which a new file begins. Zero means 100 MiB.
	MaxBytes int64
	// Keep is how many full files are kept. Zero means 10, a negative number all.
	Keep int
	// MaxAge is how long full files are kept. If it is set, a new file begins every day, or
	// after MaxAge if that is shorter, so that a record is removed at most that much later.
	// Zero means for ever.
	MaxAge time.Duration
	// Compress says that full files are compressed with gzip.
	Compress bool
	// Logger gets a line when a new file cannot be begun, or an old one cannot be removed. Nil
	// means no logging.
	Logger *slog.Logger
}

const (
	defaultMaxBytes = 100 << 20
	defaultKeep     = 10
	// stampLayout is the time in the name of a full file, in UTC, as lumberjack writes it.
	stampLayout = "2006-01-02T15-04-05.000"
	gzSuffix    = ".gz"
	day         = 24 * time.Hour
)

// File is JSON lines that rotate: the live file has the name it was given, and a full one has
// the UTC time of its end in its name ("audit-2026-11-20T10-00-00.000.jsonl", with ".gz" if
// compressed). Only the owner can read new files; an existing file keeps its mode. If somebody
// moves or removes the live file, a new one is begun. Only one File, of one process, may write
// to a path. Its methods may be used concurrently.
//
// lumberjack's goroutine, which compresses and removes files, cannot be ended: it is idle after
// Close. A program opens one File and keeps it.
type File struct {
	// Fixed after OpenFile.
	o       FileOptions
	closing chan struct{} // closed by Close: ends keepTime
	wg      sync.WaitGroup

	mu      sync.Mutex // guards the following fields
	log     *lumberjack.Logger
	closed  bool
	size    int64       // of the live file, in bytes
	begun   time.Time   // of the live file's first record
	live    fs.FileInfo // the file at path when it was last written to; nil before
	rotated time.Time   // the earliest time at which the last file was begun
	moaned  time.Time   // when a failure was last logged
}

// OpenFile opens the file, or creates it. Its error is [ErrPath] and says what is wrong with
// the path.
func OpenFile(o FileOptions) (*File, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	switch {
	case o.Keep == 0:
		o.Keep = defaultKeep
	case o.Keep < 0:
		o.Keep = 0 // lumberjack's word for all
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Path == "" {
		return nil, fmt.Errorf("audit: %w: it has no name", ErrPath)
	}
	f := &File{o: o, closing: make(chan struct{}), log: &lumberjack.Logger{
		Filename: o.Path, MaxBackups: o.Keep, Compress: o.Compress,
		MaxSize: 1 << 30, // MiB: a File rotates by itself, to the byte
	}}
	if err := f.prepare(); err != nil {
		return nil, fmt.Errorf("audit: %w: %w", ErrPath, err)
	}
	if o.MaxAge > 0 {
		f.tidy(time.Now())
		f.wg.Go(f.keepTime)
	}
	return f, nil
}

// prepare creates the live file if it is missing, reads its size and age, and ends a line that
// a crash has torn. The caller holds mu, or is alone.
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
	err = f.look(file)
	return errors.Join(err, file.Close())
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
		f.rotate(time.Now())
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
	if err == nil && os.SameFile(info, f.live) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Everything written to the old file is complete: only the descriptor is closed.
	return errors.Join(f.log.Close(), f.prepare())
}

// rotate begins a new file. Two full files of the same millisecond would have the same name, and
// the second would replace the first: then the old file is used further.
func (f *File) rotate(now time.Time) {
	if now.UTC().Format(stampLayout) <= f.rotated.UTC().Format(stampLayout) {
		return
	}
	err := f.log.Rotate()
	f.rotated = time.Now()
	if err != nil {
		f.moan("the audit file cannot be rotated and grows", err)
	}
	if err := f.prepare(); err != nil {
		f.moan("the audit file cannot be looked at", err)
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
		f.rotate(now)
	}
	full, err := fullFiles(f.o.Path)
	if err != nil {
		f.moan("old audit files cannot be found", err)
		return
	}
	for _, name := range full {
		if now.Sub(name.ended) < f.o.MaxAge {
			continue
		}
		for _, path := range []string{name.path, name.path + gzSuffix} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				f.moan("an old audit file cannot be removed", err)
			}
		}
	}
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
	err := f.log.Close()
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

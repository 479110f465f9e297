package image

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
	"voicegw/internal/logging"
)

// FilesOptions configure Files.
type FilesOptions struct {
	Dir  string        // the folder. OpenFiles creates it. Several processes may share it.
	Life time.Duration // the time until an image expires. Zero means setting.ImageLife.
	// MaxCount and MaxBytes bound the stored images; Files removes the oldest ones. Zero means setting.Images and
	// setting.ImageMB.
	MaxCount int
	MaxBytes int64
	Logger   *slog.Logger // may be nil
}

// Files keeps images as files in a folder. It has no state in memory, so images survive a restart, and processes that
// share the folder share the images. A file's name is the hash of the image's secret, so a list of the folder does not
// reveal the addresses. It may be used concurrently.
type Files struct {
	// Fixed after OpenFiles.
	opts FilesOptions
	stop context.CancelFunc
	done sync.WaitGroup // sweepAll

	mu     sync.Mutex // guards the following field and removals
	closed bool
}

// The extensions of files: an image, an incomplete image, and the mark of a removed image.
const (
	kept    = ".image"
	partial = ".partial"
	gone    = ".gone"
)

const (
	secretBytes = 32 // 256 bits
	sweepEvery  = time.Minute
	rememberFor = 7 * 24 * time.Hour // bounds the age of a removed image's mark, maxGone the number of marks
	maxGone     = 10_000
	maxPartial  = time.Hour // bounds the age of an incomplete image
	maxHead     = 4 << 10
)

// head is the first line of an image's file, in JSON. The image follows.
type head struct {
	Type    string    `json:"type"`
	Width   int       `json:"width"`
	Height  int       `json:"height"`
	Bytes   int64     `json:"bytes"`
	Expires time.Time `json:"expires"`
}

// OpenFiles opens the folder and starts to remove expired images. The caller must close the Files.
func OpenFiles(o FilesOptions) (*Files, error) {
	if o.Dir == "" {
		return nil, errors.New("image: FilesOptions.Dir is empty")
	}
	o.Life, o.MaxCount = cmp.Or(o.Life, setting.ImageLife), cmp.Or(o.MaxCount, setting.Images)
	o.MaxBytes = cmp.Or(o.MaxBytes, setting.ImageMB<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("image: creating the folder: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Files{opts: o, stop: stop}
	f.done.Go(func() { f.sweepAll(ctx) })
	return f, nil
}

// Close stops the removal of expired images. It may be called more than once.
func (f *Files) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.done.Wait()
	return nil
}

func (f *Files) path(id, kind string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(f.opts.Dir, hex.EncodeToString(sum[:])+kind)
}

// Keep implements Store. It removes the oldest images if there is no room.
func (f *Files) Keep(ctx context.Context, data []byte, info Info) (id string, expires time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return "", time.Time{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return "", time.Time{}, ErrClosed
	}
	if int64(len(data)) > f.opts.MaxBytes {
		return "", time.Time{}, fmt.Errorf("%w: %d bytes; the folder may have %d", ErrSize, len(data), f.opts.MaxBytes)
	}
	if err := f.makeRoom(int64(len(data))); err != nil {
		return "", time.Time{}, err
	}
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	id = base64.RawURLEncoding.EncodeToString(secret)
	logging.Made(logging.Image, id)
	expires = time.Now().Add(f.opts.Life).UTC().Truncate(time.Millisecond)
	first, err := json.Marshal(head{info.Type, info.Width, info.Height, int64(len(data)), expires})
	if err != nil {
		return "", time.Time{}, err
	}
	if err := f.write(id, append(first, '\n'), data); err != nil {
		return "", time.Time{}, err
	}
	return id, expires, nil
}

// write writes a file under a temporary name and renames it, so that it appears complete or not at all.
func (f *Files) write(id string, parts ...[]byte) (err error) {
	name := f.path(id, partial)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(name)))
		}
	}()
	for _, part := range parts {
		if _, err := file.Write(part); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(name, f.path(id, kept))
}

// Image is a stored image, open for reading.
type Image struct {
	Info
	Size      int64
	ExpiresAt time.Time
	*io.SectionReader
	file *os.File
}

// Close closes the image.
func (i *Image) Close() error { return i.file.Close() }

// Open opens an image by its name. The caller must close it. The error is ErrUnknown, ErrExpired or that of the folder.
func (f *Files) Open(id string) (*Image, error) {
	if b, err := base64.RawURLEncoding.DecodeString(id); err != nil || len(b) != secretBytes {
		return nil, ErrUnknown
	}
	file, err := os.Open(f.path(id, kept))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(f.path(id, gone)); err == nil {
			return nil, ErrExpired
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	h, at, err := readHead(file)
	if err == nil && !time.Now().Before(h.Expires) {
		err = ErrExpired
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Image{
		Info: Info{h.Type, h.Width, h.Height}, Size: h.Bytes, ExpiresAt: h.Expires,
		SectionReader: io.NewSectionReader(file, at, h.Bytes), file: file,
	}, nil
}

// readHead reads and checks the head of an image's file. at is the offset of the image.
func readHead(file *os.File) (h head, at int64, err error) {
	line, err := bufio.NewReaderSize(io.LimitReader(file, maxHead), maxHead).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return h, 0, fmt.Errorf("image: %s is broken: %w", filepath.Base(file.Name()), err)
	}
	info, err := file.Stat()
	if err != nil {
		return h, 0, err
	}
	at = int64(len(line))
	if known := h.Type == TypePNG || h.Type == TypeJPEG || h.Type == TypeWebP; !known || h.Bytes < 0 || info.Size() != at+h.Bytes {
		return h, 0, fmt.Errorf("image: %s is broken: it has %d bytes and a head of %d for %d", filepath.Base(file.Name()),
			info.Size(), at, h.Bytes)
	}
	return h, at, nil
}

type entry struct {
	name     string // without its extension
	kind     string
	size     int64
	modified time.Time
}

func (f *Files) list() ([]entry, error) {
	files, err := os.ReadDir(f.opts.Dir)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, file := range files {
		name, kind := strings.TrimSuffix(file.Name(), filepath.Ext(file.Name())), filepath.Ext(file.Name())
		if len(name) != 2*sha256.Size || kind != kept && kind != partial && kind != gone {
			continue
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has removed it
		}
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, kind, info.Size(), info.ModTime()})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.modified.Compare(b.modified) })
	return all, nil
}

// makeRoom removes the oldest images until another one fits. mu is held.
func (f *Files) makeRoom(size int64) error {
	all, err := f.list()
	if err != nil {
		return err
	}
	count, bytes := 0, size
	for _, e := range all {
		if e.kind == kept {
			count, bytes = count+1, bytes+e.size
		}
	}
	for _, e := range all {
		if count < f.opts.MaxCount && bytes <= f.opts.MaxBytes {
			return nil
		}
		if e.kind != kept {
			continue
		}
		if err := f.forget(e.name); err != nil {
			return err
		}
		count, bytes = count-1, bytes-e.size
	}
	return nil
}

// forget removes an image and leaves a mark.
func (f *Files) forget(name string) error {
	path := filepath.Join(f.opts.Dir, name)
	if err := os.WriteFile(path+gone, nil, 0o600); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(path + kept))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *Files) sweepAll(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := f.sweep(time.Now()); err != nil {
			f.opts.Logger.Error("removing old images failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep removes expired images, old marks and old incomplete images.
func (f *Files) sweep(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.list()
	if err != nil {
		return err
	}
	marks := 0
	for _, e := range all {
		if e.kind == gone {
			marks++
		}
	}
	var problems []error
	for _, e := range all {
		path := filepath.Join(f.opts.Dir, e.name+e.kind)
		switch age := now.Sub(e.modified); {
		case e.kind == kept && f.expired(path, now):
			problems = append(problems, f.forget(e.name))
		case e.kind == gone && (age > rememberFor || marks > maxGone):
			marks--
			problems = append(problems, ignoreMissing(os.Remove(path)))
		case e.kind == partial && age > maxPartial:
			problems = append(problems, ignoreMissing(os.Remove(path)))
		}
	}
	return errors.Join(problems...)
}

func (f *Files) expired(path string, now time.Time) bool {
	file, err := os.Open(path)
	if err != nil {
		return false // just removed, or an error that may pass
	}
	defer func() { _ = file.Close() }() // only read
	h, _, err := readHead(file)
	return err != nil || !now.Before(h.Expires)
}

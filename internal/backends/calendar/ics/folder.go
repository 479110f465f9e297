package ics

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"voicegw/internal/backends/calendar"
)

// Limits of one calendar: the number of its files and their bytes.
const (
	maxFolderFiles = 10_000
	maxFolderBytes = 64 << 20
)

// FolderOptions configure a Folder.
type FolderOptions struct {
	Dir string // contains a folder for each calendar. The first event creates it. Empty means no calendars.
	// Calendars are the folders' names, without separators, if they differ from the calendars' names.
	Calendars map[calendar.Name]string
	Zone      *time.Location // for days and for times without a zone; nil means UTC
	Email     string         // the owner's
}

// Folder is a [calendar.Calendar] with a folder for each calendar and an iCalendar file for each event. Other programs
// can read and write the files: it reads every file that ends in ".ics". It sends no invitations.
type Folder struct {
	// Fixed after NewFolder.
	dir    string
	names  map[calendar.Name]string
	reader reader
}

var errName = errors.New("ics: a calendar's folder must be a name without separators")

// NewFolder makes a Folder. It does not read or write files.
func NewFolder(o FolderOptions) (*Folder, error) {
	f := &Folder{dir: o.Dir, names: map[calendar.Name]string{}, reader: reader{Zone: o.Zone, Email: o.Email}}
	for _, name := range calendar.Names() {
		f.names[name] = string(name)
		if other := o.Calendars[name]; other != "" {
			if other != filepath.Base(other) || !filepath.IsLocal(other) || other == "." {
				return nil, fmt.Errorf("%w: %q", errName, other)
			}
			f.names[name] = other
		}
	}
	return f, nil
}

// Busy implements [calendar.Calendar]. A calendar without a folder is empty.
func (f *Folder) Busy(ctx context.Context, q calendar.Query) (calendar.Found, error) {
	root, err := f.open(q.Calendar)
	if root == nil {
		return calendar.Found{}, err
	}
	defer root.Close() //nolint:errcheck // only read
	files, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return calendar.Found{}, unreadable(err)
	}
	var found calendar.Found
	read, budget := 0, int64(maxFolderBytes)
	for _, file := range files {
		if ctx.Err() != nil {
			return calendar.Found{}, ctx.Err()
		}
		if !file.Type().IsRegular() || !strings.EqualFold(filepath.Ext(file.Name()), ".ics") {
			continue
		}
		if read++; read > maxFolderFiles {
			return calendar.Found{}, calendar.Errorf(calendar.Permanent, nil, "The calendar has too many files.")
		}
		data, err := readAll(root, file.Name(), min(budget, maxBytes))
		var one calendar.Found
		if err == nil {
			budget -= int64(len(data))
			one, err = f.reader.Busy(ctx, data, q.From, q.To)
		}
		if ctx.Err() != nil {
			return calendar.Found{}, ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since ReadDir
		}
		if err != nil {
			found.Unread = append(found.Unread, calendar.Unread{ID: file.Name(), Err: err})
			continue
		}
		found.Events = append(found.Events, one.Events...)
		found.Unread = append(found.Unread, one.Unread...)
		if len(found.Events)+len(found.Unread) > maxEvents {
			return calendar.Found{}, calendar.TooLarge(errTooMany)
		}
	}
	return found, nil
}

// open opens a calendar's folder; nil without an error if it does not exist.
func (f *Folder) open(name calendar.Name) (*os.Root, error) {
	folder, ok := f.names[name]
	if !ok || f.dir == "" {
		return nil, calendar.NoCalendar(name)
	}
	root, err := os.OpenRoot(filepath.Join(f.dir, folder))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, unreadable(err)
	}
	return root, nil
}

func readAll(root *os.Root, name string, limit int64) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooBig
	}
	return data, err
}

// Create implements [calendar.Calendar]. When it returns, the event is on the disk completely or not at all, even if
// others create it concurrently.
func (f *Folder) Create(ctx context.Context, d calendar.Draft) (calendar.Event, bool, error) {
	data, err := write(d, f.reader.Email)
	if err != nil {
		return calendar.Event{}, false, err
	}
	if ctx.Err() != nil {
		return calendar.Event{}, false, ctx.Err()
	}
	if f.dir == "" {
		return calendar.Event{}, false, calendar.NoCalendar(calendar.Primary)
	}
	dir := filepath.Join(f.dir, f.names[calendar.Primary])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return calendar.Event{}, false, unwritable(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return calendar.Event{}, false, unwritable(err)
	}
	defer root.Close() //nolint:errcheck // the file has been closed
	name := d.Key + ".ics"
	created, err := writeOnce(root, name, data)
	if err != nil {
		e := unwritable(err)
		e.Unsure = created && e.Kind == calendar.Transient
		return calendar.Event{}, false, e
	}
	if !created {
		if data, err = readAll(root, name, maxBytes); err != nil {
			return calendar.Event{}, false, unreadable(err)
		}
	}
	e, err := f.event(data)
	return e, created && err == nil, err
}

// Find implements [calendar.Calendar].
func (f *Folder) Find(ctx context.Context, key string) (calendar.Event, bool, error) {
	if ctx.Err() != nil {
		return calendar.Event{}, false, ctx.Err()
	}
	root, err := f.open(calendar.Primary)
	if root == nil {
		return calendar.Event{}, false, err
	}
	defer root.Close() //nolint:errcheck // only read
	data, err := readAll(root, key+".ics", maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return calendar.Event{}, false, nil
	}
	if err != nil {
		return calendar.Event{}, false, unreadable(err)
	}
	e, err := f.event(data)
	return e, err == nil, err
}

func (f *Folder) event(data []byte) (calendar.Event, error) {
	e, err := f.reader.First(data, calendar.InvitationsNotSent)
	if err != nil {
		return calendar.Event{}, calendar.Errorf(calendar.Conflict, err, calendar.Occupied)
	}
	return e, nil
}

// writeOnce writes a file unless it exists, and reports whether it did. It writes a temporary file and links it, so the
// file appears complete.
func writeOnce(root *os.Root, name string, data []byte) (created bool, err error) {
	if _, err := root.Lstat(name); err == nil {
		return false, nil
	}
	temporary := "." + name + "." + rand.Text() + ".tmp"
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() {
		if gone := root.Remove(temporary); gone != nil {
			err = errors.Join(err, gone)
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return false, err
	}
	err = root.Link(temporary, name)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(root)
}

func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only opened
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) {
		return err
	}
	return nil
}

func unreadable(err error) *calendar.Error {
	return calendar.Errorf(kindOf(err), err, "The calendar's folder cannot be read.")
}

func unwritable(err error) *calendar.Error {
	return calendar.Errorf(kindOf(err), err, "The event cannot be written to the calendar's folder.")
}

// kindOf returns Permanent for an error that the operator must fix.
func kindOf(err error) calendar.Kind {
	if errors.Is(err, fs.ErrPermission) {
		return calendar.Permanent
	}
	return calendar.Transient
}

package ics

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

func openFolder(t *testing.T, o FolderOptions) *Folder {
	t.Helper()
	f, err := NewFolder(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSuite(t *testing.T) {
	calendartest.Suite(t, func(t *testing.T) calendar.Calendar {
		return openFolder(t, FolderOptions{Dir: filepath.Join(t.TempDir(), "calendar"), Email: "ada@example.com"})
	})
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func eventFile(uid, start string) string {
	return "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:" + uid + "\nDTSTART:" + start + "\nDURATION:PT1H\nEND:VEVENT\nEND:VCALENDAR\n"
}

// TestForeignFiles: every .ics file counts, a bad one is named, and other files, or links out of the folder, are
// ignored.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "team", "a.ics"), eventFile("a", "20300506T090000Z"))
	put(t, filepath.Join(dir, "team", "B.ICS"), eventFile("b1", "20300506T100000Z")+eventFile("b2", "20300506T110000Z"))
	put(t, filepath.Join(dir, "team", "bad.ics"), "hello")
	put(t, filepath.Join(dir, "team", "notes.txt"), eventFile("c", "20300506T120000Z"))
	put(t, filepath.Join(dir, "team", "folder.ics", "d.ics"), eventFile("d", "20300506T120000Z"))
	put(t, filepath.Join(dir, "outside.ics"), eventFile("e", "20300506T120000Z"))
	if err := os.Symlink(filepath.Join(dir, "outside.ics"), filepath.Join(dir, "team", "link.ics")); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2030, 5, 6, 0, 0, 0, 0, time.UTC)
	found, err := openFolder(t, FolderOptions{Dir: dir}).Busy(t.Context(), calendar.Query{Calendar: calendar.Team, From: from, To: from.AddDate(0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var ids, unread []string
	for _, e := range found.Events {
		ids = append(ids, e.ID)
	}
	for _, u := range found.Unread {
		unread = append(unread, u.ID)
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]string{"a", "b1", "b2"}, ids); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bad.ics"}, unread); diff != "" {
		t.Error(diff)
	}
}

// TestEventFile: the event is a file that only its owner may read, and no partial file remains.
func TestEventFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calendar")
	d := calendartest.Draft("Tea", 1)
	for range 3 {
		if _, _, err := openFolder(t, FolderOptions{Dir: dir, Calendars: map[calendar.Name]string{calendar.Primary: "mine"}}).Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, "mine"))
	if err != nil || len(files) != 1 || files[0].Name() != d.Key+".ics" {
		t.Fatalf("%v %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestConflictingFile: a file with the event's name that is not an event is a conflict, and remains unchanged.
func TestConflictingFile(t *testing.T) {
	dir := t.TempDir()
	d := calendartest.Draft("Tea", 1)
	path := filepath.Join(dir, "primary", d.Key+".ics")
	put(t, path, "not an event")
	if _, _, err := openFolder(t, FolderOptions{Dir: dir}).Create(t.Context(), d); calendar.KindOf(err) != calendar.Conflict {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "not an event" {
		t.Errorf("%q %v", data, err)
	}
}

func TestTooMuch(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "primary", "a.ics"), strings.Repeat("x", maxBytes+1))
	from := time.Date(2030, 5, 6, 0, 0, 0, 0, time.UTC)
	found, err := openFolder(t, FolderOptions{Dir: dir}).Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, From: from, To: from.AddDate(0, 0, 1)})
	if err != nil || len(found.Unread) != 1 {
		t.Errorf("%+v %v", found, err)
	}
}

// TestFailures: a file instead of the folder is not a calendar; the model gets no path.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "primary"), "a file")
	f := openFolder(t, FolderOptions{Dir: dir})
	_, err := f.Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, To: time.Now()})
	_, _, created := f.Create(t.Context(), calendartest.Draft("Tea", 1))
	for _, err := range []error{err, created} {
		e, ok := err.(*calendar.Error)
		if !ok || e.Kind != calendar.Transient || strings.Contains(e.Message, dir) || e.Err == nil {
			t.Errorf("got %v", err)
		}
	}
	for _, name := range []string{"../up", "a/b", "..", ".", "/etc"} {
		if _, err := NewFolder(FolderOptions{Dir: dir, Calendars: map[calendar.Name]string{calendar.Team: name}}); err == nil {
			t.Errorf("%q counts as a folder's name", name)
		}
	}
}

func TestWithoutAFolder(t *testing.T) {
	f := openFolder(t, FolderOptions{})
	if _, err := f.Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, To: time.Now()}); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("busy: %v", err)
	}
	if _, _, err := f.Create(t.Context(), calendartest.Draft("Tea", 1)); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("create: %v", err)
	}
}

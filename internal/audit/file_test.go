package audit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// lineOf is a record's line.
func lineOf(t testing.TB, n int) []byte {
	t.Helper()
	r := call(n)
	r.Time = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Millisecond)
	line, err := marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func openFile(t *testing.T, o FileOptions) *File {
	t.Helper()
	f, err := OpenFile(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f *File, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := f.Write(lineOf(t, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// idsOf reads all files of an audit.
func idsOf(t *testing.T, path string) ([]string, Report) {
	t.Helper()
	var ids []string
	report, err := ReadFiles(t.Context(), path, func(r Record, _ []byte) error {
		ids = append(ids, r.CallID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids, report
}

// nextMS waits until two full files get different names.
func nextMS(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	testutil.WaitUntil(t, "the next ms", func() bool { return time.Now().Truncate(time.Millisecond).After(now) })
}

// compressFull compresses the full files, as a log collector may.
func compressFull(t *testing.T, path string) {
	t.Helper()
	full, err := fullFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range full {
		data, err := os.ReadFile(f.path)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, write := z.Write(data)
		if err := errors.Join(err, write, z.Close(), os.WriteFile(f.path+gzSuffix, b.Bytes(), 0o600), os.Remove(f.path)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRotation: full files and the live one are read in order of time, compressed or not.
func TestRotation(t *testing.T) {
	for _, compress := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "deep", "audit.jsonl")
		f := openFile(t, FileOptions{Path: path, MaxBytes: int64(10 * len(lineOf(t, 100))), Keep: -1})
		for i := range 100 {
			if i%10 == 0 {
				nextMS(t)
			}
			write(t, f, 100+i, 101+i)
		}
		if compress {
			compressFull(t, path)
		}
		names, err := Files(path)
		if err != nil || len(names) != 10 || names[9] != path {
			t.Fatalf("files %v, %v; want nine full ones and the live one", names, err)
		}
		ids, report := idsOf(t, path)
		same(t, "the audit", ids, calls(100, 200))
		if report.Foreign > 0 || report.Torn || len(report.Unreadable) > 0 || report.Records != 100 {
			t.Errorf("%+v", report)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
			}
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder has %v, %v; want mode 0700", info, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Write(lineOf(t, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("a write after Close: %v", err)
		}
	}
}

// TestFilesOfOneMillisecond: a second file of the same millisecond would replace the first.
func TestFilesOfOneMillisecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := openFile(t, FileOptions{Path: path, MaxBytes: 1, Keep: -1})
	write(t, f, 0, 500)
	ids, _ := idsOf(t, path)
	same(t, "the audit", ids, calls(0, 500))
}

// TestKeep: the number of full files is limited.
func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := openFile(t, FileOptions{Path: path, MaxBytes: 1, Keep: 2})
	for i := range 8 {
		nextMS(t)
		write(t, f, i, i+1)
	}
	testutil.WaitUntil(t, "the removal", func() bool { names, err := Files(path); return err == nil && len(names) == 3 })
	ids, _ := idsOf(t, path)
	same(t, "the audit", ids, calls(5, 8))
}

// TestAge: old files are removed, even if nothing is written, and foreign files stay.
func TestAge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	now := time.Now().UTC()
	stamp := func(age time.Duration) string { return now.Add(-age).Format(stampLayout) }
	for _, name := range []string{
		"audit-" + stamp(3*time.Hour) + ".jsonl", "audit-" + stamp(150*time.Minute) + ".jsonl.gz", "audit-" + stamp(time.Hour) + ".jsonl",
		"audit-notes.jsonl", "other-" + stamp(3*time.Hour) + ".jsonl", "audit-" + stamp(3*time.Hour) + ".txt",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), lineOf(t, 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := call(7)
	old.Time = now.Add(-150 * time.Minute)
	line, err := marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, FileOptions{Path: path, MaxAge: 2 * time.Hour})
	names, err := Files(path)
	if err != nil || len(names) != 3 || filepath.Base(names[0]) != "audit-"+stamp(time.Hour)+".jsonl" {
		t.Fatalf("%v, %v: want the file of an hour ago, the one that was live, and a new one", names, err)
	}
	for _, name := range []string{"audit-notes.jsonl", "other-" + stamp(3*time.Hour) + ".jsonl", "audit-" + stamp(3*time.Hour) + ".txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a foreign file was removed: %v", err)
		}
	}
	write(t, f, 8, 9)
	nextMS(t)
	f.mu.Lock()
	f.tidy(time.Now().Add(5 * time.Hour))
	f.mu.Unlock()
	if names, err = Files(path); err != nil || len(names) != 1 {
		t.Errorf("five hours later: %v, %v: want an empty live file alone", names, err)
	}
}

// TestTornEnd: a line left torn by a crash does not damage the next one.
func TestTornEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	torn := append(lineOf(t, 0), lineOf(t, 1)[:20]...)
	if err := os.WriteFile(path, torn, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, report := idsOf(t, path); !report.Torn || report.Records != 1 {
		t.Errorf("before: %+v", report)
	}
	write(t, openFile(t, FileOptions{Path: path}), 2, 4)
	ids, report := idsOf(t, path)
	same(t, "the audit", ids, []string{"0", "2", "3"})
	if report.Foreign != 1 || report.Torn {
		t.Errorf("after: %+v", report)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("an existing file's mode was changed to %v, %v", info.Mode(), err)
	}
}

// TestMovedAway: the live file is moved, removed or replaced by another program.
func TestMovedAway(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	f := openFile(t, FileOptions{Path: path})
	write(t, f, 0, 2)
	if err := os.Rename(path, filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	write(t, f, 2, 4)
	ids, _ := idsOf(t, path)
	same(t, "the new file", ids, calls(2, 4))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, f, 4, 5)
	ids, _ = idsOf(t, path)
	same(t, "the third file", ids, calls(4, 5))
}

// TestUnusablePath: an unusable path is an error at the start.
func TestUnusablePath(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", dir, filepath.Join(plain, "audit.jsonl"), "/dev/null"} {
		if _, err := OpenFile(FileOptions{Path: path}); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v, want ErrPath", path, err)
		}
	}
}

// TestNoRoomForAFile: if no new file can be created, the old one grows.
func TestNoRoomForAFile(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is forbidden to root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	logged := &tape{}
	f := openFile(t, FileOptions{Path: path, MaxBytes: 1, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // a folder that cannot be written to
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	for i := range 5 {
		nextMS(t)
		write(t, f, i, i+1)
	}
	ids, _ := idsOf(t, path)
	same(t, "the audit", ids, calls(0, 5))
	if n := len(logged.with("cannot rotate the audit file")); n != 1 {
		t.Errorf("logged %d times, want once: %q", n, logged.lines)
	}
}

// TestFollowThroughRotations: a follower gets every record once and in order during renames, and readers of all files see
// a consistent audit at any time.
func TestFollowThroughRotations(t *testing.T) {
	const records = 1500
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	followed := make(chan error, 1) // from the follower, once
	caughtUp := make(chan struct{}) // closed by the follower
	go func() {
		_, err := Follow(ctx, path, FollowOptions{Every: time.Millisecond, CaughtUp: func() error { close(caughtUp); return nil }},
			func(r Record, _ []byte) error {
				if ids = append(ids, r.CallID); len(ids) == records {
					cancel()
				}
				return nil
			})
		followed <- err
	}()
	<-caughtUp
	f := openFile(t, FileOptions{Path: path, MaxBytes: 4 << 10, Keep: -1})
	l := New(Options{Lines: f})
	for i := range records {
		l.Write(call(i))
		if i%100 == 0 {
			nextMS(t)
			seen, report := idsOf(t, path)
			same(t, "a reader", seen, calls(0, len(seen)))
			if report.Foreign > 0 || len(report.Unreadable) > 0 {
				t.Errorf("a reader met %+v", report)
			}
		}
	}
	mustClose(t, l)
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case err := <-followed:
		if err != nil {
			t.Error(err)
		}
	case <-limit.C:
		cancel()
		t.Errorf("the follower ends with %v", <-followed)
	}
	same(t, "the follower", ids, calls(0, records))
	names, err := Files(path)
	if err != nil || len(names) < 3 {
		t.Errorf("%d files, %v: nothing was rotated", len(names), err)
	}
}

// TestReadersMeetRotations: a file rotated between listing and opening is neither missed nor read twice. Other files make
// the listing slow.
func TestReadersMeetRotations(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("audit-%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "audit.jsonl")
	f := openFile(t, FileOptions{Path: path, MaxBytes: 1, Keep: -1})
	write(t, f, 0, 1)
	written := make(chan error, 1) // from the writer, once
	go func() {
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for i := 1; i < 150; i++ {
			<-tick.C
			if _, err := f.Write(lineOf(t, i)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for reads := 1; ; reads++ {
		ids, _ := idsOf(t, path)
		same(t, "the audit", ids, calls(0, len(ids)))
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			ids, _ := idsOf(t, path)
			same(t, fmt.Sprintf("the audit after %d reads", reads), ids, calls(0, 150))
			return
		default:
		}
	}
}

// TestFollowTruncated: a truncated file is read from its beginning.
func TestFollowTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, bytes.Join([][]byte{lineOf(t, 0), lineOf(t, 1)}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	tl := newTail(t.Context(), path, nil)
	defer tl.close()
	var ids []string
	tl.f = func(r Record, _ []byte) error { ids = append(ids, r.CallID); return nil }
	for _, content := range [][]byte{nil, lineOf(t, 2)} {
		if content != nil {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := tl.turn(); err != nil {
				t.Fatal(err)
			}
		}
	}
	same(t, "the follower", ids, calls(0, 3))
}

// TestFollowSkipsNoFile: more than one rotation between two polls.
func TestFollowSkipsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := openFile(t, FileOptions{Path: path, Keep: -1})
	var ids []string
	tl := newTail(t.Context(), path, func(r Record, _ []byte) error { ids = append(ids, r.CallID); return nil })
	defer tl.close()
	rotate := func() {
		nextMS(t)
		f.mu.Lock()
		f.rotate()
		f.mu.Unlock()
	}
	write(t, f, 0, 2)
	for i := 2; i < 20; i += 6 {
		if _, err := tl.turn(); err != nil {
			t.Fatal(err)
		}
		write(t, f, i, i+1)
		rotate()
		write(t, f, i+1, i+3)
		rotate()
		write(t, f, i+3, i+6)
	}
	if _, err := tl.turn(); err != nil {
		t.Fatal(err)
	}
	same(t, "the follower", ids, calls(0, 20))
	// Written after the last poll, and rotated before the next.
	write(t, f, 20, 22)
	rotate()
	if _, err := tl.move(); err != nil {
		t.Fatal(err)
	}
	same(t, "the follower", ids, calls(0, 22))
}

// TestBrokenArchive: the readable part is read, and the rest is reported.
func TestBrokenArchive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(filepath.Join(dir, "audit-2026-11-20T10-00-00.000.jsonl.gz"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "audit-2026-11-20T11-00-00.000.jsonl"), append(lineOf(t, 0), `{"event":"to`...), 0o600); err != nil {
		t.Fatal(err)
	}
	ids, report := idsOf(t, path) // without a live file
	same(t, "the audit", ids, []string{"0"})
	if len(report.Unreadable) != 1 || report.Foreign != 1 || report.Torn {
		t.Errorf("%+v", report)
	}
	if _, err := ReadFiles(t.Context(), filepath.Join(dir, "nothing", "audit.jsonl"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without any file: %v", err)
	}
}

// TestStdout: standard output is not closed.
func TestStdout(t *testing.T) {
	p := &place{}
	l := New(Options{Lines: Stdout(p)})
	l.Write(call(0))
	mustClose(t, l)
	if p.closed || !json.Valid(bytes.TrimSpace(p.data.Bytes())) {
		t.Errorf("closed %v, %q", p.closed, p.data.String())
	}
}

// Files lists the files of an audit, oldest records first: the full ones, some of them compressed, then the live one at
// path if it exists. It is empty for a folder that does not exist.
func Files(path string) ([]string, error) {
	full, err := fullFiles(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var names []string
	for _, f := range full {
		name := f.path
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			name += gzSuffix
		}
		names = append(names, name)
	}
	if _, err := os.Stat(path); err == nil {
		names = append(names, path)
	}
	return names, nil
}

// Package witness records, outside the store's streams, which writes were acknowledged, so that a damaged stream is
// never mistaken for a shorter one.
//
// Judge, a pure function, compares the records with the streams. A Journal is the witness on disk: the file "witness"
// with a record of 128 bytes for each acknowledged write, and the file "witness.mark" with the number of records known
// to be on disk. A journal that has grown too long is rewritten as the next generation, with only the claims that still
// hold.
//
// A record reaches the disk after the stream has the write and before the write is acknowledged. So after a process is
// killed, the stream holds every claimed write. Each record has the number of earlier records known to be on disk: an
// error after that point is the torn end of a power loss, an error before it is damage. The mark reveals a truncated
// journal, and its generation an older copy.
package witness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	journalName = "witness"
	nextName    = "witness.new"
	markName    = "witness.mark"
	// roomBytes is how far the file is extended with zeros at once: writes that don't change the file's size are cheaper
	// to sync.
	roomBytes = 256 << 10
	// slack is how many records a generation may grow beyond twice its initial number: 4 MiB.
	slack = 32 << 10
)

// Contents is a witness on disk.
type Contents struct {
	Known
	// ID is the store's, created with its first witness; zero if missing or unreadable.
	ID Key
	// Absent means there is no witness: the store is new, or was written by a version without one.
	Absent bool
	// Doubt is the time until which every key missing from the ledger is in doubt; zero means no doubt.
	Doubt time.Time
	// Latest is the time of the last record. An earlier clock was set back.
	Latest time.Time
	// Notes describe harmless irregularities.
	Notes []string
	// Code identifies this state of the witness; each record changes it.
	Code string

	generation uint64
}

// Read reads the witness in dir without changing it. Damage is not an error; Known.Broken describes it.
func Read(dir string) (Contents, error) {
	mark, markState, err := readMark(filepath.Join(dir, markName))
	if err != nil {
		return Contents{}, err
	}
	file, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		c := Contents{Absent: markState == markAbsent, generation: mark.generation, Code: "none"}
		if !c.Absent {
			c.Broken = fmt.Sprintf("the file %s is missing", filepath.Join(dir, journalName))
		}
		return c, nil
	} else if err != nil {
		return Contents{}, fmt.Errorf("open the witness: %w", err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	j, err := parse(file)
	if err != nil {
		return Contents{}, fmt.Errorf("read the witness %s: %w", file.Name(), err)
	}
	c := Contents{ID: j.header.key, Doubt: instant(j.header.when), Latest: instant(j.latest),
		generation: max(j.generation, mark.generation)}
	c.Code = fmt.Sprintf("%d-%d", j.generation, j.whole)
	c.Streams = j.streams
	for _, claim := range j.claims {
		c.Claims = append(c.Claims, claim)
	}
	c.Broken = j.against(mark, markState, file.Name(), &c.Notes)
	return c, nil
}

// against compares a journal with its mark and describes any damage.
func (j *journal) against(mark record, state markState, path string, notes *[]string) string {
	var marked uint64
	switch {
	case state != markRead:
		*notes = append(*notes, fmt.Sprintf("%s.mark is missing or unreadable; recreating it", path))
	case j.header.kind != 0 && mark.key != j.header.key:
		*notes = append(*notes, fmt.Sprintf("%s.mark belongs to another store; recreating it", path))
	case mark.generation == j.generation:
		marked = mark.number
	case mark.generation > j.generation && j.whole > 0:
		return fmt.Sprintf("%s is an older copy: generation %d instead of %d", path, j.generation, mark.generation)
	case mark.generation+1 < j.generation:
		*notes = append(*notes, fmt.Sprintf("%s.mark is an older copy; recreating it", path))
	}
	if broken := j.broken(marked); broken != "" {
		return path + ": " + broken
	}
	return ""
}

type markState int

const (
	markAbsent markState = iota
	markBroken
	markRead
)

func readMark(path string) (record, markState, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, markAbsent, nil
	} else if err != nil {
		return record{}, markBroken, fmt.Errorf("read the witness's mark: %w", err)
	}
	r, ok := decode(data[:min(len(data), recordSize)])
	if !ok || r.kind != kindMark {
		return record{}, markBroken, nil
	}
	return r, markRead, nil
}

// Base is the initial content of a generation.
type Base struct {
	// ID is the store's. Begin replaces a zero ID by a new one.
	ID      Key
	Claims  []Claim
	Streams map[Bucket]Stream
	Doubt   time.Time
}

// Journal is a witness open for writing. Its methods may be used concurrently.
type Journal struct {
	// Immutable. ID is the store's. Doubt is the time until which every key missing from the ledger is in doubt.
	ID     Key
	Doubt  time.Time
	dir    string
	always bool

	mu     sync.Mutex // guards the following fields
	next   *batch     // waits for the disk; may be nil
	last   map[Bucket]uint64
	failed error // a write error; nothing is accepted until Renew

	running sync.WaitGroup // for commit; incremented while mu is held

	// info describes the written file, for InPlace.
	info atomic.Pointer[os.FileInfo]

	disk sync.Mutex // guards the following fields and writes to the files; locked before mu
	file *os.File
	mark *os.File
	generation, count, settled,
	base uint64
	size int64
}

type batch struct {
	claims []Claim
	done   chan struct{} // closed when err is set
	err    error
}

// Begin writes the generation after what Read returned from dir, and opens it for claims. With always, Add returns only
// when the claims are on disk; otherwise Flush writes them there.
func Begin(dir string, after Contents, base Base, always bool) (*Journal, error) {
	if base.ID == (Key{}) {
		_, _ = rand.Read(base.ID[:]) // never fails
	}
	j := &Journal{dir: dir, ID: base.ID, Doubt: base.Doubt, always: always, last: map[Bucket]uint64{}, generation: after.generation}
	j.disk.Lock()
	defer j.disk.Unlock()
	if err := j.write(base); err != nil {
		return nil, errors.Join(fmt.Errorf("write the witness in %s: %w", dir, err), j.closeFiles())
	}
	return j, nil
}

// Add records claims, even if ctx ends first. Concurrent claims share a sync. After an error the claims may be recorded
// or not, and every Add fails until Renew.
func (j *Journal) Add(ctx context.Context, claims ...Claim) error {
	j.mu.Lock()
	if j.failed != nil {
		defer j.mu.Unlock()
		return j.failed
	}
	b := j.next
	if b == nil {
		b = &batch{done: make(chan struct{})}
		j.next = b
		j.running.Go(func() { j.commit(b) })
	}
	b.claims = append(b.claims, claims...)
	j.mu.Unlock()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Saw records a stream's newest message, to be written with the next claims or Flush.
func (j *Journal) Saw(b Bucket, last uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last[b] = max(j.last[b], last)
}

func (j *Journal) commit(b *batch) {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	if j.next == b {
		j.next = nil
	}
	err := j.failed
	j.mu.Unlock()
	if err == nil {
		err = j.append(b.claims)
	}
	if err == nil && j.always {
		err = j.settle()
	}
	b.err = j.fail(err)
	close(b.done)
	if err == nil && j.count > 2*j.base+slack {
		_ = j.fail(j.renew()) // the next Add returns the error
	}
}

// fail stores the first error and returns it wrapped.
func (j *Journal) fail(err error) error {
	if err == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		j.failed = fmt.Errorf("write the witness in %s: %w", j.dir, err)
	}
	return j.failed
}

// append writes claims and stream records to the end. disk is held.
func (j *Journal) append(claims []Claim) error {
	if j.file == nil {
		return fs.ErrClosed
	}
	j.mu.Lock()
	seen := j.last
	j.last = map[Bucket]uint64{}
	j.mu.Unlock()
	now := time.Now().UnixNano()
	index := j.count
	var data []byte
	add := func(r record) {
		r.generation, r.index, r.settled, r.at = j.generation, index, j.settled, now
		data = r.append(data)
		index++
	}
	for _, c := range claims {
		add(claimRecord(c))
	}
	for b, last := range seen {
		add(record{kind: kindStream, bucket: b, number: last})
	}
	if len(data) == 0 {
		return nil
	}
	offset := int64(j.count) * recordSize
	for offset+int64(len(data)) > j.size {
		if _, err := j.file.WriteAt(make([]byte, roomBytes), j.size); err != nil {
			return err
		}
		j.size += roomBytes
	}
	if _, err := j.file.WriteAt(data, offset); err != nil {
		return err
	}
	j.count = index
	return nil
}

func claimRecord(c Claim) record {
	return record{kind: kindClaim, bucket: c.Bucket, going: c.Going, number: c.Revision, when: nanos(c.Until), key: c.Key, sum: c.Sum}
}

// settle syncs the records and writes their number to the mark. The mark isn't synced: an outdated one only claims less.
// disk is held.
func (j *Journal) settle() error {
	if j.settled == j.count {
		return nil
	}
	if err := syncData(j.file); err != nil {
		return err
	}
	j.settled = j.count
	_, err := j.mark.WriteAt(j.markRecord(), 0)
	return err
}

func (j *Journal) markRecord() []byte {
	r := record{kind: kindMark, generation: j.generation, settled: j.settled, number: j.settled, at: time.Now().UnixNano(), key: j.ID}
	return r.append(nil)
}

// Flush syncs everything to disk.
func (j *Journal) Flush() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	err := j.failed
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err = j.append(nil); err == nil {
		err = j.settle()
	}
	return j.fail(err)
}

// Renew writes the next generation from the one on disk, after which Add works again. Writes that failed before were not
// acknowledged; their claims may exist or not.
func (j *Journal) Renew() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	if err := j.renew(); err != nil {
		return fmt.Errorf("rewrite the witness in %s: %w", j.dir, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = nil
	return nil
}

// renew writes the next generation from this one's file. disk is held.
func (j *Journal) renew() error {
	if j.file == nil {
		return fs.ErrClosed
	}
	if _, err := j.file.Seek(0, 0); err != nil {
		return err
	}
	old, err := parse(j.file)
	if err != nil {
		return err
	}
	if broken := old.broken(j.settled); broken != "" {
		return errors.New(broken)
	}
	base := Base{Streams: old.streams}
	for _, c := range old.claims {
		base.Claims = append(base.Claims, c)
	}
	return j.write(base)
}

// write creates the next generation and switches to it. disk is held.
func (j *Journal) write(base Base) error {
	now := time.Now()
	next := j.generation + 1
	data := make([]byte, recordSize, recordSize*(2+len(base.Claims)+len(base.Streams)))
	index := uint64(1)
	add := func(r record) {
		r.generation, r.index, r.at = next, index, now.UnixNano()
		data = r.append(data)
		index++
	}
	for b, s := range base.Streams {
		add(record{kind: kindStream, bucket: b, number: s.Last, when: nanos(s.Created)})
	}
	for _, c := range base.Claims {
		if !c.Going && now.Before(c.Until) {
			add(claimRecord(c))
		}
	}
	// The whole generation is on disk before it gets its name.
	header := record{kind: kindHeader, generation: next, settled: index, number: index, when: nanos(j.Doubt), at: now.UnixNano(), key: j.ID}
	copy(data, header.append(nil))
	size := (int64(len(data))/roomBytes + 1) * roomBytes
	data = append(data, make([]byte, size-int64(len(data)))...)
	file, err := replaceFile(j.dir, nextName, journalName, data)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.info.Store(&info)
	old := j.file
	j.file, j.generation, j.count, j.base, j.settled, j.size = file, next, index, index, index, size
	if old != nil {
		_ = old.Close() // superseded
	}
	if j.mark != nil {
		_ = j.mark.Close()
		j.mark = nil
	}
	j.mark, err = replaceFile(j.dir, markName+".new", markName, j.markRecord())
	return err
}

func replaceFile(dir, temporary, name string, data []byte) (*os.File, error) {
	path := filepath.Join(dir, temporary)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(path, filepath.Join(dir, name))
	}
	if err == nil {
		err = syncFolder(dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// InPlace returns an error unless the next start will read the file being written.
func (j *Journal) InPlace() error {
	if j.same() {
		return nil
	}
	// It may have been rewritten just now.
	j.disk.Lock()
	defer j.disk.Unlock()
	if j.same() {
		return nil
	}
	return fmt.Errorf("the witness %s was removed or replaced while in use; restore the original file", filepath.Join(j.dir, journalName))
}

func (j *Journal) same() bool {
	info, err := os.Stat(filepath.Join(j.dir, journalName))
	return err == nil && os.SameFile(info, *j.info.Load())
}

// Close syncs and closes the files. Add fails afterwards.
func (j *Journal) Close() error {
	err := j.Flush()
	_ = j.fail(fs.ErrClosed)
	j.running.Wait()
	j.disk.Lock()
	defer j.disk.Unlock()
	return errors.Join(err, j.closeFiles())
}

// closeFiles closes the files. disk is held.
func (j *Journal) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{j.file, j.mark} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	j.file, j.mark = nil, nil
	return errors.Join(errs...)
}

package witness

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// recordSize in bytes divides a disk's sector size.
const recordSize = 128

// magic begins each record and includes the format's version.
const magic = "vgw1"

// The kinds of records.
const (
	kindHeader = iota + 1 // the first record: number is how many records the generation began with, when is the end of the doubt
	kindClaim             // number is the revision, when is its Until
	kindStream            // number is Last, when is Created
	kindMark              // the mark's only record: number is how many records are on disk
)

type record struct {
	kind       uint8
	bucket     Bucket
	going      bool
	generation uint64
	index      uint64 // its position in the journal
	settled    uint64 // how many records were on disk when it was written
	number     uint64
	when       int64 // ns since 1970; 0 for the zero time
	at         int64 // time of writing, ns since 1970
	key        Key   // the store's ID, in headers and marks
	sum        Sum
}

func (r record) append(to []byte) []byte {
	start := len(to)
	to = append(to, magic...)
	var going uint8
	if r.going {
		going = 1
	}
	to = append(to, r.kind, uint8(r.bucket), going, 0)
	for _, n := range []uint64{r.generation, r.index, r.settled, r.number, uint64(r.when), uint64(r.at)} {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	to = append(to, r.key[:]...)
	to = append(to, r.sum[:]...)
	to = append(to, make([]byte, start+recordSize-8-len(to))...)
	check := sha256.Sum256(to[start:])
	return append(to, check[:8]...)
}

// decode parses a record; ok is false if it is invalid.
func decode(data []byte) (r record, ok bool) {
	if len(data) != recordSize || string(data[:4]) != magic {
		return record{}, false
	}
	check := sha256.Sum256(data[:recordSize-8])
	if !bytes.Equal(check[:8], data[recordSize-8:]) {
		return record{}, false
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(data[8+8*i:]) }
	r = record{
		kind: data[4], bucket: Bucket(data[5]), going: data[6] == 1,
		generation: number(0), index: number(1), settled: number(2), number: number(3),
		when: int64(number(4)), at: int64(number(5)),
		key: Key(data[56:88]), sum: Sum(data[88:104]),
	}
	return r, true
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

type name struct {
	bucket Bucket
	key    Key
}

type journal struct {
	header     record // kind is zero if it is missing
	generation uint64
	claims     map[name]Claim
	streams    map[Bucket]Stream
	latest     int64 // the newest at
	// settled is the largest record.settled.
	settled uint64
	// wrong is the index of the first unreadable record; whole is the index after the last readable one. If only the end
	// is unreadable, wrong >= whole.
	wrong, whole uint64
}

// parse reads a journal to its end. The error is the reader's; unreadable records are part of the result.
func parse(in io.Reader) (journal, error) {
	j := journal{claims: map[name]Claim{}, streams: map[Bucket]Stream{}}
	buffered := bufio.NewReaderSize(in, 1<<16)
	data := make([]byte, recordSize)
	wrong := false
	for index := uint64(0); ; index++ {
		_, err := io.ReadFull(buffered, data)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if !wrong {
				j.wrong = index
			}
			return j, nil
		} else if err != nil {
			return j, err
		}
		r, ok := decode(data)
		if ok && j.whole == 0 {
			j.generation = r.generation
		}
		// A record at the wrong position or of another generation was not written here.
		if !ok || r.index != index || r.generation != j.generation || (r.kind == kindHeader) != (index == 0) {
			if !wrong {
				wrong, j.wrong = true, index
			}
			continue
		}
		j.whole = index + 1
		j.settled, j.latest = max(j.settled, r.settled), max(j.latest, r.at)
		j.take(r)
	}
}

func (j *journal) take(r record) {
	switch r.kind {
	case kindHeader:
		j.header = r
	case kindClaim:
		n := name{r.bucket, r.key}
		old, ok := j.claims[n]
		if !ok || r.number > old.Revision || r.number == old.Revision && !old.Going {
			j.claims[n] = Claim{Bucket: r.bucket, Key: r.key, Revision: r.number, Sum: r.sum, Until: instant(r.when), Going: r.going}
		}
		s := j.streams[r.bucket]
		s.Last = max(s.Last, r.number)
		j.streams[r.bucket] = s
	case kindStream:
		s := j.streams[r.bucket]
		s.Last = max(s.Last, r.number)
		if r.when != 0 {
			s.Created = instant(r.when)
		}
		j.streams[r.bucket] = s
	}
}

// broken describes the journal's damage, or returns "". marked is the number of records on disk according to the mark.
func (j *journal) broken(marked uint64) string {
	settled := max(j.settled, marked)
	switch {
	case j.whole == 0:
		return "it has no readable record"
	case j.header.kind == 0:
		return "its first record is unreadable"
	case j.wrong < settled && j.whole > j.wrong:
		return fmt.Sprintf("record %d of several is unreadable", j.wrong)
	case j.wrong < settled:
		return fmt.Sprintf("it ends after %d of %d records", j.wrong, settled)
	}
	return ""
}

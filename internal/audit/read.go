package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Report says what a reader found.
type Report struct {
	Records int // lines that are records
	// Foreign counts lines that are not records: another program's, or torn by a crash.
	Foreign int
	// TooLong counts lines of more than [MaxLine] bytes. They are skipped.
	TooLong int
	// Torn says that the last line has no end and is not a record: it is still being written,
	// or a crash cut it off.
	Torn bool
	// Unreadable are full files that could not be read to their end, such as a broken archive.
	// Their readable part was read.
	Unreadable []error
}

// Warnings says in words, for a person, what of the files was no record.
func (r Report) Warnings() []string {
	var lines []string
	if r.Foreign > 0 {
		lines = append(lines, count(r.Foreign, "line")+" skipped: no records of the audit, or torn by a crash")
	}
	if r.TooLong > 0 {
		lines = append(lines, fmt.Sprintf("%s skipped: longer than %d bytes", count(r.TooLong, "line"), MaxLine))
	}
	if r.Torn {
		lines = append(lines, "the last line is not complete: it is being written, or the gateway was killed")
	}
	for _, err := range r.Unreadable {
		lines = append(lines, fmt.Sprintf("not all could be read: %v", err))
	}
	return lines
}

// ParseLine reads one line of the audit, with or without its line break. Unknown keys are
// ignored, because a newer gateway may have written them. Its error is [ErrForeign]. It never
// panics, whatever the line.
func ParseLine(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("audit: %w: %w", ErrForeign, err)
	}
	if r.Event == "" {
		return Record{}, fmt.Errorf("audit: %w: it names no event", ErrForeign)
	}
	if y := r.Time.UTC().Year(); r.Time.IsZero() || y < 1 || y > 9999 {
		return Record{}, fmt.Errorf("audit: %w: it has no time", ErrForeign)
	}
	r.Time = r.Time.UTC()
	return r, nil
}

// Read calls f for each record of r, in order, with its original line, which f must not keep.
// Lines that are not records are skipped and counted; so is a last line without its end, unless
// it is a whole record. An error of f ends Read and is returned as it is.
func Read(r io.Reader, f func(rec Record, line []byte) error) (Report, error) {
	var report Report
	s := newScanner(r)
	if err := s.each(&report, f); err != nil {
		return report, err
	}
	return report, s.last(&report, f)
}

// scanner splits a reader into lines of at most MaxLine bytes. After the end of its reader it
// may be asked again, because more may have come.
type scanner struct {
	r          io.Reader
	buf        []byte
	start, end int  // read and not yet returned
	searched   int  // bytes behind start that hold no line break
	skipping   bool // inside the rest of a line that is too long
	read       int64
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, MaxLine)} }

// errTooLong says that a line was skipped.
var errTooLong = errors.New("line too long")

// next returns the next whole line without its break, errTooLong for a line that was skipped,
// and io.EOF when no whole line is left.
func (s *scanner) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.start+s.searched:s.end], '\n'); i >= 0 {
			line := s.buf[s.start : s.start+s.searched+i]
			s.start, s.searched = s.start+len(line)+1, 0
			if s.skipping {
				s.skipping = false
				return nil, errTooLong
			}
			return line, nil
		}
		s.searched = s.end - s.start
		if s.start > 0 {
			copy(s.buf, s.buf[s.start:s.end])
			s.start, s.end = 0, s.searched
		}
		if s.end == len(s.buf) {
			s.skipping, s.start, s.end, s.searched = true, 0, 0, 0
		}
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.read += int64(n)
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// each calls f for each whole line that is a record.
func (s *scanner) each(report *Report, f func(Record, []byte) error) error {
	for {
		line, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTooLong):
			report.TooLong++
			continue
		case err != nil:
			return fmt.Errorf("audit: reading: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue // a torn line was ended with an additional line break
		}
		r, err := ParseLine(line)
		if err != nil {
			report.Foreign++
			continue
		}
		report.Records++
		if err := f(r, line); err != nil {
			return err
		}
	}
}

// last handles what follows the last line break: nothing more will come.
func (s *scanner) last(report *Report, f func(Record, []byte) error) error {
	line := s.buf[s.start:s.end]
	s.start, s.end, s.searched = 0, 0, 0
	switch {
	case s.skipping:
		s.skipping = false
		report.TooLong++
		return nil
	case len(bytes.TrimSpace(line)) == 0:
		return nil
	}
	r, err := ParseLine(line)
	if err != nil {
		report.Torn = true
		return nil
	}
	report.Records++
	return f(r, line)
}

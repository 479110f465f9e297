package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/textutil"
	"voicegw/registry"
)

// Report counts the lines that a reader has read.
type Report struct {
	Records int
	Foreign int // not records: written by another program, or torn by a crash
	TooLong int // more than [MaxLine] bytes
	// Torn means that the last line is incomplete: it is being written, or a crash cut it off.
	Torn       bool
	Unreadable []error
}

// Warnings describes the lines that were not read, for a person.
func (r Report) Warnings() []string {
	var lines []string
	if r.Foreign > 0 {
		lines = append(lines, textutil.Count(r.Foreign, "line")+" skipped: not audit records, or torn by a crash")
	}
	if r.TooLong > 0 {
		lines = append(lines, fmt.Sprintf("%s skipped: longer than %d bytes", textutil.Count(r.TooLong, "line"), MaxLine))
	}
	if r.Torn {
		lines = append(lines, "the last line is incomplete: the gateway is writing it, or was killed")
	}
	for _, err := range r.Unreadable {
		lines = append(lines, fmt.Sprintf("cannot read all records: %v", err))
	}
	return lines
}

// ParseLine reads one line. Unknown keys, of a newer gateway, are ignored. The error is [ErrForeign]. No line makes it
// panic.
func ParseLine(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("audit: %w: %w", ErrForeign, err)
	}
	if r.Event == "" {
		return Record{}, fmt.Errorf("audit: %w: no event", ErrForeign)
	}
	if y := r.Time.UTC().Year(); r.Time.IsZero() || y < 1 || y > 9999 {
		return Record{}, fmt.Errorf("audit: %w: no time, or one outside the years 1 to 9999", ErrForeign)
	}
	r.Time = r.Time.UTC()
	return r, nil
}

// Read calls f for each record with its line, which f must not keep. It skips and counts other lines, and an incomplete
// last one. It returns f's error.
func Read(r io.Reader, f func(rec Record, line []byte) error) (Report, error) {
	var report Report
	s := newScanner(r)
	if err := s.each(&report, f); err != nil {
		return report, err
	}
	return report, s.last(&report, f)
}

// scanner splits a reader into lines of at most MaxLine bytes. It can continue after io.EOF when the file has grown.
type scanner struct {
	r          io.Reader
	buf        []byte
	start, end int  // of the bytes of buf that are not yet returned
	searched   int  // bytes after start without a line break
	skipping   bool // inside a line that is too long
	read       int64
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, MaxLine)} }

var errTooLong = errors.New("line too long")

// next returns the next line without its break, errTooLong after skipping one, and io.EOF without a whole line.
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
			continue // the writer ended a torn line with an additional line break
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

// last handles the rest after the last line break, when the reader has no more.
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

// Filter selects records that match all of its fields. A zero field matches every record.
type Filter struct {
	Session string
	User    string
	Tool    string
	Event   Event
	// Since is the earliest accepted time, Until the first later time that is not accepted.
	Since, Until time.Time
	Failed       bool                 // records that are not OK
	Errors       []registry.ErrorType // records with one of these
	Undelivered  bool                 // calls whose answer the model did not get
}

// Match reports whether the filter accepts a record.
func (f Filter) Match(r Record) bool {
	switch {
	case !strings.HasPrefix(r.SessionID, f.Session),
		f.User != "" && r.UserID != f.User,
		f.Tool != "" && r.ToolID != f.Tool,
		f.Event != "" && r.Event != f.Event,
		!f.Since.IsZero() && r.Time.Before(f.Since),
		!f.Until.IsZero() && !r.Time.Before(f.Until),
		f.Failed && r.OK,
		len(f.Errors) > 0 && !slices.Contains(f.Errors, r.ErrorType),
		f.Undelivered && (r.Delivered || r.Event != EventTool):
		return false
	}
	return true
}

// ParseTime reads RFC 3339, a day in UTC, or a duration before now, as in 2h or 3d; empty is the zero time. name is for
// the error.
func ParseTime(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, notNumber := strconv.ParseUint(days, 10, 16)
		ago, err = time.Duration(n)*24*time.Hour, notNumber
	}
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s is %q, but must be a time as in 2026-11-20T10:00:00Z, a day as in 2026-11-20, "+
			"or a duration before now as in 2h or 3d", name, text)
	}
	return now.Add(-ago), nil
}

// Package ics has the calendars that hold iCalendar (RFC 5545): [Folder], in files, and [CalDAV], on a server. It reads
// files of strangers safely: it bounds time and memory, and it reports unreadable events, because their time is not free.
//
// A recurrence rule uses the wall clock of the event's zone, so a meeting at nine stays at nine when the clocks change.
// DTSTART is always the first occurrence. EXDATE removes occurrences, RDATE adds some, RECURRENCE-ID replaces one or,
// with RANGE=THISANDFUTURE, it and all later ones. A time that the clocks skip is an hour later; a time that occurs
// twice is the first one (RFC 5545 section 3.3.5).
//
// A zone's IANA name, also with the prefixes of some programs, has priority over the VTIMEZONE in the file, which
// Outlook relies on.
package ics

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/emersion/go-ical"
)

// Limits of one file or answer.
const (
	maxBytes  = 16 << 20 // bounds one file or answer
	maxEvents = 5000     // bounds the events, and the unreadable ones, of one answer
	// maxParts is the default of reader.MaxParts. The decoder needs about 400 bytes for each line or parameter.
	maxParts = 80_000
	maxDepth = 8 // bounds the nesting of components: an alarm in an event in a calendar has depth 3
	// maxHead bounds a property's name and parameters in bytes, because the decoder's time grows with its square.
	maxHead = 8 << 10
)

// decode parses all calendars in data. parts is the maximum of lines and parameters; 0 means maxParts.
func decode(data []byte, parts int) (calendars []*ical.Calendar, err error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%w: %d bytes", errTooBig, len(data))
	}
	data = unfold(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err := vet(data, cmp.Or(parts, maxParts)); err != nil {
		return nil, err
	}
	// The decoder can panic, because it indexes into lines without a check of their length.
	defer func() {
		if p := recover(); p != nil {
			calendars, err = nil, fmt.Errorf("%w: the decoder failed: %v", ErrMalformed, p)
		}
	}()
	decoder := ical.NewDecoder(bytes.NewReader(data))
	for {
		c, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			return calendars, nil // vet has checked the ends of components
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		calendars = append(calendars, c)
	}
}

// unfold joins folded lines (RFC 5545 section 3.1).
func unfold(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\n "), nil)
	return bytes.ReplaceAll(data, []byte("\n\t"), nil)
}

// vet refuses input that the decoder cannot handle: deep nesting, unended components and long heads.
func vet(data []byte, most int) error {
	depth, number, parts := 0, 0, 0
	for line := range bytes.Lines(data) {
		number++
		head, _, ok := bytes.Cut(line, []byte(":"))
		if !ok && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !ok || len(head) > maxHead {
			return fmt.Errorf("%w: line %d is not a property", ErrMalformed, number)
		}
		if parts += 1 + bytes.Count(head, []byte(";")) + bytes.Count(head, []byte(",")); parts > most {
			return fmt.Errorf("%w: more than %d lines and parameters", errTooBig, most)
		}
		// The head may contain a colon inside quotes, so it ends after the last quote.
		if last := bytes.LastIndexByte(line, '"'); bytes.ContainsRune(head, '"') && last > maxHead {
			return fmt.Errorf("%w: line %d has parameters that are too long", ErrMalformed, number)
		}
		name, _, _ := bytes.Cut(head, []byte(";"))
		switch {
		case bytes.EqualFold(name, []byte("BEGIN")):
			depth++
		case bytes.EqualFold(name, []byte("END")):
			depth--
		}
		if depth < 0 || depth > maxDepth {
			return fmt.Errorf("%w: line %d has a wrong BEGIN or END", ErrMalformed, number)
		}
	}
	if depth != 0 {
		return fmt.Errorf("%w: a BEGIN has no END", ErrMalformed)
	}
	return nil
}

var (
	// ErrMalformed is wrapped by errors about input that is not iCalendar.
	ErrMalformed = errors.New("ics: not iCalendar")
	// errTooMany is wrapped by errors about more than maxEvents events.
	errTooMany = fmt.Errorf("ics: more than %d events", maxEvents)
	// errTooBig is wrapped by errors about input that exceeds another limit.
	errTooBig = errors.New("ics: too big")
	// ErrRule is wrapped by errors about an unsupported recurrence.
	ErrRule = errors.New("ics: unsupported recurrence")
	// ErrZone is wrapped by errors about an unknown time zone.
	ErrZone = errors.New("ics: unknown time zone")
)

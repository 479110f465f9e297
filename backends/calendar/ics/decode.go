package ics

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/emersion/go-ical"
)

const (
	// MaxBytes is the most that is read at once.
	MaxBytes = 16 << 20
	// MaxEvents is the most events, and events that cannot be read, of one answer.
	MaxEvents = 5000
	// maxParts is the most lines and parameters that are read at once where Reader.MaxParts
	// says nothing: the decoder makes some four hundred bytes of each.
	maxParts = 80_000
	// maxDepth is how deep components may stand in each other: an alarm in an event in
	// a calendar is 3.
	maxDepth = 8
	// maxHead bounds what stands before a property's value, in bytes: its name and
	// parameters. The decoder takes time that grows with the square of it.
	maxHead = 8 << 10
)

// decode reads all calendars in data.
func decode(data []byte, parts int) (calendars []*ical.Calendar, err error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooBig, len(data))
	}
	data = unfold(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err := vet(data, cmp.Or(parts, maxParts)); err != nil {
		return nil, err
	}
	// The decoder indexes into lines without a look at their length.
	defer func() {
		if p := recover(); p != nil {
			calendars, err = nil, fmt.Errorf("%w: the decoder gave up: %v", ErrMalformed, p)
		}
	}()
	decoder := ical.NewDecoder(bytes.NewReader(data))
	for {
		c, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			return calendars, nil // vet has seen that everything is closed
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

// vet refuses what the decoder must not see: what is nested without end, left open,
// or has a head that is too long.
func vet(data []byte, most int) error {
	depth, number, parts := 0, 0, 0
	for line := range bytes.Lines(data) {
		number++
		head, _, ok := bytes.Cut(line, []byte(":"))
		if !ok && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !ok || len(head) > maxHead {
			return fmt.Errorf("%w: line %d is no property", ErrMalformed, number)
		}
		if parts += 1 + bytes.Count(head, []byte(";")) + bytes.Count(head, []byte(",")); parts > most {
			return fmt.Errorf("%w: more than %d lines and parameters", ErrTooBig, most)
		}
		// A colon inside quotes cuts the head short, so the rest counts up to the last quote.
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
			return fmt.Errorf("%w: line %d is nested wrongly", ErrMalformed, number)
		}
	}
	if depth != 0 {
		return fmt.Errorf("%w: it ends in the middle", ErrMalformed)
	}
	return nil
}

package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"voicegw/internal/backends/kb"
)

// located is a record with its line number and hash.
type located struct {
	record kb.Record
	line   int
	hash   string
}

// maxProblems bounds the reported problems of a file. A last one counts the others.
const maxProblems = 100

// parseJSONL parses JSON lines: one object in each line with the fields of kb.Record. It skips empty lines and lines
// that begin with //. A bad line is a problem and does not affect other lines. modified is the default of last_updated.
func parseJSONL(name string, r io.Reader, modified time.Time) ([]located, []kb.Problem) {
	var records []located
	var problems []kb.Problem
	more := 0
	bad := func(p ...kb.Problem) {
		keep := min(len(p), maxProblems-len(problems))
		problems = append(problems, p[:keep]...)
		more += len(p) - keep
	}
	reader := bufio.NewReaderSize(io.LimitReader(r, maxJSONLBytes+1), 64<<10)
	var total int64
	for line := 1; ; line++ {
		data, size, err := readLine(reader)
		total += size
		switch {
		case total > maxJSONLBytes:
			bad(kb.Problem{File: name, Line: line,
				Message: fmt.Sprintf("the file has more than %d bytes; the rest is ignored", maxJSONLBytes)})
			err = io.EOF
		case size > maxLineBytes:
			bad(kb.Problem{File: name, Line: line, Message: fmt.Sprintf("the line has %d bytes; at most %d", size, maxLineBytes)})
		default:
			if rec, p, ok := parseLine(name, line, data, modified); ok {
				records = append(records, located{rec, line, rec.Hash()})
			} else {
				bad(p...)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				bad(kb.Problem{File: name, Line: line, Message: "cannot be read: " + err.Error()})
			}
			break
		}
	}
	if more > 0 {
		problems = append(problems, kb.Problem{File: name, Message: fmt.Sprintf("and %d more problems", more)})
	}
	return records, problems
}

// readLine reads a line. It returns about maxLineBytes of it and its size.
func readLine(r *bufio.Reader) (data []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(data) <= maxLineBytes {
			data = append(data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return data, size, err
		}
	}
}

// fileRecord is a record in a file. Its time may be a day.
type fileRecord struct {
	kb.Record
	LastUpdated *string `json:"last_updated"`
}

// parseLine parses a line. An empty line has neither a record nor a problem.
func parseLine(name string, line int, data []byte, modified time.Time) (kb.Record, []kb.Problem, bool) {
	data = bytes.TrimSpace(data)
	if line == 1 {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	if len(data) == 0 || bytes.HasPrefix(data, []byte("//")) {
		return kb.Record{}, nil, false
	}
	fault := func(format string, args ...any) (kb.Record, []kb.Problem, bool) {
		return kb.Record{}, []kb.Problem{{File: name, Line: line, Message: fmt.Sprintf(format, args...)}}, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var f fileRecord
	if err := decoder.Decode(&f); err != nil {
		return fault("is not a record in JSON: %s", jsonMessage(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault("there is more after the record; write one record in each line")
	}
	rec := f.Record
	rec.LastUpdated = modified
	if f.LastUpdated != nil {
		at, err := parseTime(*f.LastUpdated)
		if err != nil {
			return fault("last_updated must be RFC 3339, like 2026-03-01T09:00:00Z, or a day, like 2026-03-01")
		}
		rec.LastUpdated = at
	}
	rec.Normalize()
	if problems := problemsOf(name, line, rec); problems != nil {
		return kb.Record{}, problems, false
	}
	return rec, nil, true
}

// jsonMessage describes an error without the names of Go types.
func jsonMessage(err error) string {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typed.Field == "" {
			return fmt.Sprintf("it is a JSON %s, not an object", typed.Value)
		}
		// The path begins with the embedded Record of fileRecord.
		return fmt.Sprintf("%s cannot be a JSON %s", strings.TrimPrefix(typed.Field, "Record."), typed.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is incomplete"
	}
	return err.Error()
}

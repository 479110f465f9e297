package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"voicegw/client/load/caller"
	"voicegw/client/load/report"
	"voicegw/internal/textutil"
)

// builtinScript begins the name of a script that is in the program.
const builtinScript = "builtin:"

// maxScript bounds a script, in bytes; what is larger is refused when it is parsed.
const maxScript = 2 << 20

// ReadScript reads a script by its file's name, or builtin:NAME for one that is in the
// program. dir is where recordings that it names are.
func ReadScript(name string) (s *caller.Script, dir string, err error) {
	var data []byte
	if own, ok := strings.CutPrefix(name, builtinScript); ok {
		data, err = ReadExample(own)
	} else {
		dir = filepath.Dir(name)
		data, err = readAtMost(name, maxScript)
	}
	if err != nil {
		return nil, "", fmt.Errorf("--script: %w", err)
	}
	s, err = caller.ParseScript(name, data)
	return s, dir, err
}

// readAtMost reads the first bytes of a file.
func readAtMost(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, n))
}

// Output is where a report goes.
type Output struct {
	json, html *os.File // nil for no file
	jsonOut    bool
}

// stdout is the name that stands for standard output.
const stdout = "-"

// OpenOutput makes the files of a report, before the run: it would be too late to learn afterwards
// that it cannot be kept. An empty name is no file; - as the name of the JSON report is standard
// output.
func OpenOutput(asJSON, page string) (o Output, err error) {
	o.jsonOut = asJSON == stdout
	if asJSON != "" && !o.jsonOut {
		if o.json, err = os.Create(asJSON); err != nil {
			return o, err
		}
	}
	if page != "" && page != stdout {
		o.html, err = os.Create(page)
	}
	return o, err
}

// Report shows a report on out, or on errs where the JSON report goes to out, and writes
// its files, which are closed then.
func (o Output) Report(out, errs io.Writer, r *report.Report) error {
	var problems []error
	text := out
	if o.jsonOut {
		text = errs
		problems = append(problems, r.Write(out))
	}
	_, colour := textutil.Width(text)
	return errors.Join(append(problems, r.Text(text, colour), keep(o.json, r.Write), keep(o.html, r.HTML))...)
}

// keep writes a file and closes it; nil is no file.
func keep(f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// Compare reads two JSON reports from their files. The error names a file that cannot be
// read.
func Compare(nameA, nameB string) (*report.Comparison, error) {
	a, errA := readReport(nameA)
	b, errB := readReport(nameB)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	return report.Compare(filepath.Base(nameA), a, filepath.Base(nameB), b), nil
}

// Comparison shows a comparison on out and writes its page, whose file is closed then.
func (o Output) Comparison(out io.Writer, c *report.Comparison) error {
	_, colour := textutil.Width(out)
	return errors.Join(c.Text(out, colour), keep(o.html, c.HTML))
}

func readReport(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := report.Read(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

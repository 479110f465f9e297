package load

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"voicegw/client/load/report"
	"voicegw/client/wire"
	"voicegw/internal/textutil"
)

const builtinScript = "builtin:"

// maxScript bounds the bytes read of a script; parsing rejects larger ones.
const maxScript = 2 << 20

// ReadScript reads a script for a wire from a file or from builtin:NAME. dir is the folder of its recordings.
func ReadScript(name string, on wire.Wire) (s *Script, dir string, err error) {
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
	s, err = ParseScript(name, data, on)
	return s, dir, err
}

func readAtMost(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, n))
}

// Output has the files of a report.
type Output struct {
	json, html *os.File // nil for no file
	jsonOut    bool
}

const stdout = "-"

// OpenOutput creates the files of a report before the run, because afterwards an error would lose the results. An
// empty name means no file; - as the JSON report means standard output.
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

// Report prints a report to out, or to errs if out gets the JSON report, and writes and closes its files.
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

// keep writes a file and closes it; nil means no file.
func keep(f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// Compare reads and compares two JSON reports.
func Compare(nameA, nameB string) (*report.Comparison, error) {
	a, errA := readReport(nameA)
	b, errB := readReport(nameB)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	return report.Compare(filepath.Base(nameA), a, filepath.Base(nameB), b), nil
}

// Comparison prints a comparison to out, and writes and closes its page.
func (o Output) Comparison(out io.Writer, c *report.Comparison) error {
	_, colour := textutil.Width(out)
	return errors.Join(c.Text(out, colour), keep(o.html, c.HTML))
}

func readReport(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	r, err := report.Read(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

//go:embed examples/*.yaml
var exampleFiles embed.FS

// ExampleNames lists the built-in scripts (voicegw load --script builtin:NAME) in alphabetical order.
func ExampleNames() []string {
	entries, err := exampleFiles.ReadDir("examples")
	if err != nil {
		panic(err) // embedded
	}
	var names []string
	for _, e := range entries { // in this order
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return names
}

// ReadExample returns a built-in script.
func ReadExample(name string) ([]byte, error) {
	data, err := exampleFiles.ReadFile("examples/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no built-in script %q; there are %s", name, strings.Join(ExampleNames(), ", "))
	}
	return data, nil
}

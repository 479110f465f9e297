package report

import (
	"cmp"
	_ "embed" // the template of the text
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"voicegw/internal/textutil"
)

//go:embed text.tmpl
var textText string

var textFuncs = template.FuncMap{
	"ms": inMS, "number": thousands, "length": length, "problem": problemInWords, "trimmed": trimmed, "orDash": orDash,
	"plural": plural, "printable": textutil.Printable, "clipped": clipped, "wrapped": wrapped, "columns": columns, "lower": strings.ToLower,
	"pair":  func(key, value string) string { return fmt.Sprintf("  %-10s %s", key, textutil.Printable(value)) },
	"whole": func(v float64) int64 { return int64(v) }, "float": func(n int) float64 { return float64(n) },
	"next":  func(i int) int { return i + 1 },
	"first": func(p []Problem) []Problem { return p[:min(len(p), maxShown)] },
	"more":  func(p page) int64 { return max(int64(len(p.Problems)-maxShown), 0) + p.MoreProblems },
}

// The templates of a report and of a comparison, without colours and with terminal colours (ECMA-48, SGR).
var (
	plainText    = textWith(func(_, s string) string { return s })
	colouredText = textWith(func(code, s string) string { return "\x1b[" + code + "m" + s + "\x1b[0m" })
)

// textWith makes the templates; mark colours a word.
func textWith(mark func(code, s string) string) *template.Template {
	return template.Must(template.New("text").Funcs(textFuncs).Funcs(template.FuncMap{
		"bold":  func(s any) string { return mark("1", fmt.Sprint(s)) },
		"red":   func(s string) string { return mark("31;1", s) },
		"green": func(s string) string { return mark("32;1", s) },
	}).Parse(textText))
}

// maxShown bounds the problems in the text; the other forms have all that were kept.
const maxShown = 20

// Text writes the report for a terminal, optionally coloured.
func (r *Report) Text(w io.Writer, colour bool) error {
	return writeText(w, colour, "report", r.page())
}

func writeText(w io.Writer, colour bool, name string, data any) error {
	t := plainText
	if colour {
		t = colouredText
	}
	if err := t.ExecuteTemplate(w, name, data); err != nil {
		return fmt.Errorf("write the %s: %w", name, err)
	}
	return nil
}

func columns(name string, cells ...string) string {
	line := fmt.Sprintf("  %-26s", name)
	for _, cell := range cells {
		line += fmt.Sprintf(" %9s", cell)
	}
	return line
}

func trimmed(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func listed(counts map[string]int64) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = thousands(counts[k]) + " " + textutil.Printable(k)
	}
	return strings.Join(keys, " · ")
}

func orDash(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

const lineWidth = 100

// wrapped wraps prose; the first line and the others have their own prefixes.
func wrapped(first, others, s string) string {
	var lines []string
	line := first
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth:
			lines = append(lines, line)
			line = others + word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

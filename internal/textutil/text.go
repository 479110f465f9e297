// Package textutil has helpers for text: limits, blank text and spelling suggestions for text from outside; and at a
// terminal its width, tables, typed lines, and text that must not contain control sequences.
package textutil

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Shorten returns text if it has at most limit bytes. Otherwise it returns the beginning, cut at a character, and an
// ellipsis.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// Unique returns the values in their order, each once. It is for short lists.
func Unique[T comparable](values []T) []T {
	var once []T
	for _, v := range values {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// IsBlank reports whether s has no visible character: only spaces, control characters, zero-width characters, invisible
// fillers, and U+FFFD, which replaces unreadable bytes.
func IsBlank(s string) bool { return !strings.ContainsFunc(s, IsVisible) }

// IsVisible reports whether a person can see r.
func IsVisible(r rune) bool {
	switch {
	case r == brailleBlank, r == unicode.ReplacementChar, unicode.IsSpace(r), unicode.IsControl(r):
		return false
	}
	// Other_Default_Ignorable_Code_Point has the Hangul fillers, which are letters.
	return !unicode.In(r, unicode.Z, unicode.Cf, unicode.Co, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// brailleBlank is the Braille pattern without dots.
const brailleBlank = 0x2800

// Width says whether file is a terminal, and how many columns it has.
func Width(file any) (columns int, ok bool) {
	f, isFile := file.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns == 0 { // the size is unknown, as in many containers
		columns = 80
	}
	return columns, true
}

// maxWord is the longest word, in bytes, that is compared.
const maxWord = 64

// Nearest returns the known word that word probably misspells, or "" if none is near: at most three letters differ, or a
// quarter of a long word, and no more than half of a short one. It ignores case. Of equally near words it returns the
// first.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", max(min(3, len(word)/2), len(word)/4)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes, or limit if it is not less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit)
}

// Table lays rows out in columns. If file is a terminal, lines are cut at its width.
func Table(file any, rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		// A strings.Builder takes everything.
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	width, ok := Width(file)
	if !ok {
		return b.String()
	}
	var cut strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		cut.WriteString(Cut(line, width) + "\n")
	}
	return cut.String()
}

// Cut shortens a line to width columns. A width below 2 cuts nothing.
func Cut(line string, width int) string {
	if r := []rune(line); len(r) > width && width > 1 {
		return string(r[:width-1]) + "…"
	}
	return line
}

// Quote quotes a text that would steer a terminal or break a table, such as a user's own name.
func Quote(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

// Printable replaces control characters with spaces, so that a text can't control a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// YesNo writes a truth value as a word.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Count is a number with its noun, in the plural where the number asks for it.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Status is a line on a terminal that is drawn again and again. It is not safe for concurrent use.
type Status struct {
	// W is the terminal, Width its columns.
	W     io.Writer
	Width int

	shown bool
}

// Show replaces the line. It ignores an error of W.
func (s *Status) Show(text string) {
	s.shown = true
	line := []rune(text)
	if len(line) >= s.Width {
		line = line[:max(s.Width-1, 0)]
	}
	_, _ = fmt.Fprintf(s.W, "\r\x1b[K%s", string(line))
}

// Clear removes the line, if one was shown.
func (s *Status) Clear() {
	if s.shown {
		_, _ = fmt.Fprint(s.W, "\r\x1b[K")
	}
}

// OpenTyped opens the terminal of this process to read lines; see Typed. It is opened a second time because a pending
// read of standard input cannot be ended.
func OpenTyped() (lines <-chan string, stop func(), err error) {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return nil, nil, err
	}
	if err := tty.SetReadDeadline(time.Time{}); err != nil {
		_ = tty.Close() // nothing was read of it
		return nil, nil, err
	}
	lines, stop = Typed(tty)
	return lines, stop, nil
}

// Typed reads lines until the end of tty or stop, which closes tty and waits for the reader. It closes the channel.
func Typed(tty *os.File) (lines <-chan string, stop func()) {
	// From the goroutine here to the caller; that goroutine closes it.
	out := make(chan string)
	stopping := make(chan struct{}) // closed by stop
	stopped := make(chan struct{})  // closed by the goroutine
	go func() {
		defer close(stopped)
		defer close(out)
		for s := bufio.NewScanner(tty); s.Scan(); {
			select {
			case out <- s.Text():
			case <-stopping:
				return
			}
		}
	}()
	return out, func() {
		close(stopping)
		// OpenTyped has tried that a deadline ends a read of this file.
		_ = tty.SetReadDeadline(time.Now())
		<-stopped
		_ = tty.Close()
	}
}

// SpokenPart returns the part of a text that was spoken in the first heardMS of audioMS, without an incomplete last word.
func SpokenPart(text string, heardMS, audioMS int64) string {
	if heardMS <= 0 || audioMS <= 0 || text == "" {
		return ""
	}
	if heardMS >= audioMS {
		return text
	}
	runes := []rune(text)
	n := int(int64(len(runes)) * heardMS / audioMS)
	if unicode.IsSpace(runes[n]) {
		return strings.TrimSpace(string(runes[:n]))
	}
	for n > 0 && !unicode.IsSpace(runes[n-1]) {
		n--
	}
	return strings.TrimSpace(string(runes[:n]))
}

package audit

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"voicegw/internal/textutil"
)

// columns have a fixed width because rows are shown as they are read.
var columns = []struct {
	name  string
	width int
}{
	{"TIME", 24}, {"SESSION", 14}, {"TURN", 4}, {"TOOL", 26}, {"OUTCOME", 22}, {"MS", 6}, {"BUDGET", 6}, {"CLAMPED", 14},
	{"CONFIRMATION", 12}, {"EVIDENCE", 0},
}

const outcomeColumn = 4 // index in columns

func (t *Table) row(r Record) string {
	outcome, colour := outcomeOf(r)
	cells := []string{
		r.Time.UTC().Format(TimeLayout), begin(r.SessionID, columns[1].width), strconv.Itoa(r.TurnID), r.ToolID, outcome,
		strconv.FormatInt(r.DurationMS, 10), budgetOf(r), clampedOf(r), confirmationOf(r), evidenceOf(r),
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	text := t.line(cells)
	before := padded(cells[:outcomeColumn])
	if after, whole := strings.CutPrefix(text, before+cells[outcomeColumn]); whole && t.o.Colour {
		return before + colour + cells[outcomeColumn] + "\x1b[0m" + after
	}
	return text
}

func (t *Table) line(cells []string) string {
	return textutil.Cut(strings.TrimRight(padded(cells), " "), t.o.Width)
}

func padded(cells []string) string {
	var line strings.Builder
	for i, cell := range cells {
		line.WriteString(cell + strings.Repeat(" ", max(columns[i].width-utf8.RuneCountInString(cell), 0)+2))
	}
	return line.String()
}

func outcomeOf(r Record) (outcome, colour string) {
	switch r.Event {
	case EventConfirmation:
		return r.Confirmation, yellow
	case EventIntent:
		names := make([]string, len(r.Refused))
		for i, t := range r.Refused {
			names[i] = string(t)
		}
		return strings.TrimSpace("refused " + strings.Join(names, ",")), yellow
	case EventNote:
		return "noted " + r.Note, yellow
	case EventStopped:
		return "stopped by " + r.Check, yellow
	case EventClaim:
		return strings.TrimSpace("claimed " + r.Claim), yellow
	case EventExact:
		return "said " + r.Spoken + map[bool]string{true: ", heard", false: ", not heard"}[r.OK], yellow
	case EventTool:
	default:
		return string(r.Event), yellow
	}
	switch {
	case !r.OK:
		outcome, colour = cmp.Or(string(r.ErrorType), "failed"), red
	case r.CacheHit:
		outcome, colour = "cached", yellow
	default:
		outcome, colour = "ok", green
	}
	if r.Delivered {
		return outcome, colour
	}
	if r.OK && !r.CacheHit {
		return "not delivered", yellow
	}
	return outcome + ", not delivered", colour
}

func budgetOf(r Record) string {
	used, limit, ok := r.Calls()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%d/%d", used, limit)
}

func clampedOf(r Record) string {
	var list []string
	for name, c := range r.Clamped {
		list = append(list, fmt.Sprintf("%s %s>%d", name, c.Requested, c.Applied))
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(list, ", "), "-")
}

func evidenceOf(r Record) string {
	return cmp.Or(strings.Join(r.Evidence, ", "), "-")
}

func confirmationOf(r Record) string {
	text := r.Confirmation
	if r.Event == EventConfirmation {
		text = "" // the outcome column has it
	}
	if r.ConfirmedBy != "" {
		text += " by " + r.ConfirmedBy
	}
	if r.Reference != "" {
		text += " " + r.Reference
	}
	return cmp.Or(strings.TrimSpace(text), "-")
}

func begin(id string, width int) string {
	if r := []rune(id); len(r) > width {
		return string(r[:width])
	}
	return id
}

// printable replaces control characters, because a model may invent any name.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// The colours of outcomes (ECMA-48 8.3.117).
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
)

// TableOptions configure a [Table].
type TableOptions struct {
	Filter Filter
	Limit  int
	JSON   bool // the original lines instead of a table
	Width  int  // of the terminal in columns; zero without a terminal
	Colour bool
}

// Table writes records as text. Only one goroutine at a time may use it.
type Table struct {
	out *bufio.Writer
	o   TableOptions

	newest [][]byte // a ring of at most Limit rows; nil once they are shown
	next   int      // index of the oldest row in newest, once newest is full
	live   bool     // each record is shown at once
	shown  int
}

// NewTable returns a Table that writes to w.
func NewTable(w io.Writer, o TableOptions) *Table { return &Table{out: bufio.NewWriter(w), o: o} }

// Record accepts a record and its original line, as from [Read].
func (t *Table) Record(r Record, line []byte) error {
	if !t.o.Filter.Match(r) {
		return nil
	}
	row := line
	if !t.o.JSON {
		row = []byte(t.row(r))
	}
	switch {
	case t.live || t.o.Limit == 0:
		return t.show(row)
	case len(t.newest) < t.o.Limit:
		t.newest = append(t.newest, slices.Clone(row))
	default:
		t.newest[t.next] = append(t.newest[t.next][:0], row...)
		t.next = (t.next + 1) % t.o.Limit
	}
	return nil
}

// CaughtUp shows the newest existing records; Table shows later ones at once. The caller must also call it at the end.
func (t *Table) CaughtUp() error {
	for i := range t.newest {
		if err := t.show(t.newest[(t.next+i)%len(t.newest)]); err != nil {
			return err
		}
	}
	t.newest, t.live = nil, true
	return t.out.Flush()
}

// Shown returns the number of records shown.
func (t *Table) Shown() int { return t.shown }

// show writes a row, and the head of the table before the first row.
func (t *Table) show(row []byte) error {
	if t.shown == 0 && !t.o.JSON {
		var head []string
		for _, c := range columns {
			head = append(head, c.name)
		}
		if _, err := t.out.WriteString(t.line(head) + "\n"); err != nil {
			return err
		}
	}
	t.shown++
	if _, err := t.out.Write(row); err != nil {
		return err
	}
	if err := t.out.WriteByte('\n'); err != nil || !t.live {
		return err
	}
	return t.out.Flush()
}

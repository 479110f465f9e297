package audit

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"voicegw/internal/textutil"
)

// TableOptions configure a [Table].
type TableOptions struct {
	Filter Filter
	// Limit is the number of existing records to show, the newest; zero shows all. New records are always shown.
	Limit int
	JSON  bool // the original lines instead of a table
	Width int  // of the terminal in columns; zero without a terminal
	// Colour shows outcomes in colours.
	Colour bool
}

// Table writes records as text. Only one goroutine at a time may use it.
type Table struct {
	// Fixed after NewTable.
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
		head := strings.Builder{}
		for i, c := range columns {
			head.WriteString(pad(c.name, c.width, i < len(columns)-1))
		}
		if _, err := t.out.WriteString(textutil.Cut(strings.TrimRight(head.String(), " "), t.o.Width) + "\n"); err != nil {
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

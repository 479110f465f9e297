package audit

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"voicegw/internal/textutil"
)

// TableOptions say what is shown and how.
type TableOptions struct {
	// Filter chooses the records.
	Filter Filter
	// Limit is how many are shown of those there are when reading begins, the newest; zero
	// shows all.
	Limit int
	// JSON shows the lines as they are, instead of a table.
	JSON bool
	// Width is that of the terminal in columns; zero for no terminal.
	Width int
	// Colour shows how calls ended in colours.
	Colour bool
}

// Table shows records. One goroutine at a time may use it.
type Table struct {
	// Fixed after NewTable.
	out *bufio.Writer
	o   TableOptions

	newest [][]byte // at most Limit rows, a ring; nil once they are shown
	next   int      // index in newest of the oldest, once newest is full
	live   bool     // each record is shown at once
	shown  int
}

// NewTable writes to w.
func NewTable(w io.Writer, o TableOptions) *Table { return &Table{out: bufio.NewWriter(w), o: o} }

// Record takes a record and the line that it was read from; see audit.Read.
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

// CaughtUp shows what was kept back; each record that comes later is shown at once. It is
// also called at the end. The error is that of writing.
func (t *Table) CaughtUp() error {
	for i := range t.newest {
		if err := t.show(t.newest[(t.next+i)%len(t.newest)]); err != nil {
			return err
		}
	}
	t.newest, t.live = nil, true
	return t.out.Flush()
}

// Shown is how many records were shown.
func (t *Table) Shown() int { return t.shown }

// show writes a row, with the head of the table before the first.
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

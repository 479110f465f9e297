package talk

import (
	"bufio"
	"context"
	"errors"
	"io"

	"voicegw/audio"
	"voicegw/internal/terminal"
)

// Display shows conversations to a person, or as JSON lines. It is not safe for concurrent use.
type Display struct {
	asJSON bool
	human  *Printer
	lines  *JSONPrinter
}

// NewDisplay shows on out, which may be a terminal.
func NewDisplay(out io.Writer, asJSON bool) *Display {
	width, isTerminal := terminal.Width(out)
	return &Display{asJSON: asJSON, human: NewPrinter(out, isTerminal, width), lines: NewJSONPrinter(out)}
}

// Event shows one event.
func (d *Display) Event(e Event) {
	if d.asJSON {
		d.lines.Event(e)
		return
	}
	d.human.Event(e)
}

// line shows a person a text that is not an event.
func (d *Display) line(who, text string) {
	if !d.asJSON {
		d.human.Line(who, text)
	}
}

// report shows what a conversation came to. The error joins its own with that of showing
// anything.
func (d *Display) report(r Report, failure error) error {
	if d.asJSON {
		return errors.Join(failure, d.lines.Report(r, failure))
	}
	return errors.Join(failure, d.human.Report(r))
}

// Show holds a conversation and shows it. What was heard is written to keep as WAV, and keep
// is closed; nil keeps nothing. The error is that of Run, joined with those of writing.
func Show(ctx context.Context, o Options, d *Display, keep io.WriteCloser) error {
	o.Events, o.KeepAudio = d.Event, keep != nil
	report, err := Run(ctx, o)
	if keep != nil {
		w := bufio.NewWriter(keep)
		err = errors.Join(err, audio.WriteWAV(w, report.OutputRate, report.Audio), w.Flush(), keep.Close())
	}
	return d.report(report, err)
}

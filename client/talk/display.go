package talk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"voicegw/audio"
	"voicegw/internal/textutil"
)

// Display prints conversations for a person or as JSON lines. It is not safe for concurrent use.
type Display struct {
	human *Printer
	// json writes each event and finally the report; nil for a person.
	json    *json.Encoder
	jsonErr error // the first write error
}

// NewDisplay returns a display that writes to out, which may be a terminal.
func NewDisplay(out io.Writer, asJSON bool) *Display {
	width, isTerminal := textutil.Width(out)
	d := &Display{human: NewPrinter(out, isTerminal, width)}
	if asJSON {
		d.json = json.NewEncoder(out)
		d.json.SetEscapeHTML(false)
	}
	return d
}

func (d *Display) encode(line any) {
	if d.jsonErr == nil {
		d.jsonErr = d.json.Encode(line)
	}
}

// Event prints one event.
func (d *Display) Event(e Event) {
	if d.json != nil {
		d.encode(e)
		return
	}
	d.human.Event(e)
}

// line prints a text that is not an event.
func (d *Display) line(who, text string) {
	if d.json == nil {
		d.human.line(who, text)
	}
}

// report prints a conversation's report and joins failure with write errors.
func (d *Display) report(r Report, failure error) error {
	if d.json == nil {
		return errors.Join(failure, d.human.Report(r))
	}
	last := struct {
		Event string `json:"event"`
		Report
		Error string `json:"error,omitempty"`
	}{Event: EventReport, Report: r}
	if failure != nil {
		last.Error = failure.Error()
	}
	d.encode(last)
	return errors.Join(failure, d.jsonErr)
}

// Show runs and prints a conversation. The audio heard is written to keep as WAV, and keep is closed; nil discards
// it. The error joins that of Run with write errors.
func Show(ctx context.Context, o Options, d *Display, keep io.WriteCloser) error {
	o.Events, o.KeepAudio = d.Event, keep != nil
	report, err := Run(ctx, o)
	if keep != nil {
		w := bufio.NewWriter(keep)
		err = errors.Join(err, audio.WriteWAV(w, report.OutputRate, report.Audio), w.Flush(), keep.Close())
	}
	return d.report(report, err)
}

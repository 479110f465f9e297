package talk

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"voicegw/session/wsclient"
)

// Printer shows a conversation to a person as it happens. One goroutine at a time
// may use it.
type Printer struct {
	// Fixed after NewPrinter.
	w        io.Writer
	terminal bool
	width    int

	live      string // id of the transcript on the line that is being redrawn; "" for none
	unfinal   map[string]wsclient.Transcript
	order     []string // of unfinal
	lastAtMS  int64
	writeFail error
}

// NewPrinter writes to w. On a terminal, width columns wide, transcripts grow in
// place; elsewhere each is one line, once it is final.
func NewPrinter(w io.Writer, terminal bool, width int) *Printer {
	if width <= 0 {
		width = 80
	}
	return &Printer{w: w, terminal: terminal, width: width, unfinal: map[string]wsclient.Transcript{}}
}

// Event shows one event.
func (p *Printer) Event(e Event) {
	p.lastAtMS = e.AtMS
	switch m := e.Message.(type) {
	case *wsclient.Transcript:
		p.transcript(m)
	case *wsclient.SessionStarted:
		p.line("session", fmt.Sprintf("%s, model %s, %s", m.Provider, m.Model, m.SessionID))
	case *wsclient.AudioFlush:
		p.line("flush", m.Reason)
	case *wsclient.ToolStarted:
		p.line("tool", m.Tool+" …")
	case *wsclient.ToolEnded:
		p.line("tool", toolEnded(m))
	case *wsclient.SessionEnding:
		p.line("session", "will end: "+m.Reason)
	case *wsclient.SessionEnded:
		p.line("session", "ended: "+m.Reason)
	case *wsclient.Error:
		p.line("error", fmt.Sprintf("%s (%s)", m.Message, m.Code))
	case nil:
		p.own(e)
	}
}

func (p *Printer) own(e Event) {
	switch e.Event {
	case EventSpeaking, EventTyped:
		p.line("turn "+fmt.Sprint(e.Turn), strings.TrimSpace(e.Event+" "+e.Text))
	case EventInterrupting:
		p.line("turn "+fmt.Sprint(e.Turn), "interrupts the answer")
	case EventFailed:
		p.line("turn "+fmt.Sprint(e.Turn), "not answered: "+e.Text)
	case EventAnswered:
		p.line("turn "+fmt.Sprint(e.Turn), "answered")
	}
}

func toolEnded(m *wsclient.ToolEnded) string {
	outcome := "failed"
	if m.OK {
		outcome = "ok"
	}
	return fmt.Sprintf("%s %s after %d ms", m.Tool, outcome, m.DurationMS)
}

// transcript shows what was said so far: final texts for good, others on the line
// that is being redrawn.
func (p *Printer) transcript(m *wsclient.Transcript) {
	if m.Final {
		p.drop(m.ID)
		if m.Text != "" {
			p.line(m.Role, m.Text)
		}
		return
	}
	if _, known := p.unfinal[m.ID]; !known {
		if len(p.order) >= maxUtterances {
			p.drop(p.order[0])
		}
		p.order = append(p.order, m.ID)
	}
	p.unfinal[m.ID] = *m
	if p.terminal {
		p.live = m.ID
		text := []rune(printable(p.prefix(m.Role) + m.Text))
		if len(text) >= p.width {
			// The end is what is new.
			head := []rune(p.prefix(m.Role))
			text = append(append(head, '…'), text[len(text)-max(p.width-len(head)-2, 0):]...)
		}
		p.write("\r\x1b[K" + string(text))
	}
}

func (p *Printer) drop(id string) {
	delete(p.unfinal, id)
	for i, known := range p.order {
		if known == id {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

// line shows a line for good, under what is being redrawn.
func (p *Printer) line(who, text string) {
	if p.live != "" {
		p.write("\r\x1b[K")
		p.live = ""
	}
	p.write(printable(p.prefix(who)+text) + "\n")
}

func (p *Printer) prefix(who string) string {
	return fmt.Sprintf("%6.1f s  %-9s  ", float64(p.lastAtMS)/1000, who)
}

func (p *Printer) write(s string) {
	if p.writeFail == nil {
		_, p.writeFail = io.WriteString(p.w, s)
	}
}

// printable keeps what came over the network from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Report shows what remained unfinished and then the table. The error is the first
// one that writing anything met.
func (p *Printer) Report(r Report) error {
	for _, id := range p.order {
		m := p.unfinal[id]
		p.line(m.Role, m.Text+" …")
	}
	p.order, p.unfinal = nil, map[string]wsclient.Transcript{}
	if p.live != "" {
		p.line("", "")
	}
	if len(r.Turns) > 0 {
		p.write("\n" + Table(r))
	}
	return p.writeFail
}

// JSONPrinter shows a conversation as JSON lines: one for each event, and the
// report as the last. One goroutine at a time may use it.
type JSONPrinter struct {
	enc *json.Encoder
	err error
}

// NewJSONPrinter writes to w.
func NewJSONPrinter(w io.Writer) *JSONPrinter {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &JSONPrinter{enc: enc}
}

// Event writes one event.
func (p *JSONPrinter) Event(e Event) {
	if p.err == nil {
		p.err = p.enc.Encode(e)
	}
}

// Report writes the last line: the report, and the error of the conversation as
// text. The error it returns is the first one that writing anything met.
func (p *JSONPrinter) Report(r Report, failure error) error {
	last := struct {
		Event string `json:"event"`
		Report
		Error string `json:"error,omitempty"`
	}{Event: EventReport, Report: r}
	if failure != nil {
		last.Error = failure.Error()
	}
	if p.err == nil {
		p.err = p.enc.Encode(last)
	}
	return p.err
}

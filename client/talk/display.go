package talk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"voicegw/audio"
	"voicegw/internal/textutil"
	"voicegw/protocol"
	"voicegw/registry/document"
)

// Display prints a conversation as it happens, for a person or as JSON lines. Event and Note are safe for concurrent use.
type Display struct {
	mu    sync.Mutex // held by Event and Note
	began time.Time  // of the first event

	// Fixed after NewDisplay.
	w        io.Writer
	terminal bool
	width    int
	json     *json.Encoder // writes each event and finally the report; nil for a person

	live     string // transcript on the line being redrawn; empty without one
	unfinal  []protocol.Transcript
	lastAtMS int64
	asking   bool   // a person types an answer: nothing is redrawn
	writing  string // text on the open line; empty without one
	err      error  // the first write error
}

const maxUnfinal = 100

// NewDisplay returns a display that writes to out. On a terminal, transcripts grow in place; otherwise each is one line
// once final.
func NewDisplay(out io.Writer, asJSON bool) *Display {
	d := &Display{w: out}
	d.width, d.terminal = textutil.Width(out)
	if asJSON {
		d.json = json.NewEncoder(out)
		d.json.SetEscapeHTML(false)
	}
	return d
}

func (d *Display) encode(line any) {
	if d.err == nil {
		d.err = d.json.Encode(line)
	}
}

// Note prints an event of the call itself, which the conversation does not see.
func (d *Display) Note(text string) {
	d.mu.Lock()
	if d.began.IsZero() {
		d.began = time.Now()
	}
	at := time.Since(d.began)
	d.mu.Unlock()
	d.Event(Event{AtMS: at.Milliseconds(), Event: EventCall, Text: text})
}

// Event prints one event.
func (d *Display) Event(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began = time.Now().Add(-time.Duration(e.AtMS) * time.Millisecond)
	}
	if d.json != nil {
		d.encode(e)
		return
	}
	d.lastAtMS = e.AtMS
	switch m := e.Message.(type) {
	case *protocol.Transcript:
		d.transcript(m)
	case *protocol.TextDelta:
		d.textDelta(m)
	case *protocol.TextDone:
		d.textDone(m)
	case *protocol.VoiceSessionStart:
		d.invitation(m)
	case *protocol.UIImage:
		d.line("image", m.URL)
	case *protocol.SessionStarted:
		text := fmt.Sprintf("%s, model %s, %s", m.Provider, m.Model, m.SessionID)
		if m.Model == "" {
			text = m.SessionID // of a call, which does not show the model
		}
		d.line("session", text)
	case *protocol.AudioFlush:
		d.line("flush", m.Reason)
	case *protocol.ConfirmationRequest:
		d.confirmation(m)
	case *protocol.ConfirmationEnded:
		d.asking = false
		d.line("confirm", m.Tool+": "+m.Outcome)
	case *protocol.Timeout:
		d.line("timeout", m.Message)
	case *protocol.SessionEnding:
		d.line("session", "will end: "+m.Reason)
	case *protocol.SessionEnded:
		d.line("session", "ended: "+m.Reason)
		if m.Handback != nil {
			d.line("handback", m.Handback.Summary)
		}
	case *protocol.Error:
		d.line("error", fmt.Sprintf("%s (%s)", m.Message, m.Code))
	case nil:
		d.own(e)
	default:
		d.ofTool(m)
	}
}

func (d *Display) ofTool(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		d.line("tool", m.Tool+" …")
	case *protocol.ToolProgress:
		d.line("tool", toolProgress(m))
	case *protocol.JobProgress:
		d.line("job", withFraction(m.Name+": "+m.Text, m.Fraction))
	case *protocol.ToolMessage:
		d.line("tool", fmt.Sprintf("%s says %s: %s", m.Tool, m.Name, m.Data))
	case *protocol.ToolEnded:
		d.line("tool", toolEnded(m))
	}
}

// ownLines are the lines of the client's own events, with the event's text in place of $. An empty who is the turn.
var ownLines = map[string]struct{ who, text string }{
	EventSpeaking:     {"", "speaking $"},
	EventTyped:        {"", "typed $"},
	EventPending:      {"", "answering the pending request"},
	EventInterrupting: {"", "interrupts the answer"},
	EventFailed:       {"", "not answered: $"},
	EventAnswered:     {"", "answered"},
	EventAsking:       {"confirm", "Approve? [y/N]  $"},
	EventApproving:    {"confirm", "approving"},
	EventDeclining:    {"confirm", "declining"},
	EventUnanswered:   {"confirm", "it has expired"},
	EventUnanswerable: {"confirm", "it cannot be answered here and will expire; use --approve or --deny"},
	EventDisconnected: {"network", "the connection was lost ($); reconnecting"},
	EventRetrying:     {"network", "reconnecting failed: $"},
	EventMoving:       {"network", "$"},
	EventResumed:      {"network", "$"},
	EventNotResumed:   {"network", "$"},
	EventSpeechLost:   {"network", "$"},
	EventCall:         {"call", "$"},
}

func (d *Display) own(e Event) {
	l, shown := ownLines[e.Event]
	if !shown {
		return
	}
	if l.who == "" {
		l.who = "before"
		if e.Turn > 0 {
			l.who = fmt.Sprint("turn ", e.Turn)
		}
	}
	switch e.Event {
	case EventAsking:
		d.asking = true
		e.Text = document.Shorten(exact(e.Text), maxPrompt)
	case EventApproving, EventDeclining, EventUnanswered:
		d.asking = false
	}
	d.line(l.who, strings.TrimSpace(strings.Replace(l.text, "$", e.Text, 1)))
}

func (d *Display) confirmation(m *protocol.ConfirmationRequest) {
	args := m.Args
	if preview := exact(m.Preview); preview != exact(m.Tool+" "+string(args)) {
		d.line("confirm", preview) // a tool without a preview shows its arguments
	}
	var indented bytes.Buffer
	if len(args) > maxArgsLine && json.Indent(&indented, args, "", "  ") == nil {
		args = indented.Bytes()
	}
	for i, line := range strings.Split(string(args), "\n") {
		if i == 0 {
			d.line("confirm", exact(m.Tool+" "+line))
			continue
		}
		d.line("", exact(line))
	}
}

// maxPrompt bounds the preview in the prompt, in characters; it was printed in full before.
const maxPrompt = 60

const maxArgsLine = 100

// exact escapes invisible and direction-changing characters, so that a text can't be mistaken for another.
func exact(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func toolProgress(m *protocol.ToolProgress) string {
	text := m.Tool + ": " + m.Text
	if m.Text == "" {
		text = fmt.Sprintf("%s still running after %s", m.Tool, seconds(m.DurationMS))
	}
	return withFraction(text, m.Fraction)
}

func withFraction(text string, fraction *float64) string {
	if fraction != nil {
		text += fmt.Sprintf(" (%.0f %%)", 100**fraction)
	}
	return text
}

func toolEnded(m *protocol.ToolEnded) string {
	text := fmt.Sprintf("%s ok after %d ms", m.Tool, m.DurationMS)
	if !m.OK {
		text = fmt.Sprintf("%s failed after %d ms", m.Tool, m.DurationMS)
	}
	if m.Deduplicated {
		text += ", answered from the cache"
	}
	var clamped map[string]struct{ Requested, Applied json.Number }
	if json.Unmarshal(m.Clamped, &clamped) == nil {
		for _, name := range slices.Sorted(maps.Keys(clamped)) {
			text += fmt.Sprintf(", %s %s -> %s", name, clamped[name].Requested, clamped[name].Applied)
		}
	}
	var failure struct{ Type, Message string }
	switch err := json.Unmarshal(m.Error, &failure); {
	case err != nil || failure.Type == "":
	case m.Asks():
		text = m.Tool + " waits for approval"
	default:
		text += ": " + failure.Type + ": " + failure.Message
	}
	return text
}

func (d *Display) transcript(m *protocol.Transcript) {
	if m.Final {
		d.unfinal = slices.DeleteFunc(d.unfinal, func(t protocol.Transcript) bool { return t.ID == m.ID })
		if m.Text != "" {
			d.line(m.Role, m.Text)
		}
		return
	}
	if i := slices.IndexFunc(d.unfinal, func(t protocol.Transcript) bool { return t.ID == m.ID }); i >= 0 {
		d.unfinal[i] = *m
	} else {
		d.unfinal = append(d.unfinal[max(len(d.unfinal)-maxUnfinal+1, 0):], *m)
	}
	if d.terminal && !d.asking {
		d.live = m.ID
		text := []rune(textutil.Printable(d.prefix(m.Role) + m.Text))
		if len(text) >= d.width {
			// The end is new.
			head := []rune(d.prefix(m.Role))
			text = append(append(head, '…'), text[len(text)-max(d.width-len(head)-2, 0):]...)
		}
		d.write("\r\x1b[K" + string(text))
	}
}

func (d *Display) textDelta(m *protocol.TextDelta) {
	if d.writing != m.ItemID {
		d.closeText()
		d.write(d.prefix("assistant"))
		d.writing = m.ItemID
	}
	indent := "\n" + strings.Repeat(" ", len(d.prefix("")))
	for i, line := range strings.Split(m.Text, "\n") {
		if i > 0 {
			d.write(indent)
		}
		d.write(textutil.Printable(line))
	}
}

func (d *Display) textDone(m *protocol.TextDone) {
	if d.writing != m.ItemID {
		d.line("assistant", m.Text)
	}
	d.closeText()
	if m.Cut {
		d.line("", "(cut off at the model's length limit)")
	}
}

func (d *Display) closeText() {
	if d.writing != "" {
		d.writing = ""
		d.write("\n")
	}
}

func (d *Display) invitation(m *protocol.VoiceSessionStart) {
	d.line("voice", "a voice session is ready until "+m.ExpiresAt.Local().Format("15:04:05")+": "+m.SessionID)
	if m.PendingRequest != "" {
		d.line("voice", "it begins with: "+m.PendingRequest)
	}
}

func (d *Display) prompt(who string) {
	d.closeText()
	d.write(d.prefix(who))
}

func (d *Display) line(who, text string) {
	if d.json != nil {
		return
	}
	d.closeText()
	if d.live != "" {
		d.write("\r\x1b[K")
		d.live = ""
	}
	d.write(textutil.Printable(d.prefix(who)+text) + "\n")
}

func (d *Display) prefix(who string) string {
	return fmt.Sprintf("%6.1f s  %-9s  ", float64(d.lastAtMS)/1000, who)
}

func (d *Display) write(s string) {
	if d.err == nil {
		_, d.err = io.WriteString(d.w, s)
	}
}

func (d *Display) report(r Report, failure error) error {
	if d.json == nil {
		d.table(r)
		return errors.Join(failure, d.err)
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
	return errors.Join(failure, d.err)
}

func (d *Display) table(r Report) {
	for _, m := range d.unfinal {
		d.line(m.Role, m.Text+" …")
	}
	d.unfinal = nil
	if d.live != "" {
		d.line("", "")
	}
	if len(r.Turns) > 0 {
		d.write("\n" + Table(r))
	}
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

// Table formats a report with a line for each turn.
func Table(r Report) string {
	rows := [][]string{{"turn", "said", "answered", "first audio", "answer", "heard", "stopped after", "tokens in/out"}}
	for i, t := range r.Turns {
		first := "-"
		if t.FirstAudioMS != nil {
			first = fmt.Sprintf("%d ms", *t.FirstAudioMS)
		}
		name := said(t)
		if r := []rune(name); len(r) > 24 {
			name = "…" + string(r[len(r)-23:])
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), textutil.Printable(name), textutil.YesNo(t.Answered), first, seconds(t.AnswerMS),
			seconds(t.HeardMS), stopped(t.Interruption), fmt.Sprintf("%d/%d", t.Usage.InputTokens, t.Usage.OutputTokens)})
	}
	return textutil.Table(nil, rows)
}

func said(t TurnReport) string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Pending:
		return "(asked before)"
	case t.Typed:
		return "(text)"
	default:
		return "(audio)"
	}
}

func stopped(i *Interruption) string {
	switch {
	case i == nil:
		return "-"
	case i.FlushMS == nil:
		return "no flush"
	default:
		return fmt.Sprintf("%d ms", max(*i.FlushMS, i.LastAudioMS))
	}
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

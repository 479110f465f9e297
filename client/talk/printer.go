package talk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"voicegw/internal/textutil"
	"voicegw/protocol"
)

// Printer prints a conversation as it happens. It is not safe for concurrent use.
type Printer struct {
	// Fixed after NewPrinter.
	w        io.Writer
	terminal bool
	width    int

	live      string // transcript on the line being redrawn; empty without one
	unfinal   []protocol.Transcript
	lastAtMS  int64
	asking    bool   // a person types an answer: nothing is redrawn
	writing   string // text on the open line; empty without one
	writeFail error
}

// maxUnfinal bounds the transcripts that are not final yet.
const maxUnfinal = 100

// NewPrinter writes to w. On a terminal of this width, transcripts grow in place; otherwise each is one line once
// final.
func NewPrinter(w io.Writer, terminal bool, width int) *Printer {
	if width <= 0 {
		width = 80
	}
	return &Printer{w: w, terminal: terminal, width: width}
}

// Event prints one event.
func (p *Printer) Event(e Event) {
	p.lastAtMS = e.AtMS
	switch m := e.Message.(type) {
	case *protocol.Transcript:
		p.transcript(m)
	case *protocol.TextDelta:
		p.textDelta(m)
	case *protocol.TextDone:
		p.textDone(m)
	case *protocol.VoiceSessionStart:
		p.invitation(m)
	case *protocol.UIImage:
		p.line("image", m.URL)
	case *protocol.SessionStarted:
		p.line("session", fmt.Sprintf("%s, model %s, %s", m.Provider, m.Model, m.SessionID))
	case *protocol.AudioFlush:
		p.line("flush", m.Reason)
	case *protocol.ToolStarted, *protocol.ToolProgress, *protocol.JobProgress, *protocol.ToolMessage, *protocol.ToolEnded:
		p.ofTool(m)
	case *protocol.ConfirmationRequest:
		p.confirmation(m)
	case *protocol.ConfirmationEnded:
		p.asking = false
		p.line("confirm", m.Tool+": "+m.Outcome)
	case *protocol.Timeout:
		p.line("timeout", m.Message)
	case *protocol.SessionEnding:
		p.line("session", "will end: "+m.Reason)
	case *protocol.SessionEnded:
		p.line("session", "ended: "+m.Reason)
		if m.Handback != nil {
			p.line("handback", m.Handback.Summary)
		}
	case *protocol.Error:
		p.line("error", fmt.Sprintf("%s (%s)", m.Message, m.Code))
	case nil:
		p.own(e)
	}
}

func (p *Printer) ofTool(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		p.line("tool", m.Tool+" …")
	case *protocol.ToolProgress:
		p.line("tool", toolProgress(m))
	case *protocol.JobProgress:
		p.line("job", withFraction(m.Name+": "+m.Text, m.Fraction))
	case *protocol.ToolMessage:
		p.line("tool", fmt.Sprintf("%s says %s: %s", m.Tool, m.Name, m.Data))
	case *protocol.ToolEnded:
		p.line("tool", toolEnded(m))
	}
}

func (p *Printer) own(e Event) {
	who := "turn " + fmt.Sprint(e.Turn)
	if e.Turn == 0 {
		who = "before"
	}
	switch e.Event {
	case EventSpeaking, EventTyped:
		p.line(who, strings.TrimSpace(e.Event+" "+e.Text))
	case EventPending:
		p.line(who, "answering the pending request")
	case EventInterrupting:
		p.line(who, "interrupts the answer")
	case EventFailed:
		p.line(who, "not answered: "+e.Text)
	case EventAnswered:
		p.line(who, "answered")
	case EventAsking:
		p.asking = true
		p.line("confirm", "Approve? [y/N]  "+clip(exact(e.Text), maxPrompt))
	case EventApproving, EventDeclining:
		p.asking = false
		p.line("confirm", e.Event)
	case EventUnanswered:
		p.asking = false
		p.line("confirm", "it has expired")
	case EventDisconnected:
		p.line("network", "the connection was lost ("+e.Text+"); reconnecting")
	case EventRetrying:
		p.line("network", "reconnecting failed: "+e.Text)
	case EventMoving, EventResumed, EventNotResumed, EventSpeechLost:
		p.line("network", e.Text)
	case EventUnanswerable:
		p.line("confirm", "no one can answer here and it will expire; use --approve or --deny")
	}
}

// confirmation prints an approval request in full.
func (p *Printer) confirmation(m *protocol.ConfirmationRequest) {
	args := m.Args
	if preview := exact(m.Preview); preview != exact(m.Tool+" "+string(args)) {
		p.line("confirm", preview) // a tool without a preview shows its arguments
	}
	var indented bytes.Buffer
	if len(args) > maxArgsLine && json.Indent(&indented, args, "", "  ") == nil {
		args = indented.Bytes()
	}
	for i, line := range strings.Split(string(args), "\n") {
		if i == 0 {
			p.line("confirm", exact(m.Tool+" "+line))
			continue
		}
		p.line("", exact(line))
	}
}

// maxPrompt bounds the preview in the prompt, in characters; it was printed in full before.
const maxPrompt = 60

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// maxArgsLine bounds arguments printed on one line, in bytes.
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

// toolEnded describes a call's result: its time, whether the answer was cached, lowered arguments, or the error.
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

// transcript prints a final text, or redraws the line of a growing one.
func (p *Printer) transcript(m *protocol.Transcript) {
	if m.Final {
		p.unfinal = slices.DeleteFunc(p.unfinal, func(t protocol.Transcript) bool { return t.ID == m.ID })
		if m.Text != "" {
			p.line(m.Role, m.Text)
		}
		return
	}
	switch i := slices.IndexFunc(p.unfinal, func(t protocol.Transcript) bool { return t.ID == m.ID }); {
	case i >= 0:
		p.unfinal[i] = *m
	case len(p.unfinal) >= maxUnfinal:
		p.unfinal = append(p.unfinal[1:], *m)
	default:
		p.unfinal = append(p.unfinal, *m)
	}
	if p.terminal && !p.asking {
		p.live = m.ID
		text := []rune(textutil.Printable(p.prefix(m.Role) + m.Text))
		if len(text) >= p.width {
			// The end is new.
			head := []rune(p.prefix(m.Role))
			text = append(append(head, '…'), text[len(text)-max(p.width-len(head)-2, 0):]...)
		}
		p.write("\r\x1b[K" + string(text))
	}
}

// textDelta prints the next piece of a text.
func (p *Printer) textDelta(m *protocol.TextDelta) {
	if p.writing != m.ItemID {
		p.closeText()
		p.write(p.prefix("assistant"))
		p.writing = m.ItemID
	}
	lines := strings.Split(m.Text, "\n")
	for i, line := range lines {
		if i > 0 {
			p.write("\n" + strings.Repeat(" ", len(p.prefix(""))))
		}
		p.write(textutil.Printable(line))
	}
}

// textDone ends a text and prints one that had no pieces.
func (p *Printer) textDone(m *protocol.TextDone) {
	if p.writing != m.ItemID {
		p.line("assistant", m.Text)
	}
	p.closeText()
	if m.Cut {
		p.line("", "(cut off at the model's length limit)")
	}
}

func (p *Printer) closeText() {
	if p.writing != "" {
		p.writing = ""
		p.write("\n")
	}
}

// invitation prints how to continue by voice.
func (p *Printer) invitation(m *protocol.VoiceSessionStart) {
	p.line("voice", "a voice session is ready until "+m.ExpiresAt.Local().Format("15:04:05")+": "+m.SessionID)
	if m.PendingRequest != "" {
		p.line("voice", "it begins with: "+m.PendingRequest)
	}
}

// Prompt asks for a line; who labels it.
func (p *Printer) Prompt(who string) {
	p.closeText()
	p.write(p.prefix(who))
}

// line prints a line above the one being redrawn.
func (p *Printer) line(who, text string) {
	p.closeText()
	if p.live != "" {
		p.write("\r\x1b[K")
		p.live = ""
	}
	p.write(textutil.Printable(p.prefix(who)+text) + "\n")
}

func (p *Printer) prefix(who string) string {
	return fmt.Sprintf("%6.1f s  %-9s  ", float64(p.lastAtMS)/1000, who)
}

func (p *Printer) write(s string) {
	if p.writeFail == nil {
		_, p.writeFail = io.WriteString(p.w, s)
	}
}

// Report prints unfinished lines and the table. It returns the first write error.
func (p *Printer) Report(r Report) error {
	for _, m := range p.unfinal {
		p.line(m.Role, m.Text+" …")
	}
	p.unfinal = nil
	if p.live != "" {
		p.line("", "")
	}
	if len(r.Turns) > 0 {
		p.write("\n" + Table(r))
	}
	return p.writeFail
}

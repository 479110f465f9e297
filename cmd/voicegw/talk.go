package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/audio"
	"voicegw/client/talk"
	"voicegw/protocol"
)

// talkFlags are the flags of talk.
type talkFlags struct {
	Audio          []string      `help:"WAV file to speak, or - for standard input (WAV, or raw PCM16 mono at --rate); may be given several times." placeholder:"FILE" sep:"none"`
	Text           []string      `help:"Text to type; may be given several times, between --audio, in the order of the conversation." placeholder:"TEXT" sep:"none"`
	Ticket         string        `help:"Ticket of a voice session that was made for you (voice_session_start, POST /v1/sessions); - reads it from standard input. What was asked in writing is answered first." placeholder:"TICKET"`
	InterruptAfter time.Duration `help:"Begin the next turn this long after the first audio of an answer; with one turn, say it again." placeholder:"TIME"`
	Provider       string        `help:"Provider to ask for; the gateway's default without." placeholder:"NAME"`
	Voice          string        `help:"Voice to ask for." placeholder:"NAME"`
	URL            string        `help:"Voice endpoint of the gateway." default:"ws://127.0.0.1:8080/v1/voice" placeholder:"URL" name:"url"`
	Out            string        `help:"WAV file to write what was heard to." placeholder:"FILE"`
	JSON           bool          `help:"Write one JSON line for each event, and a report as the last." name:"json"`
	Approve        bool          `help:"Approve whatever a tool asks for. Without this or --deny the person at the terminal is asked; with --json nobody is." xor:"answer"`
	Deny           bool          `help:"Decline whatever a tool asks for." xor:"answer"`
	Rate           int           `help:"Rate of raw PCM on standard input in Hz." default:"16000"`
	InputRate      int           `help:"Rate to send in Hz; the recording's own, or 16000, without." placeholder:"HZ"`
	OutputRate     int           `help:"Rate to receive in Hz; 24000 without." placeholder:"HZ"`
	Timeout        time.Duration `help:"Give up after hearing nothing for this long." default:"30s"`
}

// maxStdin bounds what is read from standard input.
const maxStdin = 256 << 20

// talk holds a conversation and shows it.
func (p Process) talk(ctx context.Context, flags talkFlags, parsed *kong.Context) int {
	options, err := p.talkOptions(flags, parsed)
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	var out *os.File
	if flags.Out != "" {
		// Before the conversation: nobody wants to learn afterwards that it cannot be kept.
		out, err = os.Create(flags.Out)
		if err != nil {
			p.complain("--out: %v", err)
			return exitUsage
		}
	}
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	options, done := p.approval(options, flags)
	defer done()
	err = p.hold(ctx, options, flags.JSON, out)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, talk.ErrOptions):
		p.complain("%v", err)
		return exitUsage
	default:
		p.complain("%v", err)
		return exitFailure
	}
}

// approval decides who answers when a tool needs the user's approval: a flag, the
// person at the terminal, or nobody. done waits until the terminal is let go.
func (p Process) approval(o talk.Options, flags talkFlags) (_ talk.Options, done func()) {
	nothing := func() {}
	switch _, isTerminal := terminal(p.Stdin); {
	case flags.Approve:
		o.Approval = talk.ApprovalYes
	case flags.Deny:
		o.Approval = talk.ApprovalNo
	case isTerminal && !flags.JSON:
		// Opened again: reading it can be ended then, that of standard input cannot.
		tty, err := os.Open("/dev/tty")
		if err != nil {
			return o, nothing
		}
		if err := tty.SetReadDeadline(time.Time{}); err != nil {
			return o, func() { _ = tty.Close() }
		}
		o.Approval = talk.ApprovalAsk
		o.Answers, done = typedLines(tty)
		return o, done
	}
	return o, nothing
}

// typedLines reads lines until the end of tty, or until stop is called, which closes it.
func typedLines(tty *os.File) (lines <-chan string, stop func()) {
	// From the reader, to the conversation, closed by the reader.
	out := make(chan string)
	stopping := make(chan struct{}) // closed by stop
	stopped := make(chan struct{})  // closed by the reader
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
		// It was tried when it was opened; the reader ends with it.
		_ = tty.SetReadDeadline(time.Now())
		<-stopped
		_ = tty.Close()
	}
}

// hold runs the conversation, shows it and keeps what was heard.
func (p Process) hold(ctx context.Context, options talk.Options, asJSON bool, out *os.File) error {
	width, isTerminal := terminal(p.Stdout)
	human, lines := talk.NewPrinter(p.Stdout, isTerminal, width), talk.NewJSONPrinter(p.Stdout)
	options.Events, options.KeepAudio = human.Event, out != nil
	if asJSON {
		options.Events = lines.Event
	}
	report, err := talk.Run(ctx, options)
	if out != nil {
		err = errors.Join(err, keep(out, report))
	}
	if asJSON {
		return errors.Join(err, lines.Report(report, err))
	}
	return errors.Join(err, human.Report(report))
}

// keep writes what was heard and closes the file.
func keep(out *os.File, report talk.Report) error {
	w := bufio.NewWriter(out)
	err := audio.WriteWAV(w, report.OutputRate, report.Audio)
	return errors.Join(err, w.Flush(), out.Close())
}

func (p Process) talkOptions(flags talkFlags, parsed *kong.Context) (talk.Options, error) {
	o := talk.Options{
		URL: flags.URL, Provider: flags.Provider, Voice: flags.Voice, InterruptAfter: flags.InterruptAfter,
		InputRate: flags.InputRate, OutputRate: flags.OutputRate, Patience: flags.Timeout,
	}
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be longer than nothing")
	}
	if flags.InterruptAfter < 0 {
		return o, errors.New("--interrupt-after must not be negative")
	}
	recordings, texts := flags.Audio, flags.Text
	stdinTaken := false
	for _, at := range parsed.Path {
		switch {
		case at.Flag == nil:
		case at.Flag.Name == "audio":
			name := recordings[0]
			recordings = recordings[1:]
			if name == "-" && stdinTaken {
				return o, errors.New("--audio - can be given once: standard input is over after it")
			}
			stdinTaken = stdinTaken || name == "-"
			clip, err := p.readClip(name, flags.Rate)
			if err != nil {
				return o, fmt.Errorf("--audio %s: %w", name, err)
			}
			o.Turns = append(o.Turns, talk.Turn{Name: filepath.Base(name), Audio: clip})
		case at.Flag.Name == "text":
			if texts[0] == "" {
				return o, errors.New("--text is empty")
			}
			o.Turns = append(o.Turns, talk.Turn{Text: texts[0]})
			texts = texts[1:]
		}
	}
	if flags.Ticket == "-" {
		if stdinTaken {
			return o, errors.New("--ticket - and --audio - cannot both read standard input")
		}
		ticket, err := readTicket(p.Stdin)
		if err != nil {
			return o, err
		}
		flags.Ticket = ticket
	}
	if o.Ticket = flags.Ticket; o.Ticket == "" && len(o.Turns) == 0 {
		return o, errors.New("there is nothing to say: give --audio FILE or --text TEXT, or a --ticket")
	}
	return o, nil
}

// readTicket reads the one line that a ticket is.
func readTicket(r io.Reader) (string, error) {
	line, err := io.ReadAll(io.LimitReader(r, protocol.MaxTicketBytes+2))
	ticket := strings.TrimSpace(string(line))
	switch {
	case err != nil:
		return "", fmt.Errorf("--ticket -: %w", err)
	case ticket == "" || len(ticket) > protocol.MaxTicketBytes || strings.ContainsAny(ticket, " \t\r\n"):
		return "", errors.New("--ticket -: standard input holds no ticket")
	}
	return ticket, nil
}

// readClip reads a recording: a WAV file, or from standard input also raw PCM at
// rate Hz.
func (p Process) readClip(name string, rate int) (audio.Clip, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return audio.Clip{}, err
		}
		// It was only read.
		defer func() { _ = f.Close() }()
		return nonEmpty(audio.ReadWAV(bufio.NewReader(f)))
	}
	data, err := io.ReadAll(io.LimitReader(p.Stdin, maxStdin+1))
	switch {
	case err != nil:
		return audio.Clip{}, err
	case len(data) > maxStdin:
		return audio.Clip{}, fmt.Errorf("more than %d bytes", maxStdin)
	case bytes.HasPrefix(data, []byte("RIFF")):
		return nonEmpty(audio.ReadWAV(bytes.NewReader(data)))
	case rate < 4000 || rate > 384000:
		return audio.Clip{}, fmt.Errorf("--rate must be from 4000 to 384000 Hz, not %d", rate)
	case len(data)%audio.BytesPerSample != 0:
		return audio.Clip{}, errors.New("an odd number of bytes is no PCM16; give 16-bit samples, or a WAV file")
	}
	return nonEmpty(audio.Clip{Rate: rate, PCM: data}, nil)
}

func nonEmpty(clip audio.Clip, err error) (audio.Clip, error) {
	if err == nil && len(clip.PCM) == 0 {
		err = errors.New("it holds no audio")
	}
	return clip, err
}

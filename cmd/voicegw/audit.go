package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/audit"
	"voicegw/config"
	"voicegw/registry"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	operatorFlags
	Open        bool         `help:"Ask a running gateway what was approved and of which nobody knows what came, because it was ended in between."`
	File        string       `help:"File to read, or - for standard input; the configured one without. Its full files are read with it." placeholder:"FILE"`
	Session     string       `help:"Only this session: its id, or how it begins." placeholder:"ID"`
	User        userIdentity `help:"Only this user." placeholder:"ID"`
	Tool        string       `help:"Only this tool." placeholder:"NAME"`
	Event       string       `help:"Only this event: tool_execution, confirmation, intent_refused or damage_accepted." placeholder:"EVENT"`
	Since       string       `help:"Only from this time on: RFC 3339, a day as in 2026-11-20, or how long ago as in 2h or 3d." placeholder:"TIME"`
	Until       string       `help:"Only before this time, written as that of --since." placeholder:"TIME"`
	Failed      bool         `help:"Only what was not ok."`
	Error       []string     `help:"Only failures of this type, such as TRANSIENT; may be given several times." placeholder:"TYPE"`
	Undelivered bool         `help:"Only calls whose answer the model was not given."`
	Limit       int          `help:"Only the newest N of them; all without." placeholder:"N"`
	JSON        bool         `help:"Write the lines as they are." name:"json"`
	Follow      bool         `help:"Go on as lines come, until interrupted." short:"f"`
}

// audit reads the record of what tools did.
func (p Process) audit(ctx context.Context, flags auditFlags, parsed *kong.Context) int {
	filter, err := flags.filter(time.Now())
	if err = errors.Join(err, flags.checkOpen()); err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	if flags.Open {
		return p.auditOpen(ctx, flags, parsed)
	}
	path, err := p.auditPath(flags, parsed)
	if err != nil {
		p.complainAll(err)
		return exitUsage
	}
	width, isTerminal := terminal(p.Stdout)
	show := &auditPrinter{
		out: bufio.NewWriter(p.Stdout), filter: filter, limit: flags.Limit, json: flags.JSON,
		width: width, colour: isTerminal && variable(p.Environ, "NO_COLOR") == "",
	}
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	report, err := p.readAudit(ctx, path, flags.Follow, show)
	err = errors.Join(err, show.end())
	p.tellAudit(report)
	switch {
	case errors.Is(err, errSignal):
		p.complain("%v", err)
		return exitFailure
	case errors.Is(err, fs.ErrNotExist):
		p.complain("there is no audit at %s (yet); name another file with --file", path)
		return exitFailure
	case err != nil:
		p.complain("%v", err)
		return exitFailure
	case show.shown == 0 && !flags.JSON && !flags.Follow:
		p.complain("no record matches, of %s", count(report.Records, "record"))
	}
	return exitOK
}

// auditPath is the file to read. The configuration is only asked where no file is named.
func (p Process) auditPath(flags auditFlags, parsed *kong.Context) (string, error) {
	if flags.File != "" {
		if flags.File == audit.StdoutPath && flags.Follow {
			return "", errors.New("--follow is for files: standard input is read to its end anyway")
		}
		return flags.File, nil
	}
	cfg, _, err := p.load(serveFlags{Config: flags.Config, Set: flags.Set}, parsed)
	if err != nil {
		return "", err
	}
	dir := ""
	if cfg.Audit.File == "" { // otherwise nobody needs a folder
		if dir, err = p.dataDir(cfg); err != nil {
			return "", err
		}
	}
	path := auditFile(cfg, dir)
	if path == config.Stdout {
		return "", errors.New("audit.file is -: the gateway writes the audit to its standard output; keep that in a file and name it with --file, or pipe it to --file -")
	}
	return string(path), nil
}

func (p Process) readAudit(ctx context.Context, path string, follow bool, show *auditPrinter) (audit.Report, error) {
	switch {
	case path == audit.StdoutPath:
		return audit.Read(p.Stdin, show.record)
	case follow:
		return audit.Follow(ctx, path, audit.FollowOptions{CaughtUp: show.caughtUp}, show.record)
	default:
		return audit.ReadFiles(ctx, path, show.record)
	}
}

// tellAudit says what of the files was no record.
func (p Process) tellAudit(report audit.Report) {
	if report.Foreign > 0 {
		p.complain("%s skipped: no records of the audit, or torn by a crash", count(report.Foreign, "line"))
	}
	if report.TooLong > 0 {
		p.complain("%s skipped: longer than %d bytes", count(report.TooLong, "line"), audit.MaxLine)
	}
	if report.Torn {
		p.complain("the last line is not complete: it is being written, or the gateway was killed")
	}
	for _, err := range report.Unreadable {
		p.complain("not all could be read: %v", err)
	}
}

// filter makes of the flags what they mean at a time.
func (f auditFlags) filter(now time.Time) (audit.Filter, error) {
	filter := audit.Filter{
		Session: f.Session, User: string(f.User), Tool: strings.ReplaceAll(f.Tool, "-", "_"), Event: audit.Event(f.Event),
		Failed: f.Failed, Undelivered: f.Undelivered,
	}
	events := []audit.Event{"", audit.EventTool, audit.EventConfirmation, audit.EventIntent, audit.EventDamage}
	if !slices.Contains(events, filter.Event) {
		return filter, fmt.Errorf("--event is %q and must be one of tool_execution, confirmation, intent_refused, damage_accepted", f.Event)
	}
	for _, name := range f.Error {
		t := registry.ErrorType(strings.ToUpper(name))
		if !slices.Contains(registry.ErrorTypes(), t) {
			return filter, fmt.Errorf("--error is %q and must be one of %s", name, errorTypes())
		}
		filter.Errors = append(filter.Errors, t)
	}
	if f.Limit < 0 {
		return filter, errors.New("--limit must not be negative")
	}
	var err error
	if filter.Since, err = timeOf("--since", f.Since, now); err != nil {
		return filter, err
	}
	if filter.Until, err = timeOf("--until", f.Until, now); err != nil {
		return filter, err
	}
	if !filter.Since.IsZero() && !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return filter, errors.New("--until must be later than --since")
	}
	return filter, nil
}

func errorTypes() string {
	var names []string
	for _, t := range registry.ErrorTypes() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// timeOf reads a moment: RFC 3339, a day in UTC, or how long ago. Empty is zero.
func timeOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, notNumber := strconv.ParseUint(days, 10, 16)
		ago, err = time.Duration(n)*24*time.Hour, notNumber
	}
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s is %q and must be a time as in 2026-11-20T10:00:00Z, a day as in 2026-11-20, or how long ago as in 2h or 3d", flag, text)
	}
	return now.Add(-ago), nil
}

// auditPrinter shows records.
type auditPrinter struct {
	out    *bufio.Writer
	filter audit.Filter
	limit  int // how many are shown of those there are at first; 0 for all
	json   bool
	width  int // of the terminal; 0 if it is none
	colour bool

	newest [][]byte // at most limit rows, a ring; nil once they are shown
	next   int      // where in newest the oldest is once it is full
	live   bool     // each record is shown at once
	shown  int
}

// record takes what was read.
func (a *auditPrinter) record(r audit.Record, line []byte) error {
	if !a.filter.Match(r) {
		return nil
	}
	row := line
	if !a.json {
		row = []byte(a.row(r))
	}
	switch {
	case a.live || a.limit == 0:
		return a.show(row)
	case len(a.newest) < a.limit:
		a.newest = append(a.newest, slices.Clone(row))
	default:
		a.newest[a.next] = append(a.newest[a.next][:0], row...)
		a.next = (a.next + 1) % a.limit
	}
	return nil
}

// show writes a row, with the head of the table before the first.
func (a *auditPrinter) show(row []byte) error {
	if a.shown == 0 && !a.json {
		head := strings.Builder{}
		for i, c := range auditColumns {
			head.WriteString(pad(c.name, c.width, i < len(auditColumns)-1))
		}
		if _, err := a.out.WriteString(fit(strings.TrimRight(head.String(), " "), a.width) + "\n"); err != nil {
			return err
		}
	}
	a.shown++
	if _, err := a.out.Write(row); err != nil {
		return err
	}
	if err := a.out.WriteByte('\n'); err != nil || !a.live {
		return err
	}
	return a.out.Flush()
}

// caughtUp shows what was kept back; what comes now is new.
func (a *auditPrinter) caughtUp() error {
	for i := range a.newest {
		if err := a.show(a.newest[(a.next+i)%len(a.newest)]); err != nil {
			return err
		}
	}
	a.newest, a.live = nil, true
	return a.out.Flush()
}

// end shows what is left.
func (a *auditPrinter) end() error { return a.caughtUp() }

// auditColumns are the columns of the table. They are of a fixed width because rows
// are shown as they are read.
var auditColumns = []struct {
	name  string
	width int
}{
	{"TIME", 24}, {"SESSION", 14}, {"TURN", 4}, {"TOOL", 26}, {"OUTCOME", 22}, {"MS", 6}, {"BUDGET", 6}, {"CLAMPED", 14}, {"CONFIRMATION", 12}, {"EVIDENCE", 0},
}

// outcomeColumn is where in auditColumns the outcome is.
const outcomeColumn = 4

// row is a record as a row of the table, without its line break.
func (a *auditPrinter) row(r audit.Record) string {
	outcome, colour := outcomeOf(r)
	cells := []string{
		r.Time.UTC().Format(audit.TimeLayout), begin(r.SessionID, auditColumns[1].width), strconv.Itoa(r.TurnID), r.ToolID, outcome,
		strconv.FormatInt(r.DurationMS, 10), budgetOf(r), clampedOf(r), confirmationOf(r), evidenceOf(r),
	}
	var line strings.Builder
	from, to := 0, 0 // the outcome, in runes: an earlier cell may be wider than its column
	runes := 0
	for i, cell := range cells {
		text := pad(printable(cell), auditColumns[i].width, i < len(cells)-1)
		if i == outcomeColumn {
			from, to = runes, runes+len([]rune(printable(cell)))
		}
		runes += len([]rune(text))
		line.WriteString(text)
	}
	text := fit(strings.TrimRight(line.String(), " "), a.width)
	if whole := []rune(text); a.colour && to <= len(whole) {
		return string(whole[:from]) + colour + string(whole[from:to]) + "\x1b[0m" + string(whole[to:])
	}
	return text
}

// The colours of outcomes (ECMA-48 8.3.117).
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
)

// outcomeOf says in a word what became of a record's call.
func outcomeOf(r audit.Record) (outcome, colour string) {
	switch r.Event {
	case audit.EventConfirmation:
		return r.Confirmation, yellow
	case audit.EventIntent:
		names := make([]string, len(r.Refused))
		for i, t := range r.Refused {
			names[i] = string(t)
		}
		return strings.TrimSpace("refused " + strings.Join(names, ",")), yellow
	case audit.EventTool:
	default: // of a newer gateway
		return string(r.Event), yellow
	}
	switch {
	case !r.OK:
		outcome, colour = string(r.ErrorType), red
		if outcome == "" {
			outcome = "failed"
		}
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

// budgetOf is how many calls of the turn's are used and allowed: 2/3.
func budgetOf(r audit.Record) string {
	used, limit, ok := r.Calls()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%d/%d", used, limit)
}

// clampedOf lists what was lowered: top_k 10>3.
func clampedOf(r audit.Record) string {
	var list []string
	for name, c := range r.Clamped {
		list = append(list, fmt.Sprintf("%s %s>%d", name, c.Requested, c.Applied))
	}
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// evidenceOf lists the records that the model was given.
func evidenceOf(r audit.Record) string {
	if len(r.Evidence) == 0 {
		return "-"
	}
	return strings.Join(r.Evidence, ", ")
}

func confirmationOf(r audit.Record) string {
	text := r.Confirmation
	if r.Event == audit.EventConfirmation {
		text = "" // it is the outcome
	}
	if r.ConfirmedBy != "" {
		text += " by " + r.ConfirmedBy
	}
	if r.Reference != "" {
		text += " " + r.Reference
	}
	if text = strings.TrimSpace(text); text == "" {
		return "-"
	}
	return text
}

// pad fills a cell up to its column and the gap to the next.
func pad(cell string, width int, more bool) string {
	if !more {
		return cell
	}
	return cell + strings.Repeat(" ", max(width-len([]rune(cell)), 0)+2)
}

// fit cuts a line at the width of a terminal; 0 is no terminal.
func fit(line string, width int) string {
	if width < 2 {
		return line
	}
	return shorten(line, width)
}

// shorten cuts a text to so many characters.
func shorten(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}

// begin is the beginning of an id, which --session takes for the whole.
func begin(id string, width int) string {
	if r := []rune(id); len(r) > width {
		return string(r[:width])
	}
	return id
}

// printable replaces what a terminal might obey: a model makes up names as it likes.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

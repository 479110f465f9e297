package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/registry"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	operatorFlags
	Open        bool         `help:"Ask a running gateway for approved actions whose outcome is unknown, because the gateway was ended before they finished."`
	File        string       `help:"File to read, or - for standard input; the configured one without. Its full files are read with it." placeholder:"FILE"`
	Session     string       `help:"Only this session: its id, or how it begins." placeholder:"ID"`
	User        userIdentity `help:"Only this user." placeholder:"ID"`
	Tool        string       `help:"Only this tool." placeholder:"NAME"`
	Event       string       `help:"Only this event: tool_execution, confirmation, intent_refused, tool_note or damage_accepted." placeholder:"EVENT"`
	Since       string       `help:"Only from this time on: RFC 3339, a day as in 2026-11-20, or how long ago as in 2h or 3d." placeholder:"TIME"`
	Until       string       `help:"Only before this time, written as that of --since." placeholder:"TIME"`
	Failed      bool         `help:"Only what was not ok."`
	Error       []string     `help:"Only failures of this type, such as TRANSIENT; may be given several times." placeholder:"TYPE"`
	Undelivered bool         `help:"Only calls whose answer the model was not given."`
	Limit       int          `help:"Only the newest N of them; all without." placeholder:"N"`
	JSON        bool         `help:"Write the lines as they are." name:"json"`
	Follow      bool         `help:"Go on as lines come, until interrupted." short:"f"`
}

// Run reads the record of what tools did.
func (f auditFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	filter, err := f.filter(time.Now())
	if err = errors.Join(err, f.checkOpen()); err != nil {
		return usage(err)
	}
	if f.Open {
		return showList(ctx, p, f.operatorFlags, parsed, f.JSON, (*operator.Client).Approvals)
	}
	path, err := p.auditPath(f, parsed)
	if err != nil {
		return usage(err)
	}
	width, isTerminal := textutil.Width(p.Stdout)
	show := audit.NewTable(p.Stdout, audit.TableOptions{
		Filter: filter, Limit: f.Limit, JSON: f.JSON,
		Width: width, Colour: isTerminal && variable(p.Environ, "NO_COLOR") == "",
	})
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	report, err := p.readAudit(ctx, path, f.Follow, show)
	err = errors.Join(err, show.CaughtUp())
	for _, line := range report.Warnings() {
		p.complain("%s", line)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no audit at %s (yet); name another file with --file", path)
	case err != nil:
		return err
	case show.Shown() == 0 && !f.JSON && !f.Follow:
		p.complain("no record matches, of %s", textutil.Count(report.Records, "record"))
	}
	return nil
}

// auditPath returns the file to read. It reads the configuration only if no file is named.
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
	if cfg.Audit.File == "" { // otherwise no folder is needed
		if dir, err = p.dataDir(cfg); err != nil {
			return "", err
		}
	}
	path := auditFile(cfg, dir)
	if path == setting.Stdout {
		return "", errors.New("audit.file is -: the gateway writes the audit to its standard output; keep that in a file and name it with --file, or pipe it to --file -")
	}
	return string(path), nil
}

func (p Process) readAudit(ctx context.Context, path string, follow bool, show *audit.Table) (audit.Report, error) {
	switch {
	case path == audit.StdoutPath:
		return audit.Read(p.Stdin, show.Record)
	case follow:
		return audit.Follow(ctx, path, audit.FollowOptions{CaughtUp: show.CaughtUp}, show.Record)
	default:
		return audit.ReadFiles(ctx, path, show.Record)
	}
}

// filter returns the filter that the flags describe at that time.
func (f auditFlags) filter(now time.Time) (audit.Filter, error) {
	filter := audit.Filter{
		Session: f.Session, User: string(f.User), Tool: strings.ReplaceAll(f.Tool, "-", "_"), Event: audit.Event(f.Event),
		Failed: f.Failed, Undelivered: f.Undelivered,
	}
	events := []audit.Event{"", audit.EventTool, audit.EventConfirmation, audit.EventIntent, audit.EventNote, audit.EventJobStarted, audit.EventJobEnded, audit.EventJobCancelled, audit.EventJobTold, audit.EventDamage}
	if !slices.Contains(events, filter.Event) {
		return filter, fmt.Errorf("--event is %q and must be one of tool_execution, confirmation, intent_refused, tool_note, job_started, job_ended, job_cancelled, job_told, damage_accepted", f.Event)
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
	if filter.Since, err = audit.ParseTime("--since", f.Since, now); err != nil {
		return filter, err
	}
	if filter.Until, err = audit.ParseTime("--until", f.Until, now); err != nil {
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

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

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/server"
	"voicegw/internal/textutil"
	"voicegw/registry"
)

type auditFlags struct {
	operatorFlags
	Open        bool         `help:"Ask a running gateway for approved actions whose outcome is unknown, because a gateway stopped."`
	File        string       `help:"File to read, rotated files included; - is standard input (default: as configured)." placeholder:"FILE"`
	Session     string       `help:"Only this session: its id or a prefix of it." placeholder:"ID"`
	User        userIdentity `help:"Only this user." placeholder:"ID"`
	Tool        string       `help:"Only this tool." placeholder:"NAME"`
	Event       string       `help:"Only one event, such as tool_execution or claim_unmatched." placeholder:"EVENT"`
	Since       string       `help:"Only from this time: RFC 3339, a day such as 2026-11-20, or an age such as 3d." placeholder:"TIME"`
	Until       string       `help:"Only before this time, in the same format as --since." placeholder:"TIME"`
	Failed      bool         `help:"Only failures."`
	Error       []string     `help:"Only failures of this type, such as TRANSIENT; may be given several times." placeholder:"TYPE"`
	Undelivered bool         `help:"Only calls with answers that the model didn't receive."`
	Limit       int          `help:"Only the newest N." placeholder:"N"`
	JSON        bool         `help:"Write the JSON lines unchanged." name:"json"`
	Follow      bool         `help:"Continue with new lines until interrupted." short:"f"`
}

func (f auditFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	filter, err := f.filter(time.Now())
	if err = errors.Join(err, f.checkOpen()); err != nil {
		return usage(err)
	}
	if f.Open {
		o, err := f.ProvideClient(ctx, p, parsed)
		if err != nil {
			return err
		}
		open, err := o.Approvals(ctx)
		return p.showList(open, f.JSON, err)
	}
	path, err := p.auditPath(f, parsed)
	if err != nil {
		return usage(err)
	}
	width, isTerminal := textutil.Width(p.Stdout)
	show := audit.NewTable(p.Stdout, audit.TableOptions{
		Filter: filter, Limit: f.Limit, JSON: f.JSON,
		Width: width, Colour: isTerminal && p.Variable("NO_COLOR") == "",
	})
	report, err := p.readAudit(ctx, path, f.Follow, show)
	err = errors.Join(err, show.CaughtUp())
	for _, line := range report.Warnings() {
		p.complain("%s", line)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no audit file at %s; give another one with --file", path)
	case err != nil:
		return err
	case show.Shown() == 0 && !f.JSON && !f.Follow:
		p.complain("no match in %s", textutil.Count(report.Records, "record"))
	}
	return nil
}

// auditPath returns the file to read. It reads the configuration only without --file.
func (p Process) auditPath(flags auditFlags, parsed *kong.Context) (string, error) {
	if flags.File != "" {
		if flags.File == audit.StdoutPath && flags.Follow {
			return "", errors.New("--follow requires a file")
		}
		return flags.File, nil
	}
	cfg, _, err := p.load(flags.configFlags, false, parsed)
	if err != nil {
		return "", err
	}
	dir := ""
	if cfg.Audit.File == "" { // otherwise the data folder isn't needed
		if dir, err = p.DataDir(cfg); err != nil {
			return "", err
		}
	}
	path := server.AuditFile(cfg, dir)
	if path == setting.Stdout {
		return "", errors.New("audit.file is -: the gateway writes the audit to standard output. Save it and use --file FILE, " +
			"or pipe it to --file -")
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

func (f auditFlags) filter(now time.Time) (audit.Filter, error) {
	filter := audit.Filter{
		Session: f.Session, User: string(f.User), Tool: strings.ReplaceAll(f.Tool, "-", "_"), Event: audit.Event(f.Event),
		Failed: f.Failed, Undelivered: f.Undelivered,
	}
	const events = "tool_execution, confirmation, intent_refused, tool_note, job_started, job_ended, job_cancelled, job_told, " +
		"claim_unmatched, exact_sentence, answer_stopped, damage_accepted"
	if f.Event != "" && !slices.Contains(strings.Split(events, ", "), f.Event) {
		return filter, fmt.Errorf("--event is %q; use one of %s", f.Event, events)
	}
	for _, name := range f.Error {
		t := registry.ErrorType(strings.ToUpper(name))
		if !slices.Contains(registry.ErrorTypes(), t) {
			known := strings.Trim(strings.ReplaceAll(fmt.Sprint(registry.ErrorTypes()), " ", ", "), "[]")
			return filter, fmt.Errorf("--error is %q; use one of %s", name, known)
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

func (f auditFlags) checkOpen() error {
	if !f.Open {
		if f.URL != "" {
			return errors.New("--url requires --open: other records are read from files")
		}
		return nil
	}
	if f.File != "" || f.Session != "" || f.User != "" || f.Tool != "" || f.Event != "" || f.Since != "" || f.Until != "" ||
		f.Failed || len(f.Error) > 0 || f.Undelivered || f.Limit != 0 || f.Follow {
		return errors.New("--open supports only --json, --url and --api-key")
	}
	return nil
}

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/internal/audit"
)

// evidence is all observations at the end.
type evidence struct {
	visits []*visit
	runs   []*run
	tap    *wiretap
	side   *gatewaySide
	links  *linkSide
	log    *chaosLog
	moods  *moods
	file   []audit.Record // of all gateways
	stream []audit.Record
	pulse  *pulse
	stored *storePulse
	kills  int           // gateways
	drains int           // gateways
	moved  int           // sessions
	held   time.Duration // the time without new callers

	// Counts found by check.
	planned    int // planned replacements
	unknown    int // sessions lost with a killed gateway that had announced it
	understood int // speech during a replacement that had an effect
}

// findings lists broken promises, a limited number of each kind.
type findings struct {
	said  []string
	times map[string]int
}

const maxFindings = 5

func (f *findings) add(promise, format string, args ...any) {
	if f.times == nil {
		f.times = map[string]int{}
	}
	if f.times[promise]++; f.times[promise] <= maxFindings {
		f.said = append(f.said, promise+": "+fmt.Sprintf(format, args...))
	}
}

// check compares the evidence with the gateway's promises.
func (e *evidence) check() []string {
	var f findings
	for _, v := range e.visits {
		for _, c := range v.complaints {
			f.add("a client's view", "%s over %s: %s", v.name(), v.habits.provider, c)
		}
	}
	e.nothingDoneTwice(&f)
	e.everyCallAnswered(&f)
	e.auditComplete(&f)
	e.nothingUnapproved(&f)
	e.plannedReplacements(&f)
	e.refusals(&f)
	e.oneOwner(&f)
	e.neverSilent(&f)
	for promise, n := range f.times {
		if n > maxFindings {
			f.said = append(f.said, fmt.Sprintf("%s: %d more", promise, n-maxFindings))
		}
	}
	return f.said
}

func (v *visit) name() string {
	return fmt.Sprintf("visit %d of caller %d (%s)", v.number, v.caller.n, v.session)
}

// nothingTwice checks invariant 3.
func (e *evidence) nothingDoneTwice(f *findings) {
	const promise = "no side effect twice"
	did := map[string]int{}
	wishes, unknown := map[string]int{}, map[string]int{}
	for _, r := range e.runs {
		spec, _ := named(r.tool)
		if !spec.writes {
			continue
		}
		if at := e.moods.doneAt(r.action); !at.IsZero() && r.at.After(at) {
			f.add(promise, "%s was run again %v after the ledger had it as done", r.actionOf(), r.at.Sub(at))
		}
		if !r.did {
			continue
		}
		if did[r.actionOf()]++; did[r.actionOf()] == 2 {
			f.add(promise, "%s was done twice, the second time in %s turn %d", r.actionOf(), r.session, r.turn)
		}
		if r.tool == "note" && r.ref != "spoken" {
			wishes[r.ref]++
			if e.lost(r) || e.abandoned(r.session) {
				unknown[r.ref]++ // its record may be lost with the gateway
			}
		}
	}
	// The same on the wire: a call is identified by the provider's id, or without one by its arguments and turn.
	calls := map[string]int{}
	for _, l := range e.tap.lines {
		for a := range l.asked {
			if a.tool == "note" && a.id != "" {
				calls[a.ref]++
			}
		}
	}
	turns := map[string]bool{}
	for _, r := range e.file {
		var args chaosArgs
		turn := fmt.Sprint(r.SessionID, r.TurnID, string(r.Args))
		if r.ToolID != "note" || r.ProviderCallID != "" || turns[turn] || json.Unmarshal(r.Args, &args) != nil {
			continue
		}
		turns[turn] = true
		calls[args.Ref]++
	}
	for ref, n := range wishes {
		if n > calls[ref]+unknown[ref] {
			f.add(promise, "the note %s was made %d times; the model had called for it %d times;%s", ref, n, calls[ref], e.history(ref))
		}
	}
	e.delegatedOnce(f, promise, wishes)
}

// delegatedOnce: over OpenAI Live the gateway delegates calls to its text model. While one gateway owns the session,
// each request is answered once, however often the model's connection is replaced.
func (e *evidence) delegatedOnce(f *findings, promise string, wishes map[string]int) {
	for _, v := range e.visits {
		if v.habits.provider != "live" || e.links.moves(v.session) > 0 {
			continue
		}
		for _, s := range append(slices.Clone(v.habits.steps), step{text: v.habits.pending}) {
			words := strings.Fields(s.text)
			if len(words) > 2 && slices.Contains([]string{"note", "preamble", "batch", "late"}, words[0]) && wishes[words[2]] > 1 {
				f.add(promise, "%q of %s was done %d times;%s\n\t%s", s.text, v.name(), wishes[words[2]], e.history(words[2]), strings.Join(v.latest, "\n\t"))
			}
		}
	}
}

// history formats the audit of a wish for a finding.
func (e *evidence) history(ref string) string {
	var found []audit.Record
	for _, r := range e.file {
		if strings.Contains(string(r.Args), `"`+ref+`"`) {
			found = append(found, r)
		}
	}
	return formatRecords(found)
}

// formatRecords formats records for a finding.
func formatRecords(records []audit.Record) string {
	if len(records) == 0 {
		return " the audit says nothing of it"
	}
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "\n\t%s %s turn %d %s: %s (%s) of the provider's %q, ok %v %s, cache hit %v, again %v, not delivered %q %s", r.Time.Format("05.000"), r.SessionID,
			r.TurnID, r.CallID, r.ToolID, r.IdempotencyKey, r.ProviderCallID, r.OK, r.ErrorType, r.CacheHit, r.Again, r.NotDelivered, r.Args)
	}
	return b.String()
}

// wirePatience limits the wait of a call for its answer; lostTime is the time before a connection's end in which an
// answer may have been in transit. Both are in pulse time.
const (
	wirePatience = chaosPatience
	lostTime     = 3 * time.Second
)

// everyCallAnswered checks invariant 1 on the provider's wire.
func (e *evidence) everyCallAnswered(f *findings) {
	const promise = "every call gets exactly one terminal"
	records := map[string][]audit.Record{}
	for _, r := range e.file {
		if r.Event == audit.EventTool && r.ProviderCallID != "" && r.Confirmation != "approved" {
			records[r.ProviderCallID] = append(records[r.ProviderCallID], r)
		}
	}
	for _, l := range e.tap.lines {
		for _, c := range l.calls {
			announced, answered := len(c.announced), len(c.answered)
			if answered > announced+len(c.maybe) {
				f.add(promise, "%s (id %q) of %s was announced %d times and answered %d times;%s", c.tool, c.id, l.provider, announced, answered, formatRecords(records[c.id]))
			}
			if announced == 0 {
				continue
			}
			if late := e.side.tooLate(c); late > 0 {
				f.add(promise, "%s of %s was answered after its cancellation had been read", c.tool, l.provider)
			}
			owed := answered == 0 || c.id == "" && answered < announced
			if owed && c.cancelled.IsZero() && e.pulse.between(c.announced[announced-1], l.ended) > wirePatience {
				f.add(promise, "%s (id %q, %d of %d answered), announced at %s, had no answer for %v on %s;%s", c.tool, c.id, answered, announced,
					c.announced[announced-1].UTC().Format("05.000"), l.ended.Sub(c.announced[announced-1]).Round(time.Millisecond), l.provider, formatRecords(records[c.id]))
			}
			if c.id != "" && announced == 1 && len(records[c.id]) == 1 {
				l.agree(f, c, records[c.id][0], e.pulse)
			}
		}
	}
}

// agree compares the audit of a call with the wire.
func (l *line) agree(f *findings, c *wireCall, r audit.Record, p *pulse) {
	const promise = "the audit agrees with the wire"
	answered := len(c.answered)
	switch {
	case (r.Delivered || r.NotDelivered == "superseded") && answered == 0 && c.cancelled.IsZero() && p.between(r.Time, l.ended) > lostTime:
		f.add(promise, "%s of %s is recorded as answered (%q), %v before the connection's end, but was not", c.tool, l.provider, r.NotDelivered, l.ended.Sub(r.Time))
	case r.NotDelivered == "node_lost": // the call's next gateway does not know its answer
	case !r.Delivered && r.NotDelivered != "superseded" && answered > 0:
		f.add(promise, "%s of %s is recorded as not answered (%s), but was", c.tool, l.provider, r.NotDelivered)
	}
}

// auditComplete: each observed call is in the audit once, in both places.
func (e *evidence) auditComplete(f *findings) {
	const promise = "the audit is complete"
	type call struct{ session, id string }
	type made struct {
		session, tool, args string
		turn                int
	}
	// An MCP server does not know the turn.
	madeIn := func(session, tool, args string, turn int) made {
		if spec, _ := named(tool); spec.kind == kindMCP {
			turn = 0
		}
		return made{session, tool, args, turn}
	}
	records := map[call][]audit.Record{}
	ran, answered := map[made]int{}, map[made][]audit.Record{}
	for _, r := range e.file {
		if r.Event != audit.EventTool {
			continue
		}
		k := call{r.SessionID, r.CallID}
		for _, before := range records[k] {
			if !e.mayRepeat(before, r) {
				f.add(promise, "%s of %s is recorded twice;%s\n\t%s", r.CallID, r.SessionID, formatRecords([]audit.Record{before, r}), e.links.describe(r.SessionID))
			}
		}
		repeated := slices.ContainsFunc(records[k], func(before audit.Record) bool { return sameLine(before, r) })
		records[k] = append(records[k], r)
		if repeated {
			continue // it ran once
		}
		if !r.CacheHit {
			ran[madeIn(r.SessionID, r.ToolID, string(r.Args), r.TurnID)]++
		}
		if r.OK && !r.CacheHit {
			k := madeIn(r.SessionID, r.ToolID, string(r.Args), r.TurnID)
			answered[k] = append(answered[k], r)
		}
	}
	for _, v := range e.visits {
		for id, seen := range v.tools {
			all := records[call{v.session, id}]
			listed := slices.ContainsFunc(all, func(r audit.Record) bool {
				return r.ToolID == seen.tool && (seen.ended == nil || r.OK == seen.ended.OK && r.CacheHit == seen.ended.Deduplicated)
			})
			spec, _ := named(seen.tool)
			switch {
			case len(all) == 0 && spec.writes && seen.ended != nil && seen.ended.OK && !e.abandoned(v.session):
				// A kill is not an exception: the next gateway writes the line from the checkpoint.
				f.add(promise, "%s of %s was acknowledged to the client and has no line: %s, %+v, %s%s", id, v.name(), seen.tool, seen.ended, e.links.describe(v.session), v.lately())
			case listed, e.cutShort(v.session, seen.began, seen.endedAt):
			case len(all) == 0 && e.abandoned(v.session):
			case len(all) == 0:
				f.add(promise, "%s of %s, which the client saw, is not recorded; the client got %s, %+v, %s%s", id, v.name(), seen.tool, seen.ended, e.links.describe(v.session), v.lately())
			default:
				f.add(promise, "%s of %s is recorded as%s;\n\tthe client got %s, %+v", id, v.name(), formatRecords(all), seen.tool, seen.ended)
			}
		}
	}
	began, lost := map[made]int{}, map[made]int{}
	for _, r := range e.runs {
		k := made{r.session, r.tool, r.args, r.turn}
		began[k]++
		if e.lost(r) || e.abandoned(r.session) {
			lost[k]++
		}
	}
	for k, n := range began {
		spec, _ := named(k.tool)
		if most := spec.attempts(k.args); k.session != "" && ran[k]*most < n-lost[k] {
			f.add(promise, "%s ran %d times in turn %d of %s with %s and is recorded %d times", k.tool, n, k.turn, k.session, k.args, ran[k])
		}
	}
	for k, done := range answered {
		// A service that does not know the session may have run for such a caller, too.
		if _, ours := named(k.tool); ours && began[k]+began[made{"", k.tool, k.args, k.turn}] < len(done) {
			f.add(promise, "%s is recorded as done %d times in turn %d of %s and ran %d times;%s", k.tool, len(done), k.turn, k.session, began[k], formatRecords(done))
		}
	}
	e.samePlaces(f, promise)
}

// mayRepeat reports whether two records of a call are allowed: its gateway was killed before the successor learned of
// the call's end or delivery, or it handed the session over before its audit log had written the record.
func (e *evidence) mayRepeat(a, b audit.Record) bool {
	if sameLine(a, b) && e.links.leftAfter(a.SessionID, a.Time) {
		return true
	}
	if a.NotDelivered != "node_lost" && b.NotDelivered != "node_lost" && !sameLine(a, b) {
		return false
	}
	for _, at := range []time.Time{a.Time, b.Time, e.log.audited[auditedCall{a.SessionID, a.CallID}]} {
		if e.cutShort(a.SessionID, at, at) {
			return true
		}
	}
	return false
}

// sameLine reports whether two records of a call are the same line, with one marked as a possible repetition.
func sameLine(a, b audit.Record) bool { return a.Time.Equal(b.Time) && (a.Again || b.Again) }

// samePlaces: the stream contains the file's records; a record may be there twice if an attempt failed after storing
// it.
func (e *evidence) samePlaces(f *findings, promise string) {
	name := func(r audit.Record) string {
		return fmt.Sprint(r.Event, r.SessionID, r.CallID, r.Time.UnixMilli(), r.ToolID, r.Reference)
	}
	missing := map[string]int{}
	for _, r := range e.file {
		missing[name(r)] = 1
	}
	for _, r := range e.stream {
		if _, there := missing[name(r)]; !there && !e.cutShort(r.SessionID, r.Time, r.Time) {
			f.add(promise, "%s of %s is in the stream and not in the file", r.CallID, r.SessionID)
		}
		missing[name(r)] = 0
	}
	for _, r := range e.file {
		if missing[name(r)] > 0 && !e.cutShort(r.SessionID, r.Time, r.Time) {
			f.add(promise, "%s of %s is in the file and not in the stream", r.CallID, r.SessionID)
		}
	}
}

// nothingUnapproved checks invariant 9: each run that needs an approval has an earlier approval of exactly its
// arguments by a client of its session. An approval allows one run, and a second one if the first had no effect and was
// not reported.
func (e *evidence) nothingUnapproved(f *findings) {
	approvals := map[string][]approval{}
	for _, v := range e.visits {
		approvals[v.session] = append(approvals[v.session], v.approvals...)
	}
	for _, r := range e.runs {
		if spec, _ := named(r.tool); !spec.confirm || r.session == "" || e.continuation(r) {
			continue
		}
		i := slices.IndexFunc(approvals[r.session], func(a approval) bool {
			return a.tool == r.tool && a.args == r.args && a.at.Before(r.at)
		})
		if i < 0 {
			f.add("nothing approves itself", "%s ran in turn %d of %s with %s, without an approval;%s\n\t%s", r.tool, r.turn, r.session, r.args, e.sameRuns(r), e.links.describe(r.session))
			continue
		}
		approvals[r.session] = slices.Delete(approvals[r.session], i, i+1) // used
	}
}

// sameRuns lists the approvals and runs with a run's arguments for a finding.
func (e *evidence) sameRuns(r *run) string {
	var b strings.Builder
	for _, v := range e.visits {
		for _, a := range v.approvals {
			if v.session == r.session && a.tool == r.tool && a.args == r.args {
				fmt.Fprintf(&b, "\n\t%s approved by %s", a.at.Format("05.000"), v.name())
			}
		}
	}
	for _, other := range e.runs {
		if other.session == r.session && other.tool == r.tool && other.args == r.args {
			fmt.Fprintf(&b, "\n\t%s run in turn %d on %s as %s, done %t, ended %s, lost %t", other.at.Format("05.000"), other.turn, other.node.name, other.action, other.did, other.ended.Format("05.000"), e.lost(other))
		}
	}
	for _, line := range e.file {
		if line.SessionID == r.session && line.ToolID == r.tool && string(line.Args) == r.args {
			b.WriteString(formatRecords([]audit.Record{line}))
		}
	}
	return b.String()
}

// continuation reports whether a run repeats an action that another gateway began and did not perform before it was
// killed or lost the session.
func (e *evidence) continuation(r *run) bool {
	return slices.ContainsFunc(e.runs, func(first *run) bool {
		return first != r && first.node != r.node && first.session == r.session && first.action == r.action && first.args == r.args && !first.did &&
			first.at.Before(r.at) && (e.lost(first) || e.unreported(first))
	})
}

// unreported reports whether a run ended after its gateway lost the session, according to the audit.
func (e *evidence) unreported(r *run) bool {
	return slices.ContainsFunc(e.file, func(line audit.Record) bool {
		return line.SessionID == r.session && line.ToolID == r.tool && (r.turn == 0 || line.TurnID == r.turn) && string(line.Args) == r.args && !line.OK && line.NotDelivered == "session_over"
	})
}

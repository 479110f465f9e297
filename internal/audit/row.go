package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"voicegw/internal/textutil"
)

// columns have a fixed width because rows are shown as they are read.
var columns = []struct {
	name  string
	width int
}{
	{"TIME", 24}, {"SESSION", 14}, {"TURN", 4}, {"TOOL", 26}, {"OUTCOME", 22}, {"MS", 6}, {"BUDGET", 6}, {"CLAMPED", 14},
	{"CONFIRMATION", 12}, {"EVIDENCE", 0},
}

const outcomeColumn = 4 // index in columns

// row returns a record as a row of the table, without its line break.
func (t *Table) row(r Record) string {
	outcome, colour := outcomeOf(r)
	cells := []string{
		r.Time.UTC().Format(TimeLayout), begin(r.SessionID, columns[1].width), strconv.Itoa(r.TurnID), r.ToolID, outcome,
		strconv.FormatInt(r.DurationMS, 10), budgetOf(r), clampedOf(r), confirmationOf(r), evidenceOf(r),
	}
	var line strings.Builder
	from, to := 0, 0 // of the outcome, in runes: an earlier cell may be wider than its column
	runes := 0
	for i, cell := range cells {
		text := pad(printable(cell), columns[i].width, i < len(cells)-1)
		if i == outcomeColumn {
			from, to = runes, runes+len([]rune(printable(cell)))
		}
		runes += len([]rune(text))
		line.WriteString(text)
	}
	text := textutil.Cut(strings.TrimRight(line.String(), " "), t.o.Width)
	if whole := []rune(text); t.o.Colour && to <= len(whole) {
		return string(whole[:from]) + colour + string(whole[from:to]) + "\x1b[0m" + string(whole[to:])
	}
	return text
}

// outcomeOf returns the outcome of a record's call, and its colour.
func outcomeOf(r Record) (outcome, colour string) {
	switch r.Event {
	case EventConfirmation:
		return r.Confirmation, yellow
	case EventIntent:
		names := make([]string, len(r.Refused))
		for i, t := range r.Refused {
			names[i] = string(t)
		}
		return strings.TrimSpace("refused " + strings.Join(names, ",")), yellow
	case EventNote:
		return "noted " + r.Note, yellow
	case EventTool:
	default:
		return string(r.Event), yellow
	}
	switch {
	case !r.OK:
		outcome, colour = string(r.ErrorType), red
		outcome = cmp.Or(outcome, "failed")
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

// budgetOf returns the used and the allowed calls of the turn: 2/3.
func budgetOf(r Record) string {
	used, limit, ok := r.Calls()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%d/%d", used, limit)
}

// clampedOf lists the lowered arguments: top_k 10>3.
func clampedOf(r Record) string {
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

func evidenceOf(r Record) string {
	if len(r.Evidence) == 0 {
		return "-"
	}
	return strings.Join(r.Evidence, ", ")
}

func confirmationOf(r Record) string {
	text := r.Confirmation
	if r.Event == EventConfirmation {
		text = "" // the outcome column has it
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

// pad fills a cell up to the next column.
func pad(cell string, width int, more bool) string {
	if !more {
		return cell
	}
	return cell + strings.Repeat(" ", max(width-len([]rune(cell)), 0)+2)
}

// begin returns the start of an id; --session accepts it.
func begin(id string, width int) string {
	if r := []rune(id); len(r) > width {
		return string(r[:width])
	}
	return id
}

// printable replaces control characters, because a model may invent any name.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// The colours of outcomes (ECMA-48 8.3.117).
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
)

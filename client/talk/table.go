package talk

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"voicegw/internal/textutil"
)

// Table formats a report with a line for each turn.
func Table(r Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "turn\tsaid\tanswered\tfirst audio\tanswer\theard\tstopped after\ttokens in/out")
	for i, t := range r.Turns {
		answered := "yes"
		if !t.Answered {
			answered = "no"
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d/%d\n", i+1, textutil.Printable(short(said(t))), answered,
			optionalMS(t.FirstAudioMS), seconds(t.AnswerMS), seconds(t.HeardMS), stopped(t.Interruption),
			t.Usage.InputTokens, t.Usage.OutputTokens)
	}
	_ = w.Flush()
	return b.String()
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

func short(s string) string {
	if r := []rune(s); len(r) > 24 {
		return "…" + string(r[len(r)-23:])
	}
	return s
}

func stopped(i *Interruption) string {
	if i == nil {
		return "-"
	}
	if i.FlushMS == nil {
		return "no flush"
	}
	return fmt.Sprintf("%d ms", max(*i.FlushMS, i.LastAudioMS))
}

func optionalMS(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%d ms", *ms)
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// TestGeneratedProtocol: the lists of errors and ends in docs/protocol.md match the tables in the code.
func TestGeneratedProtocol(t *testing.T) {
	testutil.GeneratedPart(t, "../docs/protocol.md", "errors", errorRows())
	testutil.GeneratedPart(t, "../docs/protocol.md", "closes", closeRows(t))
}

// errorRows joins the error codes of the same meaning.
func errorRows() string {
	var b strings.Builder
	b.WriteString("| code | later | meaning and action |\n|---|---|---|\n")
	words := map[protocol.Retry]string{protocol.RetryNever: "no", protocol.RetryLater: "yes", protocol.RetryDepends: "depends"}
	all := protocol.ErrorCodes
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Meaning == "" {
			n++
		}
		var codes []string
		for _, c := range all[:n] {
			codes = append(codes, "`"+c.Code+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(codes, ", "), words[all[0].Retry], all[0].Meaning)
		all = all[n:]
	}
	return b.String()
}

func closeRows(t *testing.T) string {
	t.Helper()
	// Refusals of session.start have their own texts.
	rows := []*Cause{
		{Close: protocol.CloseBadProtocol, When: "invalid first frame"},
		{Close: protocol.CloseUnknownTarget, Reason: "unknown_provider", When: "not configured"},
		{Close: protocol.CloseUnknownTarget, Reason: "unknown_agent", When: "not configured"},
	}
	described := map[string]bool{}
	for _, c := range causes {
		if c.When != "" {
			rows = append(rows, c)
			described[fmt.Sprint(c.Close, c.Reason)] = true
		}
	}
	for _, c := range causes {
		if !described[fmt.Sprint(c.Close, c.Reason)] {
			t.Errorf("the cause %s has no When for docs/protocol.md", c.Reason)
		}
		if c.Code != "" && c.Message == "" {
			t.Errorf("the cause %s has a code but no message", c.Reason)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Cause) int { return cmp.Compare(a.Close, b.Close) })
	var b strings.Builder
	b.WriteString("| close code | reason | when |\n|---|---|---|\n")
	for _, c := range rows {
		reason := ""
		if c.Reason != "" {
			reason = " `" + c.Reason + "`"
		}
		fmt.Fprintf(&b, "| %d |%s | %s |\n", c.Close, reason, c.When)
	}
	return b.String()
}

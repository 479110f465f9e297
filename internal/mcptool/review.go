package mcptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"voicegw/registry/document"
)

// commands are signs that a description addresses the model instead of describing the tool.
var commands = regexp.MustCompile(`(?i)</?(important|system|instructions?|secret|assistant)\b|` +
	`\b(ignore|disregard|forget) (all|any|the|your|previous|prior|earlier)\b|\b(do not|don't|never) (tell|mention|inform|show)\b|` +
	`\bbefore (using|calling) (any|this|other)\b`)

// Doubts returns sentences about parts of a server's words that a reviewer should look at.
func (s Said) Doubts() []string {
	var doubts []string
	for where, text := range map[string]string{
		"the description": s.Description, "the schema": string(s.InputSchema), "the annotations": string(s.Annotations),
	} {
		if what, _ := document.Hidden(text); what != "" {
			doubts = append(doubts, fmt.Sprintf("%s has invisible text (%s); models do not get it", where, what))
		}
		if found := commands.FindString(text); found != "" {
			doubts = append(doubts, fmt.Sprintf("%s may give the model instructions: %q", where, found))
		}
	}
	slices.Sort(doubts)
	return doubts
}

// Differences returns the lines of two statements that differ, with a minus or a plus.
func Differences(old, now Said) []string {
	a, b := linesOf(old), linesOf(now)
	var all []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			all = append(all, "+ "+line)
		}
	}
	return all
}

func linesOf(s Said) []string {
	var lines []string
	for line := range strings.SplitSeq(s.Description, "\n") {
		lines = append(lines, "description: "+document.CleanText(line))
	}
	for key, raw := range map[string]json.RawMessage{"schema": s.InputSchema, "annotations": s.Annotations} {
		var text bytes.Buffer
		if len(raw) == 0 || json.Indent(&text, raw, "", "  ") != nil {
			continue
		}
		for line := range strings.SplitSeq(text.String(), "\n") {
			lines = append(lines, key+": "+document.CleanText(line))
		}
	}
	return lines
}

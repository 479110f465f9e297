package scenario

import (
	"slices"
	"strings"
)

// Memory is one line of the conversation known to the simulated model: from the connection, a client's history, or a
// resumption handle.
type Memory struct {
	// Who is the speaker: user, model, call, result or system.
	Who string
	// Text is the words; for call and result the tool's name, a space, and the arguments or the output.
	Text string
}

func (m Memory) line() string { return m.Who + ": " + m.Text }

// Limits of ${memory}, in bytes: of the whole and of a line.
const (
	maxMemory     = 4000
	maxMemoryLine = 400
)

// memoryText is ${memory}: the newest lines, oldest first, separated by " | ".
func memoryText(lines []Memory) string {
	var kept []string
	size := 0
	for _, m := range slices.Backward(lines) {
		line := shorten(m.line(), maxMemoryLine)
		if size += len(line) + len(" | "); size > maxMemory {
			break
		}
		kept = append(kept, line)
	}
	slices.Reverse(kept)
	return strings.Join(kept, " | ")
}

// knows reports whether the memory fulfils remembers and forgot. The groups of remembers, from the newest matching
// line, go into values.
func (w *when) knows(lines []Memory, values map[string]string) bool {
	for _, re := range w.forgot {
		if slices.ContainsFunc(lines, func(m Memory) bool { return re.MatchString(m.line()) }) {
			return false
		}
	}
	for _, re := range w.remembers {
		found := false
		for _, m := range slices.Backward(lines) {
			if found = capture(re, m.line(), values); found {
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func lastSaid(lines []Memory) string {
	for _, m := range slices.Backward(lines) {
		if m.Who == "model" {
			return m.Text
		}
	}
	return ""
}

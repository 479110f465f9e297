package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/user"
)

type past struct {
	user bool
	text string
}

// The limits of ${history}: lines, and bytes per line.
const (
	maxPast     = 8
	maxPastLine = 160
)

// ownWords are the prefixes of the gateway's own texts to the model.
var ownWords = regexp.MustCompile(`^\[voicegw:[a-z0-9]+\]`)

func (d *Dialogue) note(user bool, text string) {
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "(by voice) ")
	if text == "" || user && ownWords.MatchString(text) {
		return
	}
	d.past = append(d.past, past{user, shorten(text, maxPastLine)})
	if len(d.past) > maxPast {
		d.past = slices.Delete(d.past, 0, len(d.past)-maxPast)
	}
}

func (d *Dialogue) history() string {
	var b strings.Builder
	for _, p := range d.past {
		who := "I said: "
		if p.user {
			who = "You said: "
		}
		b.WriteString(who + sentence(p.text) + " ")
	}
	return strings.TrimSpace(b.String())
}

func (d *Dialogue) values(heard time.Duration, c Context) map[string]string {
	now := nowOf(c)
	v := maps.Clone(d.kept)
	maps.Copy(v, map[string]string{
		"utterance": strconv.Itoa(d.spoken), "seconds": fmt.Sprintf("%.1f", heard.Seconds()), "duration": inWords(heard),
		"history": d.history(), "memory": memoryText(c.Memory), "today": now.Format(time.DateOnly),
		"tomorrow": now.AddDate(0, 0, 1).Format(time.DateOnly), "event": "",
	})
	return v
}

var userDate = regexp.MustCompile(`Today is [A-Z][a-z]+, (\d{1,2} [A-Z][a-z]+ \d{4})\.`)

// nowOf returns the time in the user's zone: the request's clock or, without one, the date in the instructions.
func nowOf(c Context) time.Time {
	zone := time.UTC
	if at := userZone.FindStringSubmatch(c.Instructions); at != nil {
		zone = user.ZoneOr(at[1], time.UTC)
	}
	if at := userDate.FindStringSubmatch(c.Instructions); at != nil && c.Now.IsZero() {
		if date, err := time.ParseInLocation("2 January 2006", at[1], zone); err == nil {
			return date.Add(time.Duration(today.Hour()) * time.Hour)
		}
	}
	return cmp.Or(c.Now, today).In(zone)
}

var userZone = regexp.MustCompile(`time zone is ([A-Za-z0-9_+/-]+)`)

// Replay records an earlier input (results of calls, or else h) and its answer: the words said and the tools called. A
// wire without sessions replays all inputs but the last of each request. Rules are counted, values remembered, and the
// steps for results restored as if the dialogue had answered itself, unless another model called other tools.
func (d *Dialogue) Replay(h Heard, rs []Result, c Context, said string, called []string) {
	c.ToolsOff, c.ToolRequired, c.ToolNamed = false, false, "" // of this request, not of the replayed one
	if rs != nil {
		d.results(rs, c, true)
	} else {
		d.hear(h, c, true)
	}
	if said != "" {
		d.last = said
		d.note(false, said)
	}
	// A client may have allowed only the first of parallel calls.
	if len(called) == 0 || len(called) > len(d.owed) || !slices.Equal(called, d.owed[:len(called)]) {
		d.then, d.failed, d.owed = nil, nil, nil
	}
}

// Draw answers a prompt for an image. If it is drawn, the turn has only Wait and Fault steps, and Say steps for text
// next to the picture; if refused, a Say with Refusal. It does not change d.
func (d *Dialogue) Draw(prompt string) Turn {
	f := d.Fork()
	v := f.values(0, Context{})
	v["text"] = prompt
	for i := range f.scenario.rules {
		u := &f.scenario.rules[i]
		if u.when.input != onPrompt || !capture(u.when.text, prompt, v) {
			continue
		}
		b := builder{d: f, vars: vars{values: v}, text: prompt}
		b.add(u.do)
		return Turn{Heard: prompt, Steps: b.steps}
	}
	return Turn{Heard: prompt}
}

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

package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// past is one line of what was said before.
type past struct {
	user bool
	text string
}

// What ${history} holds at most: so many lines of so many bytes.
const (
	maxPast     = 8
	maxPastLine = 160
)

// ownWords begin what a gateway tells the model itself.
var ownWords = regexp.MustCompile(`^\[voicegw:[a-z0-9]+\]`)

// note keeps a line for ${history}. What a gateway tells the model is no line of the user's.
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

// history is what was said before, in sentences; empty at the beginning.
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

// values are the variables that every turn knows, but the text.
func (d *Dialogue) values(heard time.Duration, c Context) map[string]string {
	now := c.Now
	if now.IsZero() {
		now = today
	}
	v := maps.Clone(d.kept)
	maps.Copy(v, map[string]string{
		"utterance": strconv.Itoa(d.spoken), "seconds": fmt.Sprintf("%.1f", heard.Seconds()), "duration": inWords(heard),
		"history": d.history(), "today": now.UTC().Format(time.DateOnly), "tomorrow": now.UTC().AddDate(0, 0, 1).Format(time.DateOnly),
	})
	return v
}

// Replay tells the dialogue of an input that was answered before, and how: what was
// said, and the names of the tools that were called. A wire without sessions, where each
// request brings the whole conversation, replays all but the last input. Rules are
// counted, values remembered and what follows the results of calls is known again as if the
// dialogue had answered itself, unless it was somebody else who called other tools.
func (d *Dialogue) Replay(h Heard, c Context, said string, called []string) {
	c.ToolsOff, c.ToolRequired, c.ToolNamed = false, false, "" // of this request, not of that one
	d.hear(h, c, true)
	d.answered(said, called)
}

// ReplayResults is Replay for results of tool calls.
func (d *Dialogue) ReplayResults(rs []Result, c Context, said string, called []string) {
	c.ToolsOff, c.ToolRequired, c.ToolNamed = false, false, ""
	d.results(rs, c, true)
	d.answered(said, called)
}

func (d *Dialogue) answered(said string, called []string) {
	if said != "" {
		d.last = said
		d.note(false, said)
	}
	// Of parallel calls a client may have let only the first through.
	if len(called) == 0 || len(called) > len(d.owed) || !slices.Equal(called, d.owed[:len(called)]) {
		d.then, d.failed, d.owed = nil, nil, nil
	}
}

// Draw answers a prompt for an image: nothing but Wait and Fault steps when it is to be
// drawn, with the lines that go with the picture as Say, and a Say with Refusal when it is
// refused. It changes nothing in d.
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

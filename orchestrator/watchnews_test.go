package orchestrator

import (
	"fmt"
	"regexp"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// newsWatch is about progress for the model: only the newest, of a running call that it waits for, seldom, and never
// during an answer that an entry would end.
type newsWatch struct {
	said   int
	of     map[string]string    // the call of a text
	newest map[string]string    // of each call
	sentAt map[string]time.Time // of each call
	answer string               // the model's current response
}

func newNewsWatch() newsWatch {
	return newsWatch{of: map[string]string{}, newest: map[string]string{}, sentAt: map[string]time.Time{}}
}

// toolsReport lets a tool report progress sometimes.
func (tk *talk) toolsReport() {
	if len(tk.running) == 0 || tk.page.IntN(5) > 0 {
		return
	}
	n := &tk.watch.news
	n.said++
	text, call := fmt.Sprintf("step %d.", n.said), tk.running[tk.page.IntN(len(tk.running))]
	n.of[text], n.newest[call] = call, text
	tk.take(OfCall{calls.Progressed{Call: call, Text: text, Fraction: float64(n.said%3) - 1}})
}

func (w *watcher) newsInput(in Input) {
	switch in := in.(type) {
	case FromModel:
		switch ev := in.Event.(type) {
		case transport.ResponseStarted:
			w.news.answer = ev.ID
		case transport.ResponseDone:
			w.news.answer = ""
		}
	case LinkLost, LinkBack:
		w.news.answer = ""
	}
}

// newsText matches the texts of toolsReport.
var newsText = regexp.MustCompile(`step \d+\.$`)

// newsAction checks an action; rest are the actions after it.
func (w *watcher) newsAction(a Action, rest []Action) {
	if end, ok := a.(TurnEnded); ok && end.Status == TurnInterrupted {
		w.news.answer = "" // the user has interrupted it, and hears no more of it
	}
	c, ok := a.(Command)
	if !ok {
		return
	}
	add, ok := c.Command.(transport.AddItem)
	if !ok {
		return
	}
	user, _ := add.Item.(transport.PastUser)
	text := newsText.FindString(user.Text)
	if text == "" {
		return
	}
	id := w.news.of[text]
	call := w.tools.calls[id]
	switch last := w.news.sentAt[id]; {
	case call == nil || call.run == nil:
		w.fail("%q is about a call that does not run", text)
	case call.finished || call.ended || call.answered || call.cancelled || call.stopped || call.model == "":
		w.fail("%q is about a call that is over for the model: %+v", text, call)
	case w.news.newest[id] != text:
		w.fail("%q was sent, but %q is newer", text, w.news.newest[id])
	case w.at.Sub(call.askedAt) < 5*time.Second, w.at.Sub(last) < 5*time.Second:
		w.fail("%q was sent too soon: the call is %s old, the last was sent %s ago", text, w.at.Sub(call.askedAt), w.at.Sub(last))
	case w.turns.ended || w.turns.phase == PhaseEnding:
		w.fail("%q was sent at the end", text)
	}
	w.news.sentAt[id] = w.at
	w.newsMayBeSent(text, call, rest)
}

// newsMayBeSent: the model takes the entry, and no later action of the step makes it untrue.
func (w *watcher) newsMayBeSent(text string, call *watchedCall, rest []Action) {
	asks := false
	for _, next := range rest {
		c, _ := next.(Command)
		switch cmd := c.Command.(type) {
		case transport.ToolResult:
			if cmd.Call == call.model {
				w.fail("%q was sent, but the result follows in the same step", text)
			}
		case transport.UserText, transport.Respond, transport.ActivityStart, transport.ActivityEnd:
			asks = true
		}
	}
	switch {
	case w.caps.AddItem == transport.AddItemLive:
	case w.caps.AddItem == transport.AddItemNone || !w.caps.AddItemBeside:
		w.fail("%q was sent to a model that takes nothing while a call waits", text)
	case w.news.answer != "" && !asks:
		w.fail("%q ends the answer %s", text, w.news.answer)
	}
}

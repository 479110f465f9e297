package orchestrator

import (
	"fmt"
	"regexp"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// newsWatch is about what the model is told of how far calls are: the newest alone, of a call that runs and for whose
// result it waits, seldom, and never in the middle of an answer that an entry would end.
type newsWatch struct {
	said   int
	of     map[string]string    // the call that a text is about
	newest map[string]string    // of each call
	toldAt map[string]time.Time // of each call
	answer string               // the response that the model is giving
}

// newNewsWatch returns one that has seen nothing.
func newNewsWatch() newsWatch {
	return newsWatch{of: map[string]string{}, newest: map[string]string{}, toldAt: map[string]time.Time{}}
}

// toolsTell lets a tool say now and then how far it is.
func (tk *talk) toolsTell() {
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

// newsText finds what toolsTell has said.
var newsText = regexp.MustCompile(`step \d+\.$`)

// newsAction looks at an action, which rest follows.
func (w *watcher) newsAction(a Action, rest []Action) {
	if end, ok := a.(TurnEnded); ok && end.Status == TurnInterrupted {
		w.news.answer = "" // the user has cut it off, and hears no more of it
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
	switch told := w.news.toldAt[id]; {
	case call == nil || call.run == nil:
		w.fail("%q is about a call that does not run", text)
	case call.finished || call.ended || call.answered || call.cancelled || call.stopped || call.model == "":
		w.fail("%q is about a call that is over for the model: %+v", text, call)
	case w.news.newest[id] != text:
		w.fail("%q was told, and %q is newer", text, w.news.newest[id])
	case w.at.Sub(call.askedAt) < 5*time.Second, w.at.Sub(told) < 5*time.Second:
		w.fail("%q was told too soon: the call is %s old, the last was told %s ago", text, w.at.Sub(call.askedAt), w.at.Sub(told))
	case w.turns.ended || w.turns.phase == PhaseEnding:
		w.fail("%q was told at the end", text)
	}
	w.news.toldAt[id] = w.at
	w.newsMayBeTold(text, call, rest)
}

// newsMayBeTold: the model takes the entry, and nothing that follows in the step makes it untrue.
func (w *watcher) newsMayBeTold(text string, call *watchedCall, rest []Action) {
	asks := false
	for _, next := range rest {
		c, _ := next.(Command)
		switch cmd := c.Command.(type) {
		case transport.ToolResult:
			if cmd.Call == call.model {
				w.fail("%q was told, and the result follows in the same step", text)
			}
		case transport.UserText, transport.Respond, transport.ActivityStart, transport.ActivityEnd:
			asks = true
		}
	}
	switch {
	case w.caps.AddItem == transport.AddItemLive:
	case w.caps.AddItem == transport.AddItemNone || !w.caps.AddItemBeside:
		w.fail("%q was told to a model that takes nothing while a call waits", text)
	case w.news.answer != "" && !asks:
		w.fail("%q ends the answer %s", text, w.news.answer)
	}
}

package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"voicegw/transport"
)

// contextWatch is about context from the user's page: each text reaches the model once and in order, with a
// connection, and before the next question, or stays in the conversation at the end.
type contextWatch struct {
	sent    int
	waiting []string // accepted, but not given yet
	down    bool
}

// pageSends sends text of the page sometimes.
func (tk *talk) pageSends() {
	if tk.page.IntN(12) > 0 {
		return
	}
	tk.watch.pages.sent++
	tk.take(UserContext{Text: fmt.Sprintf("text %d of the page", tk.watch.pages.sent)})
}

func (w *watcher) contextInput(in Input) {
	p := &w.pages
	switch in := in.(type) {
	case LinkBack:
		p.down = false
	case UserContext:
		refused := slices.ContainsFunc(w.actions, func(a Action) bool { f, ok := a.(Failed); return ok && f.Ref == OfContext })
		if !refused && !w.turns.ended {
			p.waiting = append(p.waiting, in.Text)
		}
		for _, a := range w.actions {
			switch a.(type) {
			case TurnStarted, TurnEnded, FlushItem, Transcript:
				w.fail("the page has caused %s", show(a))
			}
		}
	}
}

// contextAction checks an action; rest are the actions after it.
func (w *watcher) contextAction(a Action, rest []Action) {
	p := &w.pages
	switch a := a.(type) {
	case SwitchLink, Moving:
		p.down = true
	case ContextGiven:
		if len(p.waiting) == 0 || p.waiting[0] != a.Text {
			w.fail("%q was given, but %q waits", a.Text, p.waiting)
		}
		p.waiting = p.waiting[1:]
		for _, next := range rest {
			if c, ok := next.(Command); ok {
				if add, ok := c.Command.(transport.AddItem); !ok || !strings.HasSuffix(add.Item.(transport.PastUser).Text, a.Text) {
					w.fail("%q was given with %s", a.Text, show(next))
				}
				return
			}
		}
	case Command:
		if _, ok := a.Command.(transport.AddItem); ok && (p.down || w.caps.AddItem == transport.AddItemNone) {
			w.fail("a model that is disconnected, or takes no context, got %s", show(a))
		}
	}
}

// contextsGiven: a request for an answer comes after all waiting context, unless a call waits for its result, then or
// later in the same step.
func (w *watcher) contextsGiven(next State) {
	asked := slices.IndexFunc(w.actions, func(a Action) bool {
		c, _ := a.(Command)
		switch c.Command.(type) {
		case transport.UserText, transport.Respond, transport.ActivityStart, transport.ActivityEnd:
			return true
		}
		return false
	})
	if asked < 0 || len(next.contexts) == 0 || next.down() || next.deafInCall() || next.phase == PhaseEnded {
		return
	}
	awaited := slices.ContainsFunc(w.actions[asked:], func(a Action) bool {
		c, _ := a.(Command)
		_, ok := c.Command.(transport.ToolResult)
		return ok
	})
	if awaited {
		return
	}
	var all []string
	for _, a := range w.actions {
		all = append(all, show(a))
	}
	w.fail("an answer was asked for while %v waits: %s", next.contexts, strings.Join(all, "; "))
}

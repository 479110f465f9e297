package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"voicegw/transport"
)

// contextWatch is about what the user's page tells the model: each text is given once and in order, with a
// connection, and before the next question, or is left to the conversation at the end.
type contextWatch struct {
	told    int
	waiting []string // taken, and not given yet
	down    bool
}

// pageTells lets the page tell something now and then.
func (tk *talk) pageTells() {
	if tk.page.IntN(12) > 0 {
		return
	}
	tk.watch.pages.told++
	tk.take(UserContext{Text: fmt.Sprintf("text %d of the page", tk.watch.pages.told)})
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

// contextAction looks at an action, which rest follows.
func (w *watcher) contextAction(a Action, rest []Action) {
	p := &w.pages
	switch a := a.(type) {
	case SwitchLink, Moving:
		p.down = true
	case ContextGiven:
		if len(p.waiting) == 0 || p.waiting[0] != a.Text {
			w.fail("%q was given, and %q waits", a.Text, p.waiting)
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
			w.fail("a model that is away, or takes none, is given %s", show(a))
		}
	}
}

// contextsTold: whatever asks for an answer finds the model told, unless a call waits for its result: one that
// waits afterwards, or one whose result follows in the same step.
func (w *watcher) contextsTold(next State) {
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

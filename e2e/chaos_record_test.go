package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/protocol"
)

// record is what a client has seen of its session, and what it has to complain of.
type record struct {
	session    string
	complaints []string
	vanished   bool // it dropped the connection itself
	quiet      bool // it hung up when nothing was owed

	seq          int64          // the highest
	numbers      map[int64]bool // each seq that came
	base         int64          // seq of the session.started of this connection; zero on the first one
	newest       int64          // the highest seq since then
	older        int64          // the latest seq that was missed
	excused      int64          // up to here a snapshot stands for what was missed
	holes        int            // so many numbers may not have been used
	early        int            // so many more, if the connection is lost now
	open         string         // the item whose audio comes
	item         string         // the item whose audio came last
	from         int            // where in it the next frame begins, in bytes
	have         map[string]int // bytes of audio, by item
	lastFrame    time.Time
	flushed      map[string]bool
	turns        map[int]*turnSeen
	tools        map[string]*toolSeen // by the gateway's call id
	questions    map[string]string    // what became of them, by token; empty: not yet
	approvals    []approval
	errors       map[string]int // by code
	gap          time.Duration  // the longest between two frames of an item
	audioMS      int64
	reason       string // of session.ended
	code         websocket.StatusCode
	token        string    // to come back with
	before       string    // the token before it
	spent        []string  // those that are not valid any more
	displaced    []string  // those of tabs that were displaced
	displacing   string    // that of a tab that was displaced by one that is not in yet
	twins        int       // how often two tabs came at once
	stray        time.Time // when such a tab had lost its connection before it was in, or after it had come in last: it has displaced the other one, or still may
	outages      map[string]int
	returns      int
	snapshots    int
	repeats      int            // messages that came again
	losingAt     time.Time      // when it last set out to lose the connection
	lostAt       time.Time      // when it was last lost
	lostTimes    []time.Time    // when it set out to lose it
	overAt       time.Time      // when the visit was over
	backAt       []time.Time    // when it was back
	refusedAt    time.Time      // when it could not come back; zero if that did not happen
	forgotten    bool           // it has come back without what it had of the speech
	reconnecting map[string]int // of the model's connection, as it was told, by reason
	gaps         []gap
	overtalks    []time.Time // when it spoke while the model's connection was replaced
	understood   []time.Time // when speech was written down, or failed
	turnAt       []time.Time // when turns began
	typedAt      []time.Time
	owner        *chaosNode // that had the session when the caller was last there
	taken        int        // how often another gateway has taken the session
	openBefore   bool       // a turn was waited for when the connection was lost
	askedAgain   time.Time  // since when a turn is waited for that another gateway asks again; zero if none is
	again        int        // turns that another gateway has asked again
	toldTwice    int        // ends of tools that were told again, as the gateway before was killed
	latest       []string   // the latest messages, for whoever reads of a complaint
}

// maxLatest bounds record.latest.
const maxLatest = 60

type turnSeen struct {
	status string // empty: it is open
	audio  bool
	failed bool     // an error was told of it
	words  []string // the items of which the model's words came
}

type toolSeen struct {
	tool    string
	began   time.Time
	ended   *protocol.ToolEnded
	endedAt time.Time
}

// approval is one that the client has sent.
type approval struct {
	tool, args string
	at         time.Time
}

func newRecord() record {
	return record{
		flushed: map[string]bool{}, turns: map[int]*turnSeen{}, tools: map[string]*toolSeen{},
		questions: map[string]string{}, errors: map[string]int{},
		numbers: map[int64]bool{}, have: map[string]int{}, outages: map[string]int{}, reconnecting: map[string]int{},
	}
}

func (r *record) complain(format string, args ...any) {
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

// take notes what came, and answers it.
func (v *visit) take(h happening) {
	if h.err != nil {
		v.code = protocol.CloseStatus(h.err)
		return
	}
	if h.msg == nil {
		v.takeAudio(h)
		return
	}
	if !v.count(h.msg) {
		return
	}
	v.remember(h)
	v.hearsAgain(h.msg)
	switch m := h.msg.(type) {
	case *protocol.SessionStarted:
		v.begins(m)
	case *protocol.SessionEnded:
		v.reason = m.Reason
		v.complete()
	case *protocol.ProviderReconnecting:
		v.reconnecting[m.Reason]++
	case *protocol.AudioStart, *protocol.AudioEnd, *protocol.AudioFlush:
		v.takeItem(m)
	case *protocol.Transcript:
		if m.Role == "user" && !strings.HasPrefix(m.ID, "text_") {
			v.understood = append(v.understood, h.at)
		}
		if t := v.turns[m.Turn]; t != nil && m.Role != "user" && m.Text != "" {
			t.words = append(t.words, m.ID)
		}
	case *protocol.TurnStarted:
		v.turnAt = append(v.turnAt, h.at)
		if v.turns[m.Turn] != nil && v.snapshots == 0 {
			v.complain("turn %d started twice", m.Turn)
		}
		v.turns[m.Turn] = &turnSeen{}
	case *protocol.TurnEnded:
		v.takeTurnEnd(m)
	case *protocol.ToolStarted, *protocol.ToolEnded:
		v.takeTool(h.at, m)
	case *protocol.ConfirmationRequest:
		v.questions[m.Token] = ""
		v.caller.crowd.expose(v.session, m.Token)
		v.asked(m)
	case *protocol.ConfirmationEnded:
		if was, asked := v.questions[m.Token]; (!asked || was != "") && v.snapshots == 0 {
			v.complain("confirmation.ended %s of a question that was %q; asked %t, %d returns; %s%s", m.Outcome, was, asked, v.returns, v.caller.crowd.links.tell(v.session), v.lately())
		}
		v.questions[m.Token] = m.Outcome
	case *protocol.Error:
		v.errors[m.Code]++
		v.understood = append(v.understood, h.at)
		if t := v.turns[m.Turn]; t != nil {
			t.failed = true
		}
		if m.Code == protocol.CodeInternal {
			v.complain("the gateway reported an internal error: %s", m.Message)
		}
	case *protocol.Unknown:
		v.complain("an unknown message came: %s", m.Raw)
	}
}

// remember keeps the latest messages.
func (v *visit) remember(h happening) {
	if m, ok := h.msg.(*protocol.Transcript); ok && !m.Final {
		return
	}
	v.mention("%s", v.describe(h))
}

// describe returns a line about a message that has come: when, its seq, its type and its turn.
func (v *visit) describe(h happening) string {
	return fmt.Sprintf("%.3f #%d %s %d%s", h.at.Sub(v.began).Seconds(), protocol.HeaderOf(h.msg).Seq, typeOf(h.msg), protocol.HeaderOf(h.msg).Turn, about(h.msg))
}

// mention adds a line to the latest that have come.
func (v *visit) mention(format string, args ...any) {
	v.latest = append(v.latest, fmt.Sprintf(format, args...))
	if len(v.latest) > maxLatest {
		v.latest = slices.Delete(v.latest, 0, 1)
	}
}

func (v *visit) takeAudio(h happening) {
	if v.open == "" {
		v.complain("%d bytes of audio came although no item was open", h.bytes)
		return
	}
	if v.from > 0 && !v.lastFrame.IsZero() {
		v.gap = max(v.gap, h.at.Sub(v.lastFrame))
		if h.at.Sub(v.lastFrame) > maxGap {
			v.gaps = append(v.gaps, gap{v.open, v.lastFrame, h.at})
		}
	}
	if wrong := v.caller.crowd.links.differs(v.voice(), v.open, v.from, h.pcm); wrong != "" {
		v.complain("of %s, %s", v.open, wrong)
	}
	v.from += h.bytes
	v.have[v.open] = max(v.have[v.open], v.from)
	v.lastFrame = h.at
}

// takeItem takes audio.start, audio.end and audio.flush.
func (v *visit) takeItem(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.AudioStart:
		if v.flushed[m.ItemID] {
			v.complain("%s speaks again after its flush", m.ItemID)
		}
		v.open, v.item, v.from = m.ItemID, m.ItemID, int(m.FromMS)*48
		if have := v.have[m.ItemID]; v.from > have {
			v.complain("%s goes on at byte %d, and %d have come", m.ItemID, v.from, have)
		}
		v.have[m.ItemID] = max(v.have[m.ItemID], 0) // it is known
		v.lastFrame = time.Time{}
		if t := v.turns[m.Turn]; t != nil {
			t.audio = true
		}
	case *protocol.AudioEnd:
		v.whole(m)
		v.open = ""
		v.audioMS += m.AudioMS
		v.heard(m.ItemID, m.AudioMS)
	case *protocol.AudioFlush:
		v.flushed[m.ItemID] = true
		played := int64(0)
		if v.open == m.ItemID {
			v.open, played = "", audio.MS(24000, v.have[m.ItemID])/2
		}
		v.heard(m.ItemID, played)
	}
}

// whole sees that all of an item has come. What an interruption or the end of the
// session drops does not, although the item's end may have been on its way by then.
func (v *visit) whole(m *protocol.AudioEnd) {
	if _, known := v.have[m.ItemID]; v.open != m.ItemID && (v.open != "" || !known) {
		v.complain("%s ended; %q was open", m.ItemID, v.open)
	}
	if ms := audio.MS(24000, v.have[m.ItemID]); ms != m.AudioMS {
		before := v.lately()
		v.patiently(2*time.Second, func() {
			if !v.flushed[m.ItemID] {
				v.complain("%s ended with %d ms; %d ms had come; %s%s\n\tand then%s", m.ItemID, m.AudioMS, ms, v.caller.crowd.links.tell(v.session), before, v.lately())
			}
		})
	}
}

// takeTurnEnd is invariant 2 from the client's side.
func (v *visit) takeTurnEnd(m *protocol.TurnEnded) {
	t := v.turns[m.Turn]
	if (t == nil || t.status != "") && v.snapshots > 0 {
		return // the snapshot took the turn's end
	}
	if t == nil || t.status != "" {
		v.complain("turn %d ended %s without having been open%s", m.Turn, m.Status, v.lately())
		return
	}
	t.status = m.Status
	switch {
	case m.Status == "completed" && !t.audio && v.snapshots == 0 && !v.onlyWritten(t):
		v.complain("turn %d completed without speech; its words came as %q, and the gateway got audio of %q%s", m.Turn, t.words,
			slices.DeleteFunc(slices.Clone(t.words), func(item string) bool { return !v.caller.crowd.links.spoke(v.voice(), item) }), v.lately())
	case m.Status == "failed" && !t.failed:
		v.complain("turn %d failed without an error", m.Turn)
	case m.Status != "completed" && m.Status != "failed" && m.Status != "interrupted":
		v.complain("turn %d ended %q", m.Turn, m.Status)
	}
}

// about names the call or the item that a message is about, for whoever reads of a complaint; empty for others.
func about(m protocol.ServerMessage) string {
	switch m := m.(type) {
	case *protocol.AudioStart:
		return fmt.Sprint(" ", m.ItemID, " from ", m.FromMS, " ms")
	case *protocol.AudioEnd:
		return fmt.Sprint(" ", m.ItemID, " with ", m.AudioMS, " ms")
	case *protocol.AudioFlush:
		return fmt.Sprint(" ", m.ItemID)
	case *protocol.ToolStarted:
		return fmt.Sprint(" ", m.CallID, " ", m.Tool)
	case *protocol.ToolEnded:
		return fmt.Sprint(" ", m.CallID, " ", m.Tool)
	case *protocol.ConfirmationRequest:
		return fmt.Sprint(" ", m.Tool, " ", string(m.Args))
	case *protocol.ConfirmationEnded:
		return fmt.Sprint(" ", m.Tool, " ", m.Outcome)
	}
	return ""
}

// onlyWritten reports whether the model's words came in a turn, and the gateway got no audio of them: each
// frame of a short one may have been malformed.
func (v *visit) onlyWritten(t *turnSeen) bool {
	return len(t.words) > 0 && !slices.ContainsFunc(t.words, func(item string) bool { return v.caller.crowd.links.spoke(v.voice(), item) })
}

// takeTool takes tool.started and tool.ended.
func (v *visit) takeTool(at time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		if v.tools[m.CallID] != nil && v.snapshots == 0 {
			v.complain("%s started twice", m.CallID)
		}
		v.tools[m.CallID] = &toolSeen{tool: m.Tool, began: at}
	case *protocol.ToolEnded:
		seen := v.tools[m.CallID]
		if seen == nil && v.snapshots > 0 {
			return
		}
		if seen != nil && seen.ended != nil && v.killedAfter(seen.endedAt) {
			v.toldTwice++ // the next gateway did not know of its end
			return
		}
		if seen == nil || seen.ended != nil || seen.tool != m.Tool {
			v.complain("%s of %s ended without being under way; %s%s", m.CallID, m.Tool, v.caller.crowd.links.tell(v.session), v.lately())
			return
		}
		seen.ended, seen.endedAt = m, at
	}
}

// owed names what has begun and has not come to its end; empty if nothing is owed. A
// turn that has spoken owes nothing: the provider may have lost its end.
func (v *visit) owed() string {
	var owed []string
	for _, id := range slices.Sorted(maps.Keys(v.tools)) {
		if v.tools[id].ended == nil {
			owed = append(owed, "the end of "+id+", "+v.tools[id].tool)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(v.turns)) {
		if t := v.turns[n]; t.status == "" && !t.audio && !t.failed {
			owed = append(owed, fmt.Sprintf("speech or an error for turn %d", n))
		}
	}
	for token, at := range v.answered {
		if outcome, asked := v.questions[token]; at == v.at && asked && outcome == "" {
			owed = append(owed, "the end of a question that was answered")
		}
	}
	return strings.Join(owed, "; ")
}

// cutToken takes apart what crowd.tokens holds.
func cutToken(s string) (session, token string, ok bool) { return strings.Cut(s, " ") }

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

// record is a client's observations and findings about its session.
type record struct {
	session    string
	complaints []string
	vanished   bool // it dropped the connection itself
	quiet      bool // it hung up when nothing was owed

	seq          int64          // the highest
	numbers      map[int64]bool // each received seq
	base         int64          // seq of this connection's session.started; zero on the first one
	newest       int64          // the highest seq since then
	older        int64          // the latest missed seq
	excused      int64          // a snapshot replaced missed messages up to here
	holes        int            // the number of seqs that may be unused
	early        int            // additional ones if the connection is lost now
	open         string         // the item whose audio is arriving
	item         string         // the latest item with audio
	from         int            // position of the next frame, in bytes
	have         map[string]int // bytes of audio, by item
	lastFrame    time.Time
	flushed      map[string]bool
	turns        map[int]*turnSeen
	tools        map[string]*toolSeen // by the gateway's call id
	questions    map[string]string    // outcomes by token; empty if open
	approvals    []approval
	errors       map[string]int // by code
	gap          time.Duration  // the longest between two frames of an item
	audioMS      int64
	reason       string // of session.ended
	code         websocket.StatusCode
	token        string    // resume token
	before       string    // the previous token
	spent        []string  // invalid ones
	displaced    []string  // tokens of displaced tabs
	displacing   string    // token of a tab displaced by one that has not started yet
	twins        int       // number of times that two tabs resumed at once
	stray        time.Time // time at which such a tab lost its connection before its start, or started last: it displaced the other one, or still may
	strayStarts  int       // starts of the session since then, before the tab may have displaced it
	outages      map[string]int
	returns      int
	snapshots    int
	repeats      int            // repeated messages
	losingAt     time.Time      // when it last decided to lose the connection
	lostAt       time.Time      // when it was last lost
	lostTimes    []time.Time    // when it decided to lose it
	overAt       time.Time      // the end of the visit
	backAt       []time.Time    // when it had resumed
	refusedAt    time.Time      // when it could not resume; zero otherwise
	forgotten    bool           // it resumed without its audio
	reconnecting map[string]int // reported reconnections of the model, by reason
	gaps         []gap
	overtalks    []time.Time // when it spoke during a replacement of the model's connection
	understood   []time.Time // when speech was transcribed or failed
	turnAt       []time.Time // when turns began
	typedAt      []time.Time
	owner        *chaosNode // the owner when the caller was last connected
	taken        int        // number of takeovers
	openBefore   bool       // a turn was open when the connection was lost
	askedAgain   time.Time  // since when the caller awaits a turn from another gateway; or zero
	again        int        // turns repeated by another gateway
	endedTwice   int        // repeated ends of tools after a kill
	latest       []string   // the latest messages, for findings
}

const maxLatest = 60

type turnSeen struct {
	status string // empty if open
	audio  bool
	failed bool     // an error was reported
	words  []string // items with the model's words
}

type toolSeen struct {
	tool    string
	began   time.Time
	ended   *protocol.ToolEnded
	endedAt time.Time
}

// approval is an approval that the client sent.
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

// take records and answers a message.
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
			v.complain("confirmation.ended %s of a question that was %q; asked %t, %d returns; %s%s", m.Outcome, was, asked, v.returns, v.caller.crowd.links.describe(v.session), v.lately())
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
		v.complain("unknown message: %s", m.Raw)
	}
}

// remember stores the latest messages.
func (v *visit) remember(h happening) {
	if m, ok := h.msg.(*protocol.Transcript); ok && !m.Final {
		return
	}
	v.mention("%s", v.describe(h))
}

// describe formats a message: time, seq, type and turn.
func (v *visit) describe(h happening) string {
	return fmt.Sprintf("%.3f #%d %s %d%s", h.at.Sub(v.began).Seconds(), protocol.HeaderOf(h.msg).Seq, typeOf(h.msg), protocol.HeaderOf(h.msg).Turn, about(h.msg))
}

// mention adds a line to the latest messages.
func (v *visit) mention(format string, args ...any) {
	v.latest = append(v.latest, fmt.Sprintf(format, args...))
	if len(v.latest) > maxLatest {
		v.latest = slices.Delete(v.latest, 0, 1)
	}
}

func (v *visit) takeAudio(h happening) {
	if v.open == "" {
		v.complain("%d bytes of audio arrived although no item was open", h.bytes)
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

// takeItem handles audio.start, audio.end and audio.flush.
func (v *visit) takeItem(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.AudioStart:
		if v.flushed[m.ItemID] {
			v.complain("%s speaks again after its flush", m.ItemID)
		}
		v.open, v.item, v.from = m.ItemID, m.ItemID, int(m.FromMS)*48
		if have := v.have[m.ItemID]; v.from > have {
			v.complain("%s continues at byte %d, and %d have arrived", m.ItemID, v.from, have)
		}
		v.have[m.ItemID] = max(v.have[m.ItemID], 0) // known now
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

// whole checks that an item arrived completely. Audio dropped by an interruption or the session's end is exempt, even
// if the item's end was in transit.
func (v *visit) whole(m *protocol.AudioEnd) {
	if _, known := v.have[m.ItemID]; v.open != m.ItemID && (v.open != "" || !known) {
		v.complain("%s ended; %q was open", m.ItemID, v.open)
	}
	if ms := audio.MS(24000, v.have[m.ItemID]); ms != m.AudioMS {
		before := v.lately()
		v.patiently(2*time.Second, func() {
			if !v.flushed[m.ItemID] {
				v.complain("%s ended with %d ms; %d ms had arrived; %s%s\n\tand then%s", m.ItemID, m.AudioMS, ms, v.caller.crowd.links.describe(v.session), before, v.lately())
			}
		})
	}
}

// takeTurnEnd checks invariant 2 from the client's side.
func (v *visit) takeTurnEnd(m *protocol.TurnEnded) {
	t := v.turns[m.Turn]
	if (t == nil || t.status != "") && v.snapshots > 0 {
		return // the snapshot replaced the turn's end
	}
	if t == nil || t.status != "" {
		v.complain("turn %d ended %s without having been open%s", m.Turn, m.Status, v.lately())
		return
	}
	t.status = m.Status
	switch {
	case m.Status == "completed" && !t.audio && v.snapshots == 0 && !v.onlyWritten(t):
		v.complain("turn %d completed without speech; its words are %q, and the gateway got audio of %q%s", m.Turn, t.words,
			slices.DeleteFunc(slices.Clone(t.words), func(item string) bool { return !v.caller.crowd.links.spoke(v.voice(), item) }), v.lately())
	case m.Status == "failed" && !t.failed:
		v.complain("turn %d failed without an error", m.Turn)
	case m.Status != "completed" && m.Status != "failed" && m.Status != "interrupted":
		v.complain("turn %d ended %q", m.Turn, m.Status)
	}
}

// about names the call or the item of a message for a finding; empty for others.
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

// onlyWritten reports whether a turn had words but no audio: each frame of a short item may have been malformed.
func (v *visit) onlyWritten(t *turnSeen) bool {
	return len(t.words) > 0 && !slices.ContainsFunc(t.words, func(item string) bool { return v.caller.crowd.links.spoke(v.voice(), item) })
}

// takeTool handles tool.started and tool.ended.
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
			v.endedTwice++ // the next gateway did not know of its end
			return
		}
		if seen == nil || seen.ended != nil || seen.tool != m.Tool {
			v.complain("%s of %s ended but was not running; %s%s", m.CallID, m.Tool, v.caller.crowd.links.describe(v.session), v.lately())
			return
		}
		seen.ended, seen.endedAt = m, at
	}
}

// owed names unfinished work; empty if none. A turn with speech owes nothing, because the provider may have lost its
// end.
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

// cutToken parses an entry of crowd.tokens.
func cutToken(s string) (session, token string, ok bool) { return strings.Cut(s, " ") }

package calls

import (
	"encoding/json"
	"slices"
	"time"
	"unicode"

	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// The check of claims finds statements of the assistant that it has done something ("I have booked it"), and compares
// them with the side effects of the conversation. It is pure. In doubt, a statement is not a claim, or is true.

// ClaimKind is the kind of an action.
type ClaimKind uint8

// The kinds. KindDone is any action.
const (
	KindBook ClaimKind = iota + 1
	KindSend
	KindCancel
	KindChange
	KindDelete
	KindCreate
	KindOrder
	KindPay
	KindTransfer
	KindRemind
	KindCall
	KindSwitch
	KindDone
)

var kindNames = [...]string{"", "book", "send", "cancel", "change", "delete", "create", "order", "pay", "transfer", "remind", "call",
	"switch", "done"}

// String returns the kind's name, such as "book".
func (k ClaimKind) String() string { return kindNames[k] }

func kindOf(name string) (ClaimKind, bool) {
	i := slices.Index(kindNames[1:], name)
	return ClaimKind(i + 1), i >= 0
}

// ClaimKinds is a set of kinds. The zero value means unknown.
type ClaimKinds uint32

func (k ClaimKind) set() ClaimKinds { return 1 << k }

// related has, for each kind of claim, the kinds of tools that may have done it.
var related = [...]ClaimKinds{
	KindBook:     kindSet(KindBook, KindOrder, KindCreate, KindChange, KindRemind, KindPay, KindTransfer),
	KindSend:     kindSet(KindSend, KindRemind, KindTransfer, KindPay, KindCreate),
	KindCancel:   kindSet(KindCancel, KindDelete, KindChange, KindSwitch),
	KindChange:   kindSet(KindChange, KindBook, KindCreate, KindDelete, KindSwitch, KindTransfer, KindPay),
	KindDelete:   kindSet(KindDelete, KindCancel, KindChange, KindPay),
	KindCreate:   kindSet(KindCreate, KindBook, KindRemind, KindChange, KindOrder, KindSend, KindSwitch, KindPay),
	KindOrder:    kindSet(KindOrder, KindBook, KindPay),
	KindPay:      kindSet(KindPay, KindOrder, KindTransfer),
	KindTransfer: kindSet(KindTransfer, KindPay, KindCall),
	KindRemind:   kindSet(KindRemind, KindCreate, KindBook),
	KindCall:     kindSet(KindCall, KindTransfer, KindSend, KindCancel),
	KindSwitch:   kindSet(KindSwitch, KindChange, KindCancel, KindCreate, KindBook),
	KindDone:     ^ClaimKinds(0),
}

func kindSet(kinds ...ClaimKind) (s ClaimKinds) {
	for _, k := range kinds {
		s |= k.set()
	}
	return s
}

// Claim is a statement that something was done.
type Claim struct {
	Kind       ClaimKind
	Start, End int // the position of its clause in the text, in bytes
	// Weak means that it may report what a lookup has shown: "your appointment is booked".
	Weak bool
}

// ClaimEffect is a tool call that may make a claim true. Checkpoints contain its JSON form.
type ClaimEffect struct {
	Turn  int        `json:"turn,omitempty"`
	Kinds ClaimKinds `json:"kinds,omitempty"` // suggested by the words of the tool; see [KindsOf]
	Reads bool       `json:"reads,omitempty"` // it changed nothing
	Waits bool       `json:"waits,omitempty"` // a person has not approved it: nothing was done
}

// ClaimVerdict is the result of a check.
type ClaimVerdict string

// The verdicts.
const (
	ClaimMatched  ClaimVerdict = ""
	ClaimNoEffect ClaimVerdict = "no_side_effect"
	// ClaimWaiting: only a call that waits for a person's approval would make the claim true.
	ClaimWaiting ClaimVerdict = "waits_for_approval"
)

// Check compares a claim, made in a turn, with the conversation's effects. A writing call of the same turn makes any
// claim true, unless a call of the claimed kind waits for approval.
func (c Claim) Check(turn int, effects []ClaimEffect) ClaimVerdict {
	var matched, wroteNow, read bool
	var waits, waitsNow, matchedNow bool // calls of the claimed kind
	for _, e := range effects {
		now, fits := e.Turn == turn, e.fits(c.Kind)
		switch {
		case e.Waits && fits:
			waits, waitsNow = true, waitsNow || now
		case e.Waits:
		case e.Reads:
			read = read || now || fits && e.Kinds != 0
		default:
			matched, matchedNow, wroteNow = matched || fits, matchedNow || fits && now, wroteNow || now
		}
	}
	switch {
	case matchedNow, wroteNow && !waits, !waitsNow && (matched || c.Weak && read):
		return ClaimMatched
	case waits:
		return ClaimWaiting
	default:
		return ClaimNoEffect
	}
}

// fits reports whether the effect may be of that kind.
func (e ClaimEffect) fits(k ClaimKind) bool { return e.Kinds == 0 || e.Kinds&related[k] != 0 }

// maxToolWords limits how much of a tool's words KindsOf reads, in bytes of each text.
const maxToolWords = 2 << 10

// KindsOf returns the kinds that the words of a tool and its arguments suggest: its id, title and description, and the
// arguments' texts.
func KindsOf(args json.RawMessage, texts ...string) (s ClaimKinds) {
	_, tools := loadTables()
	for _, text := range append(texts, string(args)) {
		var word []rune
		before := ' '
		for _, r := range text[:min(len(text), maxToolWords)] + " " {
			if !unicode.IsLetter(r) || unicode.IsUpper(r) && unicode.IsLower(before) { // bookTable are two words
				s |= tools[string(word)]
				word = word[:0]
			}
			if unicode.IsLetter(r) {
				word = append(word, unicode.ToLower(r))
			}
			before = r
		}
	}
	return s
}

const (
	maxEffects = 64  // limits the remembered effects
	maxClaimed = 200 // limits a claim's words, in bytes
)

// Claimed is a statement of the assistant that no call explains. It is immutable.
type Claimed struct {
	Claim
	Turn int
	Why  ClaimVerdict
	Text string // the words
}

// Unmatched returns the claims in the words of a turn's answer that no call explains: at most one of each kind, of those that
// end after a byte.
func (c *Calls) Unmatched(turn int, words string, after int) (all []Claimed) {
	found := c.rules.Claims.Find(words)
	if len(found) == 0 {
		return nil
	}
	effects := c.known()
	for _, claim := range found {
		if claim.End <= after || slices.ContainsFunc(all, func(u Claimed) bool { return u.Kind == claim.Kind }) {
			continue
		}
		if why := claim.Check(turn, effects); why != ClaimMatched {
			all = append(all, Claimed{claim, turn, why, textutil.Shorten(words[claim.Start:claim.End], maxClaimed)})
		}
	}
	return all
}

// Still reports whether one of the claims is not true by now.
func (c *Calls) Still(all []Claimed) bool {
	effects := c.known()
	return slices.ContainsFunc(all, func(u Claimed) bool { return u.Check(u.Turn, effects) != ClaimMatched })
}

// Done records a successful call of an earlier part of the conversation, or of the client. args may be nil. An unknown
// tool may have changed something.
func (c *Calls) Done(turn int, tool string, args []byte) {
	t := toolOf(c.book.tools, tool)
	c.addEffect(effectOf(turn, t, tool, args, t.SideEffects != spec.SideEffectsWrites && t.ToolID != ""))
}

// remember keeps the effect of a finished call, if it had or may have had one.
func (c *Calls) remember(k *call, env registry.Envelope) {
	if c.rules.Claims.None() || !env.OK && (env.Error == nil || !env.Error.PartialSideEffects) {
		return
	}
	t := k.toolOf()
	c.addEffect(effectOf(k.turn, t, k.runs, k.args, t.SideEffects != spec.SideEffectsWrites))
}

func (c *Calls) addEffect(e ClaimEffect) {
	had := c.before()
	if !c.rules.Claims.None() && !slices.Contains(had.effects, e) {
		c.past = &past{had.lost, append(slices.Clone(had.effects[max(len(had.effects)+1-maxEffects, 0):]), e)}
	}
}

func effectOf(turn int, t *registry.Tool, id string, args []byte, reads bool) ClaimEffect {
	return ClaimEffect{Turn: turn, Kinds: KindsOf(args, id, t.Title, t.Description), Reads: reads}
}

func (k *call) toolOf() *registry.Tool {
	if k.prepared != nil {
		return k.prepared.Tool()
	}
	return toolOf(k.tools, k.runs)
}

// known returns the conversation's effects: of finished calls, of those under way, which may succeed, and of those that
// wait for approval.
func (c *Calls) known() []ClaimEffect {
	all := slices.Clone(c.before().effects)
	for i := range c.open {
		k := &c.open[i]
		if !k.wasAsked() && !k.hasTool() {
			continue
		}
		t := k.toolOf()
		e := effectOf(k.turn, t, k.runs, k.args, t.SideEffects != spec.SideEffectsWrites)
		if e.Waits = k.state == asking || k.state == waiting; e.Waits || !e.Reads {
			all = append(all, e)
		}
	}
	for _, o := range c.before().lost { // of unknown outcome
		all = append(all, effectOf(o.Turn, toolOf(c.book.tools, o.Runs), o.Runs, o.Args, false))
	}
	return all
}

// Record returns the claim's audit record, without the words.
func (u Claimed) Record(at time.Time, mode spec.Mode) audit.Record {
	return audit.Claimed(at, mode, u.Turn, u.Kind.String(), string(u.Why))
}

// Message returns the client's message; item is the utterance.
func (u Claimed) Message(item string) *protocol.ClaimUnmatched {
	return &protocol.ClaimUnmatched{Header: protocol.Header{Turn: u.Turn}, ItemID: item, Kind: u.Kind.String(), Text: u.Text,
		Reason: string(u.Why)}
}

// ClaimNotice returns the model's notice about claims. held: a check has kept them from the user.
func ClaimNotice(all []Claimed, held bool) string {
	var made, waiting []string
	for _, u := range all {
		if u.Why == ClaimWaiting {
			waiting = append(waiting, u.Text)
		} else {
			made = append(made, u.Text)
		}
	}
	return prompts.ClaimNotice(held, made, waiting)
}

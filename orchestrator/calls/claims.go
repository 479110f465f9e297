package calls

import (
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

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
	if !c.rules.Claims.None() && !slices.Contains(c.effects, e) {
		c.effects = append(slices.Clone(c.effects[max(len(c.effects)+1-maxEffects, 0):]), e)
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
	all := slices.Clone(c.effects)
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
	for _, o := range c.lost { // of unknown outcome
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

package orchestrator

import (
	"slices"

	"voicegw/internal/checks"
	"voicegw/internal/textutil"
	"voicegw/orchestrator/calls"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// Statements of the assistant that it has done something are checked at the end of the turn, when its calls are settled
// and the user has heard them. A call that still runs then may make them true.

// ClaimUnmatched reports a statement of the assistant that no call explains; Item is the utterance.
type ClaimUnmatched struct {
	calls.Claimed
	Item string
}

func (ClaimUnmatched) action() {}

// maxClaimNotices limits the notices about claims in a session: a model may insist.
const maxClaimNotices = 3

// maxSaid limits the utterances of a turn that are checked.
const maxSaid = 16

// spokenWords are the assistant's words that are to be checked, oldest first, and how many notices the model got. It is
// immutable.
type spokenWords struct {
	said       []saidWords
	notices    int
	correcting int // the latest turn that such a notice has begun
}

// saidWords is one utterance. If it was cut, the user heard heardMS of at least ofMS.
type saidWords struct {
	item                string
	turn                int
	text                string
	final, cut, checked bool
	heardMS, ofMS       int64
}

// heard returns the words that the user has heard.
func (s saidWords) heard() string {
	if !s.cut {
		return s.text
	}
	// Text may be far ahead of the audio that has arrived: speech has at most 20 characters a second.
	const msPerCharacter = 50
	return textutil.SpokenPart(s.text, s.heardMS, max(s.ofMS, int64(len(s.text))*msPerCharacter))
}

func (m *turnControl) checksClaims() bool { return !m.policy.Claims.None() }

// resay changes, or adds, the words of an utterance.
func (m *turnControl) resay(item string, turn int, change func(*saidWords)) (now saidWords) {
	next := &spokenWords{}
	if m.spokenWords != nil {
		*next = *m.spokenWords
	}
	i := slices.IndexFunc(next.said, func(s saidWords) bool { return s.item == item && s.turn == turn })
	if i < 0 {
		next.said = newest(next.said, saidWords{item: item, turn: turn}, maxSaid)
		i = len(next.said) - 1
	} else {
		next.said = slices.Clone(next.said)
	}
	change(&next.said[i])
	m.spokenWords = next
	return next.said[i]
}

// noteWords keeps the assistant's words. Those that come after the end of their turn are checked at once.
func (m *turnControl) noteWords(told Transcript) {
	if !m.checksClaims() || told.Role != transport.RoleAssistant {
		return
	}
	s := m.resay(told.ID, told.Turn, func(s *saidWords) { s.text, s.final = told.Text, s.final || told.Final })
	if s.final && told.Turn != m.Turn() && !s.checked {
		m.checkClaims(told.Turn)
	}
}

func (m *turnControl) cutWords(c cut, turn int) {
	if m.checksClaims() {
		m.resay(c.item, turn, func(s *saidWords) { s.cut, s.heardMS, s.ofMS = true, c.heardMS, max(c.sentMS, c.audioMS) })
	}
}

// checkClaims reports the claims of a turn that no call explains, and has the model correct them.
func (m *turnControl) checkClaims(turn int) {
	if m.spokenWords == nil {
		return
	}
	var all []calls.Claimed
	kept := m.spokenWords.said[:0:0]
	for _, s := range m.spokenWords.said {
		if s.turn < turn {
			continue
		}
		due := s.turn == turn && !s.checked && (s.final || s.cut) // otherwise its last words come after the turn
		if due && !m.approving {
			for _, u := range m.calls.Unmatched(turn, s.heard(), 0) {
				all = append(all, u)
				m.do(ClaimUnmatched{u, s.item}, Audit{Record: u.Record(m.at, spec.ModeVoice)})
			}
		}
		s.checked = s.checked || due
		kept = append(kept, s)
	}
	next := *m.spokenWords
	next.said = kept
	m.spokenWords = &next
	m.correct(turn, all, false)
}

// correct asks the model to correct the claims of a turn. A turn in which it corrects itself brings no other notice. held: a
// check has kept them from the user, who waits for the answer; then only the number of stops is limited.
func (m *turnControl) correct(turn int, all []calls.Claimed, held bool) {
	if len(all) == 0 || m.phase != PhaseActive || len(m.notices) >= maxNotices {
		return
	}
	next := *m.spokenWords
	enough := turn == next.correcting || next.notices >= maxClaimNotices
	if held {
		enough = m.refused > maxStops
	} else {
		next.notices++
	}
	if !enough {
		m.spokenWords = &next
		m.notices = append(m.notices, notice{text: calls.ClaimNotice(all, held), claims: all})
	}
}

// Unmatched reports whether the words of an utterance so far have a claim, ending after a byte, that no call explains by
// now: see [calls.Calls.Unmatched].
func (s State) Unmatched(item, words string, after int) bool {
	return len(s.calls.Unmatched(s.user.turnOf(item, s.turns.last), words, after)) > 0
}

// heldClaims returns the claims of an answer that a check of claims has stopped; none for another check. They are not
// reported again.
func (m *turnControl) heldClaims(stop checks.Stop, turn int) []calls.Claimed {
	if !stop.Rule.Claims {
		return nil
	}
	m.resay(stop.Item, turn, func(s *saidWords) { s.checked = true })
	return m.calls.Unmatched(turn, stop.Text, 0)
}

// correcting records that the open turn was begun by a notice about claims.
func (m *turnControl) correcting() {
	next := *m.spokenWords
	next.correcting = m.turns.last
	m.spokenWords = &next
}

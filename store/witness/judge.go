package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bucket is a part of the store. Its number stands in the witness file, so a number is never
// reused for another part.
type Bucket uint8

// The parts of the store.
const (
	Ledger Bucket = iota + 1
	Confirmations
	Blocks
	Tickets
	Audit
	Conversations
	Leases
	Voice
	Approvals
	Answers
	Sessions
	Checkpoints
	Usage
	Agents
	Webhooks
	Jobs

	// Last is the last bucket.
	Last = Jobs
)

var names = map[Bucket]string{
	Ledger: "ledger", Confirmations: "confirmations", Blocks: "blocks", Tickets: "tickets",
	Audit: "audit", Conversations: "conversations", Leases: "leases", Voice: "voice", Approvals: "approvals", Answers: "answers",
	Sessions: "sessions", Checkpoints: "checkpoints", Usage: "usage", Agents: "agents", Webhooks: "webhooks", Jobs: "jobs",
}

// String returns the name that the operator knows, such as "ledger".
func (b Bucket) String() string {
	if name, ok := names[b]; ok {
		return name
	}
	return fmt.Sprintf("bucket %d", uint8(b))
}

// Guarded says whether each record of the bucket is witnessed, so that a loss is refused:
//   - ledger: without its entry a side effect could be done again;
//   - confirmations: an approval that was used and is open again could be used again;
//   - blocks: a lost block lets in a user who is shut out;
//   - tickets: a used ticket that is open again lets in a stranger.
//
// A loss in the others is only reported. Audit lines and conversations record what was said and
// done, and decide nothing by themselves. Leases and voice name running sessions, of which a
// start has none. Approvals are notes: a lost one is not reported to its conversation, and
// repeats nothing. Answers are given again to retried messages: a message whose answer is lost
// counts as a new one. Sessions and checkpoints only let a voice session go on: one whose record
// is lost cannot be resumed. Usage is for reading and for limits that are not exact anyway. An
// edit of an agent that is lost leaves the agent as it was before. Webhooks
// are events on their way, and nobody waits for a lost one. A job that is lost is not done, and its
// conversation is not told of its end.
func (b Bucket) Guarded() bool { return b >= Ledger && b <= Tickets }

// Key is the SHA-256 of the name of a record, as in the bucket.
type Key [32]byte

// Sum is the beginning of the SHA-256 of a record's value.
type Sum [16]byte

// Claim says that a record was acknowledged and must exist.
type Claim struct {
	Bucket   Bucket
	Key      Key
	Revision uint64
	Sum      Sum
	// Until is how long the record must exist. It is somewhat earlier than its end in the
	// bucket, so that the two never disagree about the last moment.
	Until time.Time
	// Going says that somebody began to remove the record: it may exist or not.
	Going bool
}

// Stream is what was known about a bucket's stream.
type Stream struct {
	// Created is when the stream was made, which distinguishes it from another one of the same
	// name. Zero means unknown.
	Created time.Time
	// Last is the number of the newest acknowledged message; zero means unknown.
	Last uint64
}

// Known is what a witness knows.
type Known struct {
	// Broken says in words what is wrong with the witness itself. Empty if it is intact. If it
	// is broken, the other fields are right and incomplete.
	Broken string
	// Claims hold at most one claim for each bucket and key: the newest.
	Claims  []Claim
	Streams map[Bucket]Stream
}

// Record is a record as it is in a stream.
type Record struct {
	Revision uint64
	Sum      Sum
}

// Held is the content of a stream.
type Held struct {
	Created time.Time
	Last    uint64
	// Lost is how many messages the server itself reports as lost.
	Lost int
	// Records are the records of a guarded bucket.
	Records map[Key]Record
}

// Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	// Missing: records that must exist do not.
	Missing Kind = "missing"
	// Older: records have a state from before a later write.
	Older Kind = "older"
	// Changed: records have another content than the one that was written.
	Changed Kind = "changed"
	// Replaced: the stream is not the same one as before, or is new and empty.
	Replaced Kind = "replaced"
	// Shorter: the newest messages are missing.
	Shorter Kind = "shorter"
	// Unread: the server itself reports that it has lost messages.
	Unread Kind = "unread"
	// Broken: the witness is damaged, so nobody can say what is missing.
	Broken Kind = "broken"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Bucket is zero for the witness itself.
	Bucket Bucket
	Kind   Kind
	// Claims are the claims that do not hold.
	Claims []Claim
	// Detail adds details in words; it may be empty.
	Detail string
	// Refused says that the store must not continue as if nothing had happened. Findings that
	// are not refused are only reported.
	Refused bool
}

// String describes the finding in words.
func (f Finding) String() string {
	switch f.Kind {
	case Broken:
		return "the witness is damaged: " + f.Detail
	case Missing:
		return fmt.Sprintf("%s: %s missing", f.Bucket, records(len(f.Claims), "is", "are"))
	case Older:
		return fmt.Sprintf("%s: %s in an older state than the last one that was acknowledged", f.Bucket, records(len(f.Claims), "is", "are"))
	case Changed:
		return fmt.Sprintf("%s: %s another content than what was written", f.Bucket, records(len(f.Claims), "has", "have"))
	}
	return fmt.Sprintf("%s: %s", f.Bucket, f.Detail)
}

func records(n int, one, many string) string {
	if n == 1 {
		return "1 record " + one
	}
	return fmt.Sprintf("%d records %s", n, many)
}

// Verdict is the result of a comparison, guarded buckets first.
type Verdict struct{ Findings []Finding }

// Refused says whether the store must not be opened unless the operator chooses so.
func (v Verdict) Refused() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused })
}

// Refuses says whether a finding about a bucket is refused.
func (v Verdict) Refuses(b Bucket) bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused && f.Bucket == b })
}

// Blind says that nobody can tell which records are lost, because the witness is damaged. Then
// every key that the ledger lacks is in doubt.
func (v Verdict) Blind() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Kind == Broken })
}

// Doubtful returns the claims of one bucket that do not hold.
func (v Verdict) Doubtful(b Bucket) []Claim {
	var all []Claim
	for _, f := range v.Findings {
		if f.Bucket == b && f.Refused {
			all = append(all, f.Claims...)
		}
	}
	return all
}

// String describes the findings in one line.
func (v Verdict) String() string {
	var words []string
	for _, f := range v.Findings {
		words = append(words, f.String())
	}
	return strings.Join(words, "; ")
}

// Judge compares what the witness knows with what the streams hold. It is pure: it reads no
// clock and no disk. held has an entry for each bucket.
//
// A record that is newer than its claim, or that has no claim, is not damage: its writer was
// killed before it could tell the witness, and was not acknowledged. A claim whose time has
// passed, or whose record was being removed, claims nothing. So a stream that holds every
// acknowledged write is never refused, whenever its writer was killed.
func Judge(known Known, held map[Bucket]Held, now time.Time) Verdict {
	var v Verdict
	if known.Broken != "" {
		v.Findings = append(v.Findings, Finding{Kind: Broken, Detail: known.Broken, Refused: true})
	}
	wrong := map[Bucket]map[Kind][]Claim{}
	for _, c := range known.Claims {
		kind, ok := judgeClaim(c, held[c.Bucket], now)
		if ok {
			continue
		}
		if wrong[c.Bucket] == nil {
			wrong[c.Bucket] = map[Kind][]Claim{}
		}
		wrong[c.Bucket][kind] = append(wrong[c.Bucket][kind], c)
	}
	for b := Ledger; b <= Last; b++ {
		for _, kind := range []Kind{Missing, Older, Changed} {
			if claims := wrong[b][kind]; len(claims) > 0 {
				slices.SortFunc(claims, func(x, y Claim) int { return cmp.Compare(x.Revision, y.Revision) })
				v.Findings = append(v.Findings, Finding{Bucket: b, Kind: kind, Claims: claims, Refused: true})
			}
		}
		v.Findings = append(v.Findings, judgeStream(b, known.Streams[b], held[b])...)
	}
	return v
}

func judgeClaim(c Claim, held Held, now time.Time) (Kind, bool) {
	if c.Going || !now.Before(c.Until) {
		return "", true
	}
	r, ok := held.Records[c.Key]
	switch {
	case !ok:
		return Missing, false
	case r.Revision < c.Revision:
		return Older, false
	case r.Revision == c.Revision && r.Sum != c.Sum:
		return Changed, false
	}
	return "", true
}

// judgeStream says what is wrong with a stream as a whole. If all claims hold, a guarded stream
// that is shorter has lost only records whose life was over, so that is only reported.
func judgeStream(b Bucket, known Stream, held Held) []Finding {
	var found []Finding
	if !known.Created.IsZero() && !known.Created.Equal(held.Created) {
		return append(found, Finding{
			Bucket: b, Kind: Replaced, Refused: b.Guarded(),
			Detail: fmt.Sprintf("it was made at %s, and the one that was written before at %s", stamp(held.Created), stamp(known.Created)),
		})
	}
	if held.Last < known.Last {
		found = append(found, Finding{
			Bucket: b, Kind: Shorter,
			Detail: fmt.Sprintf("it ends at message %d, and message %d was acknowledged", held.Last, known.Last),
		})
	}
	if held.Lost > 0 {
		found = append(found, Finding{
			Bucket: b, Kind: Unread,
			Detail: fmt.Sprintf("the server says that it has lost %d messages", held.Lost),
		})
	}
	return found
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

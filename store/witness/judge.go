package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bucket is a part of the store. Its number is in the witness file, so numbers are never reused.
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

	Last = Jobs
)

var names = map[Bucket]string{
	Ledger: "ledger", Confirmations: "confirmations", Blocks: "blocks", Tickets: "tickets",
	Audit: "audit", Conversations: "conversations", Leases: "leases", Voice: "voice", Approvals: "approvals", Answers: "answers",
	Sessions: "sessions", Checkpoints: "checkpoints", Usage: "usage", Agents: "agents", Webhooks: "webhooks", Jobs: "jobs",
}

// String returns the operator's name of the bucket, such as "ledger".
func (b Bucket) String() string {
	if name, ok := names[b]; ok {
		return name
	}
	return fmt.Sprintf("bucket %d", uint8(b))
}

// Guarded reports whether each record of the bucket is witnessed, so that the store refuses to open after a loss:
//   - ledger: without its entry a side effect could be repeated;
//   - confirmations: a used approval could be used again;
//   - blocks: a lost block admits a blocked user;
//   - tickets: a used ticket could be used again by a stranger.
//
// Losses in the other buckets are only reported. Nothing depends on audit lines and conversations. Leases and voice list
// running sessions, which don't survive a restart. A lost approval is only not reported to its conversation. Without an
// answer, a retried message counts as a new one. A session without its record or checkpoint can't be resumed. Usage is
// approximate anyway. A lost edit leaves an agent's previous version. A lost webhook is not delivered, and a lost job
// not done.
func (b Bucket) Guarded() bool { return b >= Ledger && b <= Tickets }

// Key is the SHA-256 of a record's name in its bucket.
type Key [32]byte

// Sum is the start of the SHA-256 of a record's value.
type Sum [16]byte

// Claim states that a record was acknowledged and must exist.
type Claim struct {
	Bucket   Bucket
	Key      Key
	Revision uint64
	Sum      Sum
	// Until is when the record may expire, slightly earlier than in the bucket so that the two never disagree.
	Until time.Time
	// Going means that a removal was started: the record may exist or not.
	Going bool
}

// Stream is the last known state of a bucket's stream.
type Stream struct {
	// Created is the stream's creation time, which distinguishes streams of the same name. Zero means unknown.
	Created time.Time
	// Last is the sequence number of the newest acknowledged message; zero means unknown.
	Last uint64
}

// Known is the content of a witness.
type Known struct {
	// Broken describes damage to the witness; empty if intact. After damage, the other fields are correct but incomplete.
	Broken string
	// Claims has the newest claim for each bucket and key.
	Claims  []Claim
	Streams map[Bucket]Stream
}

// Record is a record in a stream.
type Record struct {
	Revision uint64
	Sum      Sum
}

// Held is the content of a stream.
type Held struct {
	Created time.Time
	Last    uint64
	// Lost is the number of messages that the server reports as lost.
	Lost int
	// Records are the records of a guarded bucket.
	Records map[Key]Record
}

// Kind is the kind of a finding.
type Kind string

// The kinds of findings. The kinds of findings.
const (
	// Missing: required records don't exist.
	Missing Kind = "missing"
	// Older: records are in a state before a later acknowledged write.
	Older Kind = "older"
	// Changed: records differ from the written ones.
	Changed Kind = "changed"
	// Replaced: the stream is a different one, or new and empty.
	Replaced Kind = "replaced"
	// Shorter: the newest messages are missing.
	Shorter Kind = "shorter"
	// Unread: the server reports lost messages.
	Unread Kind = "unread"
	// Broken: the witness is damaged, so losses are unknown.
	Broken Kind = "broken"
)

// Finding is one problem.
type Finding struct {
	// Bucket is zero for the witness itself.
	Bucket Bucket
	Kind   Kind
	// Claims are those that don't hold.
	Claims []Claim
	// Detail may be empty.
	Detail string
	// Refused means the store must not be opened; other findings are only reported.
	Refused bool
}

func (f Finding) String() string {
	switch f.Kind {
	case Broken:
		return "the witness is damaged: " + f.Detail
	case Missing:
		return fmt.Sprintf("%s: %s missing", f.Bucket, records(len(f.Claims), "is", "are"))
	case Older:
		return fmt.Sprintf("%s: %s in an older state than the last acknowledged one", f.Bucket, records(len(f.Claims), "is", "are"))
	case Changed:
		return fmt.Sprintf("%s: %s different content than written", f.Bucket, records(len(f.Claims), "has", "have"))
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

// Refused reports whether the store must not be opened without the operator's consent.
func (v Verdict) Refused() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused })
}

// Refuses reports whether a finding about a bucket is refused.
func (v Verdict) Refuses(b Bucket) bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused && f.Bucket == b })
}

// Blind reports whether the lost records are unknown because the witness is damaged. Then every key missing from the
// ledger is in doubt.
func (v Verdict) Blind() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Kind == Broken })
}

// Doubtful returns a bucket's claims that don't hold.
func (v Verdict) Doubtful(b Bucket) []Claim {
	var all []Claim
	for _, f := range v.Findings {
		if f.Bucket == b && f.Refused {
			all = append(all, f.Claims...)
		}
	}
	return all
}

func (v Verdict) String() string {
	var words []string
	for _, f := range v.Findings {
		words = append(words, f.String())
	}
	return strings.Join(words, "; ")
}

// Judge compares a witness with the streams. It is a pure function. held has an entry for each bucket.
//
// A record that is newer than its claim or has none is not damage: its writer was killed before recording the claim, and
// the write was not acknowledged. Expired claims, and claims of records being removed, are ignored. So a stream with
// every acknowledged write is never refused, whenever its writer was killed.
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

// judgeStream checks a stream as a whole. If all claims hold, a shorter guarded stream has lost only expired records,
// which is only reported.
func judgeStream(b Bucket, known Stream, held Held) []Finding {
	var found []Finding
	if !known.Created.IsZero() && !known.Created.Equal(held.Created) {
		return append(found, Finding{
			Bucket: b, Kind: Replaced, Refused: b.Guarded(),
			Detail: fmt.Sprintf("created at %s, the previous stream at %s", stamp(held.Created), stamp(known.Created)),
		})
	}
	if held.Last < known.Last {
		found = append(found, Finding{
			Bucket: b, Kind: Shorter,
			Detail: fmt.Sprintf("ends at message %d, before acknowledged message %d", held.Last, known.Last),
		})
	}
	if held.Lost > 0 {
		found = append(found, Finding{
			Bucket: b, Kind: Unread,
			Detail: fmt.Sprintf("the server reports %d lost messages", held.Lost),
		})
	}
	return found
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bucket is a part of the store. Its number stands in the witness file, so a number is
// never given to another part.
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

	// Last is the last of them.
	Last = Answers
)

var names = map[Bucket]string{
	Ledger: "ledger", Confirmations: "confirmations", Blocks: "blocks", Tickets: "tickets",
	Audit: "audit", Conversations: "conversations", Leases: "leases", Voice: "voice", Approvals: "approvals", Answers: "answers",
}

// String returns the name that the operator knows, such as "ledger".
func (b Bucket) String() string {
	if name, ok := names[b]; ok {
		return name
	}
	return fmt.Sprintf("bucket %d", uint8(b))
}

// Guarded says whether each record of the bucket is witnessed, so that a loss is refused:
//   - ledger: a lost entry is a deed done again;
//   - confirmations: an approval that was used and is open again is a deed done again;
//   - blocks: a lost block lets a user in who is shut out;
//   - tickets: a used ticket that is open again lets a stranger in.
//
// The loss of the others is only told. Audit lines and conversations are what was said
// and done, and nothing is decided by them alone. Leases and voice name sessions that
// run; none runs at a start. Approvals are notes of what was approved: a lost one is
// not told of, and repeats nothing. Answers are what retried messages are given again: a
// message whose answer is lost counts as a new one.
func (b Bucket) Guarded() bool { return b >= Ledger && b <= Tickets }

// Key is the SHA-256 of what a record stands for, as in the bucket.
type Key [32]byte

// Sum is the beginning of the SHA-256 of a record's value.
type Sum [16]byte

// Claim says that a record was acknowledged: it must be there.
type Claim struct {
	Bucket   Bucket
	Key      Key
	Revision uint64
	Sum      Sum
	// Until is how long the record must be there. It is somewhat earlier than its end in
	// the bucket, so that the two never quarrel about the last moment.
	Until time.Time
	// Going says that somebody set out to remove the record: it may be there or not.
	Going bool
}

// Stream is what was known of a bucket's stream.
type Stream struct {
	// Created is when the stream was made, which tells it from another of its name. Zero
	// for not known.
	Created time.Time
	// Last is the number of the newest message that was acknowledged; zero for not known.
	Last uint64
}

// Known is what a witness knows.
type Known struct {
	// Broken says in words what is wrong with the witness itself. Empty for a witness that
	// is whole. What else is known is right also where it is broken, but it is not all.
	Broken string
	// Claims hold one claim at most for each bucket and key: the newest.
	Claims  []Claim
	Streams map[Bucket]Stream
}

// Record is a record as a stream has it.
type Record struct {
	Revision uint64
	Sum      Sum
}

// Held is what a stream holds.
type Held struct {
	Created time.Time
	Last    uint64
	// Lost is how many messages the server itself says that it has lost.
	Lost int
	// Records are those of a guarded bucket.
	Records map[Key]Record
}

// Kind is what is wrong.
type Kind string

// The kinds of findings.
const (
	// Missing: records that must be there are not.
	Missing Kind = "missing"
	// Older: records are there as they were before a later write.
	Older Kind = "older"
	// Changed: records are there with another content than what was written.
	Changed Kind = "changed"
	// Replaced: the stream is another one than before, or a new and empty one.
	Replaced Kind = "replaced"
	// Shorter: the newest messages are missing.
	Shorter Kind = "shorter"
	// Unread: the server itself says that it has lost messages.
	Unread Kind = "unread"
	// Broken: the witness is damaged, so nobody can say what is missing.
	Broken Kind = "broken"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Bucket is zero for the witness itself.
	Bucket Bucket
	Kind   Kind
	// Claims are those that do not hold.
	Claims []Claim
	// Detail says more, in words; it may be empty.
	Detail string
	// Refused says that the store must not go on as if nothing had happened. What is not
	// refused is told.
	Refused bool
}

// String says what was found, in words.
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

// Verdict is what a comparison has found, guarded buckets first.
type Verdict struct{ Findings []Finding }

// Refused says whether the store must not be opened without the operator's choice.
func (v Verdict) Refused() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused })
}

// Refuses says whether what was found of one bucket is refused.
func (v Verdict) Refuses(b Bucket) bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Refused && f.Bucket == b })
}

// Blind says that nobody can tell which records are lost: the witness is damaged. Then
// everything that is not in the ledger is in doubt.
func (v Verdict) Blind() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Kind == Broken })
}

// Doubtful returns the claims that do not hold, those of one bucket.
func (v Verdict) Doubtful(b Bucket) []Claim {
	var all []Claim
	for _, f := range v.Findings {
		if f.Bucket == b && f.Refused {
			all = append(all, f.Claims...)
		}
	}
	return all
}

// String says in one line what was found.
func (v Verdict) String() string {
	var words []string
	for _, f := range v.Findings {
		words = append(words, f.String())
	}
	return strings.Join(words, "; ")
}

// Judge compares what the witness knows with what the streams hold. It is pure: it looks
// at no clock and no disk. held has an entry for each bucket.
//
// A record that is newer than its claim, or that nobody claims, is no damage: its writer
// was killed before it could tell the witness, and was not acknowledged. A claim whose
// time has passed, or whose record was being removed, claims nothing. So a stream that
// holds all that was acknowledged is never refused, whenever its writer was killed.
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

// Overlook is Judge without the comparison: what the streams hold is taken for all that
// there ever was. It is what the store did before it had a witness, for models that show
// what the comparison prevents.
func Overlook(Known, map[Bucket]Held, time.Time) Verdict { return Verdict{} }

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

// judgeStream says what is wrong with a stream as a whole. A guarded stream that is
// shorter has lost nothing but what was over where all claims hold, so that is only told.
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

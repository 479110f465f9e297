package witness

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	var (
		now     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		later   = now.Add(time.Hour)
		created = now.Add(-time.Hour)
		key     = Key{1}
		sum     = Sum{7}
	)
	claim := Claim{Bucket: Ledger, Key: key, Revision: 5, Sum: sum, Until: later}
	with := func(change func(*Claim)) []Claim {
		c := claim
		change(&c)
		return []Claim{c}
	}
	record := func(revision uint64, s Sum) Held {
		return Held{Created: created, Last: 9, Records: map[Key]Record{key: {Revision: revision, Sum: s}}}
	}
	empty := Held{Created: created, Last: 9}
	for name, test := range map[string]struct {
		claims []Claim
		stream Stream
		broken string
		held   Held
		want   []Kind
		refuse bool
	}{
		"nothing is known":            {held: empty},
		"as it was written":           {claims: []Claim{claim}, held: record(5, sum)},
		"missing":                     {claims: []Claim{claim}, held: empty, want: []Kind{Missing}, refuse: true},
		"missing in another bucket":   {claims: with(func(c *Claim) { c.Bucket = Tickets }), held: record(5, sum), want: []Kind{Missing}, refuse: true},
		"older":                       {claims: []Claim{claim}, held: record(4, sum), want: []Kind{Older}, refuse: true},
		"changed":                     {claims: []Claim{claim}, held: record(5, Sum{8}), want: []Kind{Changed}, refuse: true},
		"newer than its claim":        {claims: []Claim{claim}, held: record(6, Sum{8})},
		"without a claim":             {held: record(6, sum)},
		"over":                        {claims: with(func(c *Claim) { c.Until = now }), held: empty},
		"being removed":               {claims: with(func(c *Claim) { c.Going = true }), held: empty},
		"being removed and there":     {claims: with(func(c *Claim) { c.Going = true }), held: record(5, sum)},
		"the stream is the same":      {stream: Stream{Created: created, Last: 9}, held: empty},
		"the stream is longer":        {stream: Stream{Created: created, Last: 3}, held: empty},
		"the stream is another":       {stream: Stream{Created: now, Last: 3}, held: empty, want: []Kind{Replaced}, refuse: true},
		"shorter, nothing is missing": {stream: Stream{Created: created, Last: 10}, held: empty, want: []Kind{Shorter}},
		"the server has lost some":    {held: Held{Created: created, Lost: 2}, want: []Kind{Unread}},
		"the witness is damaged":      {broken: "a hole", claims: []Claim{claim}, held: record(5, sum), want: []Kind{Broken}, refuse: true},
		"both are damaged":            {broken: "a hole", claims: []Claim{claim}, held: empty, want: []Kind{Broken, Missing}, refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			known := Known{Broken: test.broken, Claims: test.claims, Streams: map[Bucket]Stream{Ledger: test.stream}}
			v := Judge(known, map[Bucket]Held{Ledger: test.held}, now)
			var kinds []Kind
			for _, f := range v.Findings {
				kinds = append(kinds, f.Kind)
			}
			if !slices.Equal(kinds, test.want) || v.Refused() != test.refuse {
				t.Errorf("found %v, refused %t: %v", kinds, v.Refused(), v)
			}
			if v.Blind() != (test.broken != "") {
				t.Errorf("blind: %t", v.Blind())
			}
		})
	}
}

// TestUnguardedLoss: the loss of an unguarded bucket is reported but not refused.
func TestUnguardedLoss(t *testing.T) {
	for b := Ledger; b <= Last; b++ {
		v := Judge(Known{Streams: map[Bucket]Stream{b: {Created: time.Unix(1, 0), Last: 7}}}, nil, time.Unix(9, 0))
		if len(v.Findings) != 1 || v.Refused() != b.Guarded() || !strings.Contains(v.String(), b.String()+": ") {
			t.Errorf("%v: refused %t, %v", b, v.Refused(), v)
		}
	}
}

// TestDoubtful: Doubtful names the unmet claims of a bucket.
func TestDoubtful(t *testing.T) {
	until := time.Unix(100, 0)
	claims := []Claim{
		{Bucket: Ledger, Key: Key{2}, Revision: 8, Until: until},
		{Bucket: Ledger, Key: Key{1}, Revision: 3, Until: until},
		{Bucket: Blocks, Key: Key{3}, Revision: 1, Until: until},
	}
	held := map[Bucket]Held{Ledger: {Records: map[Key]Record{{2}: {Revision: 7}}}}
	v := Judge(Known{Claims: claims}, held, time.Unix(9, 0))
	if got := v.Doubtful(Ledger); len(got) != 2 || got[0].Key != (Key{1}) || got[1].Key != (Key{2}) {
		t.Errorf("the ledger's: %+v", got)
	}
	if got := v.Doubtful(Blocks); len(got) != 1 {
		t.Errorf("the blocks': %+v", got)
	}
	if text := v.String(); text != "ledger: 1 record is missing; ledger: 1 record is in an older state than the last acknowledged one; blocks: 1 record is missing" {
		t.Error(text)
	}
}

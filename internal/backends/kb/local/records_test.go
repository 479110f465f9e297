package local_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"voicegw/internal/backends/kb"
)

// syllables make the words of makeRecords.
var syllables = strings.Fields("ba be bi bo bu da de di do du fa fe fi fo ga ge go ka ke ki ko la le li lo lu ma me mi mo mu " +
	"na ne ni no pa pe po ra re ri ro ru sa se si so ta te ti to va ve vi vo wa we zo")

// makeWord returns the nth word of makeRecords. Words with a lower n are more frequent.
func makeWord(n int) string {
	var b strings.Builder
	for n += len(syllables); n > 0; n /= len(syllables) {
		b.WriteString(syllables[n%len(syllables)])
	}
	return b.String()
}

const words = 30_000

// zipf draws the number of a word. The nth has about 1/n of the frequency of the first.
func zipf(r *rand.Rand) int { return int(math.Pow(words, r.Float64())) - 1 }

func sentence(r *rand.Rand, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = makeWord(zipf(r))
	}
	return strings.Join(all, " ")
}

// makeRecords makes n records, the same in each call, with about 80 words of text, a title of four, three of forty tags,
// and dates in three years. They have no meaning, so they are for measurements of time and memory.
func makeRecords(n int) []kb.Record {
	r := rand.New(rand.NewPCG(1, 2))
	records := make([]kb.Record, n)
	types, namespaces := kb.Types(), kb.Namespaces()
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range records {
		kind := types[i%len(types)]
		rec := kb.Record{
			ID: fmt.Sprintf("%s:r%06d", kind, i), Namespace: namespaces[r.IntN(len(namespaces))],
			Title: sentence(r, 4), Text: sentence(r, 60+r.IntN(40)), LastUpdated: begin.Add(time.Duration(r.IntN(3*365*24)) * time.Hour),
			Tags:     []string{fmt.Sprintf("tag%d", r.IntN(40)), fmt.Sprintf("tag%d", r.IntN(40)), fmt.Sprintf("tag%d", r.IntN(40))},
			Metadata: map[string]any{"number": fmt.Sprint(i)},
		}
		rec.Normalize()
		records[i] = rec
	}
	return records
}

// makeQueries makes n queries of two to four words of makeRecords.
func makeQueries(n int) []string {
	r := rand.New(rand.NewPCG(3, 4))
	queries := make([]string, n)
	for i := range queries {
		queries[i] = sentence(r, 2+r.IntN(3))
	}
	return queries
}

package local_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// judged is a query of testdata/questions.jsonl, to the records of testdata/textiles, or of testdata/spoken.jsonl, to
// those of testdata/hotels. The author of the latter had seen neither the ranking nor the former, and wrote them as
// people speak to a voice agent.
type judged struct {
	Class        string   `json:"class"`
	Part         string   `json:"part"` // tune, held (not used for tuning), or spoken
	Query        string   `json:"query"`
	Alternatives []string `json:"alternatives"`
	Right        []string `json:"right"` // none for an unrelated query
}

func questions(tb testing.TB, name string) []judged {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var all []judged
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for lines.Scan() {
		var q judged
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			tb.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, q)
	}
	return all
}

// judgedIndex is an index of the records of a folder in testdata.
func judgedIndex(tb testing.TB, folder string) *local.Index {
	tb.Helper()
	file, err := os.Open("testdata/synonyms.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	synonyms, problems := kb.ParseSynonyms("synonyms.txt", file)
	for _, p := range problems {
		tb.Error(p)
	}
	x, err := local.Open(local.Options{Synonyms: func() *kb.Synonyms { return synonyms }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	s, err := kb.OpenSource(tb.Context(), x, kb.SourceOptions{Path: "testdata/" + folder, Static: true})
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range s.State().Problems {
		tb.Error(p)
	}
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
	return x
}

// outcome is the result of the queries of one class and part.
type outcome struct {
	questions, found int
	reciprocal       float64 // 1/rank, summed
	highest          float64 // score of an unrelated query's best hit
	missed           []string
}

func ask(tb testing.TB, x kb.Index, all []judged) map[string]*outcome {
	tb.Helper()
	outcomes := map[string]*outcome{}
	for _, q := range all {
		found, err := x.Search(tb.Context(), kb.Query{Text: q.Query, Alternatives: q.Alternatives})
		if err != nil {
			tb.Fatalf("%q: %v", q.Query, err)
		}
		o := outcomes[q.Class+" "+q.Part]
		if o == nil {
			o = &outcome{}
			outcomes[q.Class+" "+q.Part] = o
		}
		o.questions++
		place := slices.IndexFunc(found.Hits, func(h kb.Hit) bool { return slices.Contains(q.Right, h.Record.ID) })
		if place >= 0 {
			o.reciprocal += 1 / float64(place+1)
		}
		switch {
		case place >= 0 && place < 3:
			o.found++
			continue
		case len(q.Right) == 0 && len(found.Hits) > 0:
			o.highest = max(o.highest, found.Hits[0].Score)
		case len(q.Right) == 0:
			continue
		}
		line := fmt.Sprintf("%s %s: %q wants %v at %d, has", q.Class, q.Part, q.Query, q.Right, place+1)
		for _, h := range found.Hits[:min(3, len(found.Hits))] {
			line += fmt.Sprintf(" %s(%.2f)", h.Record.ID, h.Score)
		}
		o.missed = append(o.missed, line)
	}
	return outcomes
}

func table(w io.Writer, outcomes map[string]*outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tquestions\trecall@3\tMRR\thighest score")
	var names []string
	for name := range outcomes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		o := outcomes[name]
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\n", name, o.questions, float64(o.found)/float64(o.questions), o.reciprocal/float64(o.questions), o.highest)
	}
	_ = t.Flush()
}

// TestJudged: word search reaches its measured quality, also for queries not used for tuning. Queries that share no words
// with their records are in the class paraphrase, which has no lower limit: it shows the use of alternatives.
func TestJudged(t *testing.T) {
	outcomes := ask(t, judgedIndex(t, "textiles"), questions(t, "questions.jsonl"))
	maps.Copy(outcomes, ask(t, judgedIndex(t, "hotels"), questions(t, "spoken.jsonl")))
	var out strings.Builder
	table(&out, outcomes)
	t.Log("\n" + out.String())
	for _, part := range []string{"tune", "held", "spoken"} {
		all := outcome{}
		for name, o := range outcomes {
			class, of, _ := strings.Cut(name, " ")
			if of != part {
				continue
			}
			if of == "tune" || testing.Verbose() {
				for _, missed := range o.missed {
					t.Log(missed)
				}
			}
			switch class {
			case "unrelated":
				if o.highest > 0.5 {
					t.Errorf("%s: an unrelated question has a hit of %.2f", name, o.highest)
				}
			case "paraphrase":
			default:
				all.questions += o.questions
				all.found += o.found
				if recall := float64(o.found) / float64(o.questions); recall < 0.75 {
					t.Errorf("%s: recall@3 is %.2f", name, recall)
				}
			}
		}
		recall := float64(all.found) / float64(all.questions)
		t.Logf("%s: recall@3 %.3f of %d questions", part, recall, all.questions)
		if recall < 0.9 {
			t.Errorf("%s: recall@3 is %.3f; at least 0.9 is promised", part, recall)
		}
	}
}

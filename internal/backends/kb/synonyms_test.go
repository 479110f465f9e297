package kb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

func TestParseSynonyms(t *testing.T) {
	s, problems := kb.ParseSynonyms("s.txt", strings.NewReader("\ufeff# a comment\n\nBike, bicycle , Fahrrad # both ways\nPTO => paid time off, vacation\nárea, zone\nday off, leave\n"))
	if len(problems) > 0 {
		t.Error(problems)
	}
	for word, want := range map[string][]string{
		"bike": {"bicycle", "fahrrad"}, "fahrrad": {"bike", "bicycle"}, "pto": {"vacation"}, "vacation": nil, "zone": {"area"}, "area": {"zone"}, "else": nil,
	} {
		if diff := cmp.Diff(want, s.Words(word)); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
	for question, want := range map[string][]string{
		"How much PTO, please?": {"How much paid time off, please?"},
		"a Day Off in May":      {"a leave in May"},
		"paid time off":         nil,
		"day":                   nil,
	} {
		if diff := cmp.Diff(want, s.Rewordings(question)); diff != "" {
			t.Errorf("%q: %s", question, diff)
		}
	}
	var none *kb.Synonyms
	if none.Words("bike") != nil || none.Rewordings("bike") != nil {
		t.Error("no synonyms have some")
	}
}

// TestSynonymMistakes: each mistake is named with its line, and the other lines count.
func TestSynonymMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"alone": "one name without a synonym", "a => b => c": `more than one "=>"`, "a, , b": "without a word", "a =>": "without a word", "=> b": "without a word",
		"one two three four five six seven, a": "7 words", "a" + strings.Repeat(", b1", 40): "more than 32", "a, \xff": "UTF-8",
	} {
		s, problems := kb.ParseSynonyms("s.txt", strings.NewReader("x, y\n"+line+"\nv, w\n"))
		if len(problems) != 1 || problems[0].Line != 2 || problems[0].File != "s.txt" || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%.40q: %v", line, problems)
		}
		if s.Words("x") == nil || s.Words("v") == nil {
			t.Errorf("%.40q drops the lines around it", line)
		}
	}
	for name, text := range map[string]string{
		"too many lines": strings.Repeat("a, b\n", kb.MaxSynonymLines+1), "too many bytes": strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1100), "one long line": strings.Repeat("a, ", 40_000),
	} {
		if _, problems := kb.ParseSynonyms("s.txt", strings.NewReader(text)); len(problems) != 1 || problems[0].Line == 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func FuzzParseSynonyms(f *testing.F) {
	for _, seed := range []string{"a, b\nc d => e\n", "=>,=>\n", "#\n,\n", "a\x00, \ufeffb\r\n", "東京, tokyo"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := kb.ParseSynonyms("s", strings.NewReader(text))
		if len(problems) > strings.Count(text, "\n")+1 {
			t.Fatalf("%d problems", len(problems))
		}
		if again := s.Rewordings(text); len(again) > 4 {
			t.Fatalf("%d rewordings", len(again))
		}
	})
}

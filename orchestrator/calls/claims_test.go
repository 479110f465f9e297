package calls

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// labelledSentence is a sentence of a part of the corpus, such as "en" or "en.held", with the kind that a person gave it;
// "-" for no claim.
type labelledSentence struct{ part, kind, text string }

func claimCorpus(t testing.TB) (all []labelledSentence) {
	t.Helper()
	files, err := filepath.Glob("testdata/claims/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			kind, text, ok := strings.Cut(line, "\t")
			if _, known := kindOf(kind); !ok || kind != "-" && !known {
				t.Fatalf("%s: a line is a kind or -, tab, sentence: %q", file, line)
			}
			all = append(all, labelledSentence{strings.TrimSuffix(filepath.Base(file), ".txt"), kind, text})
		}
	}
	return all
}

func claimLanguages(t testing.TB, codes ...string) ClaimLanguages {
	t.Helper()
	l, err := ParseClaimLanguages(codes)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// claimScore counts the sentences of a part of the corpus.
type claimScore struct{ sentences, negatives, right, missed, wrong int }

func (s claimScore) precision() float64 { return float64(s.right) / float64(s.right+s.wrong) }
func (s claimScore) recall() float64    { return float64(s.right) / float64(s.right+s.missed) }

// publishedFigures has lower limits of the precision and recall in docs/policy.md for each part of the corpus. The tables
// were made with the parts "en" and "de". Never change them for sentences of the others: "held" and "last" were measured
// while they were made, and "fresh" once, afterwards.
var publishedFigures = map[string][2]float64{
	"en": {0.95, 0.8}, "de": {0.95, 0.8},
	"en.held": {0.98, 0.86}, "de.held": {0.96, 0.91},
	"en.last": {0.979, 0.92}, "de.last": {0.97, 0.88},
	"en.fresh": {0.97, 0.82}, "de.fresh": {0.97, 0.92},
}

// TestClaimCorpus finds the claims of the corpus with all languages on and prints the figures of docs/policy.md. It prints
// sentences only of the parts that the tables were made with.
func TestClaimCorpus(t *testing.T) {
	find, scores, kinds := claimLanguages(t, KnownClaimLanguages()...), map[string]*claimScore{}, 0
	for _, s := range claimCorpus(t) {
		sum := scores[s.part]
		if sum == nil {
			sum = &claimScore{}
			scores[s.part] = sum
		}
		sum.sentences++
		found, open := find.Find(s.text), !strings.Contains(s.part, ".")
		switch claim := s.kind != "-"; {
		case !claim && len(found) > 0:
			sum.negatives++
			sum.wrong++
			if open {
				t.Logf("wrong:  %s %q: %v", s.part, s.text, found)
			}
		case !claim:
			sum.negatives++
		case len(found) == 0:
			sum.missed++
			if open {
				t.Logf("missed: %s %q", s.part, s.text)
			}
		default:
			sum.right++
			if want, _ := kindOf(s.kind); related[found[0].Kind]&want.set() == 0 {
				kinds++
				t.Logf("kind:   %s %q is %s", s.part, s.text, found[0].Kind)
			}
		}
	}
	right := 0
	for part, want := range publishedFigures {
		s := scores[part]
		if s == nil {
			t.Fatalf("the corpus has no part %s", part)
		}
		t.Log(claimFigures(part, *s))
		if s.precision() < want[0] || s.recall() < want[1] {
			t.Errorf("%s: precision %.3f and recall %.3f, want at least %v", part, s.precision(), s.recall(), want)
		}
		if s.negatives*5 < s.sentences*2 {
			t.Errorf("%s: only %d of %d sentences are without a claim", part, s.negatives, s.sentences)
		}
		right += s.right
	}
	if len(scores) != len(publishedFigures) {
		t.Errorf("the corpus has %d parts, and %d have published figures", len(scores), len(publishedFigures))
	}
	if kinds > right/50 {
		t.Errorf("%d of %d claims have an unrelated kind", kinds, right)
	}
}

func claimFigures(name string, s claimScore) string {
	return fmt.Sprintf("%s: %d sentences, %d without a claim; precision %.3f, recall %.3f", name, s.sentences, s.negatives, s.precision(), s.recall())
}

// TestClaimForms: rules that single sentences of the corpus do not show.
func TestClaimForms(t *testing.T) {
	find := claimLanguages(t, "en", "de")
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"Okay. I've booked it, and I've sent you the details. Anything else?", "book:I've booked it; send:I've sent you the details"},
		{"I've booked your table, is there anything else?", "book:I've booked your table"},
		{"You said I've booked it?", ""},
		{"I’VE BOOKED IT!", "book:I’VE BOOKED IT"},
		{"I've sent it to Dr. Lee. Not the letter.", "send:I've sent it to Dr. Lee"},
		{"Your appointment with Dr. Lee is booked.", "book:Your appointment with Dr. Lee is booked?"},
		{"I've moved it to 3:30, or 15.30, for 1,000 euros.", "change:I've moved it to 3:30"},
		{"He said “I've booked it. I've sent it.” and left.", ""},
		{"> I've booked it\nI've sent it", "send:I've sent it"},
		{"Here is a draft.\nDear John,\nI've booked the hotel.\nBest regards", ""},
		{"```\nI've booked it\n```\nI've sent it", "send:I've sent it"},
		{"Der Termin am 3. Mai ist jetzt eingetragen.", "book:Der Termin am 3. Mai ist jetzt eingetragen"},
		{"Ihr Zahnarzttermin ist eingetragen.", "book:Ihr Zahnarzttermin ist eingetragen?"},
		{"I've cancelled the old one and booked a new one.", "cancel:I've cancelled the old one and booked a new one; book:I've cancelled the old one and booked a new one"},
		{"You could write: I have cancelled it.", ""},
		{"Good news: I've cancelled it.", "cancel:I've cancelled it"},
		{"I've forwarded past the intro. I've forwarded the mail.", "send:I've forwarded the mail"},
		{"I've opened your calendar. I've opened a ticket.", "create:I've opened a ticket"},
		{"I've reserved judgement. I've reserved a table.", "book:I've reserved a table"},
		{"I've confirmed that your seat is free. I've confirmed that seat.", "book:I've confirmed that seat"},
		{"I'm able to move your flight. I was able to move your flight.", "change:I was able to move your flight"},
		{"Ich konnte den Tisch reservieren.", "book:Ich konnte den Tisch reservieren"},
		{"Hi Tom I've booked it.", "book:I've booked it"},
		{"Your 9 a.m. call is cancelled.", "cancel:Your 9 a.m. call is cancelled?"},
		{"Ihr Vertrag wurde 2023 verlängert.", ""},
		{"I've sent it, haven't I?", ""},
		{"Ist Ihr Termin gebucht, wissen Sie das?", ""},
		{"Ich habe das Licht an.", ""},
		{"From what I can see, your seat has been booked.", ""},
		{"If you agree, your seat is booked.", ""},
		{"Supposing it rains, I've cancelled it.", ""},
		{"Your last order has been placed. Your order has been placed.", "order:Your order has been placed?"},
		{"Your flight is scheduled to leave.", ""},
		{"We've updated our address. We've updated your address.", "change:We've updated your address"},
		{"I've moved it and you're booked.", "change:I've moved it and you're booked; book:you're booked?"},
		{"The door is locked. The door is locked now.", "switch:The door is locked now"},
		{"Last week I've booked it.", ""},
		{"Booked! Timer set for ten minutes.", "book:Booked?; create:Timer set for ten minutes?"},
		{"Are you done with it? You've done it. I've done it.", "done:I've done it?"},
		{strings.Repeat("x", 200) + " I've booked it.", ""},
		{strings.Repeat("so ", 300) + ". I've booked it", "book:I've booked it"},
	} {
		var got []string
		for _, c := range find.Find(tt.text) {
			mark := ""
			if c.Weak {
				mark = "?"
			}
			got = append(got, c.Kind.String()+":"+tt.text[c.Start:c.End]+mark)
		}
		if got := strings.Join(got, "; "); got != tt.want {
			t.Errorf("%.60q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestClaimLanguages(t *testing.T) {
	if _, err := ParseClaimLanguages([]string{"en", "xx"}); err == nil || !strings.Contains(err.Error(), `"xx"; use one of de, en`) {
		t.Errorf("an unknown language: %v", err)
	}
	if l := claimLanguages(t); !l.None() || l.Find("I've booked it.") != nil {
		t.Error("without a language, a claim is found")
	}
	if l := claimLanguages(t, "en", "en"); len(l.Find("I've booked it.")) != 1 {
		t.Error("a repeated language finds claims twice")
	}
	if l := claimLanguages(t, "en"); l.Find("Ich habe den Tisch reserviert.") != nil {
		t.Error("English finds German")
	}
}

func TestClaimCheck(t *testing.T) {
	book := Claim{Kind: KindBook}
	weak := Claim{Kind: KindBook, Weak: true}
	booked, sent, unknown := KindBook.set(), KindSend.set(), ClaimKinds(0)
	for _, tt := range []struct {
		name    string
		claim   Claim
		effects []ClaimEffect
		want    ClaimVerdict
	}{
		{"no effect", book, nil, ClaimNoEffect},
		{"an effect", book, []ClaimEffect{{Turn: 5, Kinds: booked}}, ClaimMatched},
		{"an effect in an earlier turn", book, []ClaimEffect{{Turn: 2, Kinds: booked}}, ClaimMatched},
		{"an effect of a related kind", book, []ClaimEffect{{Turn: 2, Kinds: KindCreate.set()}}, ClaimMatched},
		{"another effect in an earlier turn", book, []ClaimEffect{{Turn: 2, Kinds: sent}}, ClaimNoEffect},
		{"an unknown effect in an earlier turn", book, []ClaimEffect{{Turn: 2, Kinds: unknown}}, ClaimMatched},
		{"another effect in this turn", book, []ClaimEffect{{Turn: 5, Kinds: sent}}, ClaimMatched},
		{"a call waits", book, []ClaimEffect{{Turn: 5, Kinds: booked, Waits: true}}, ClaimWaiting},
		{"a call waits since an earlier turn", book, []ClaimEffect{{Turn: 3, Kinds: booked, Waits: true}}, ClaimWaiting},
		{"a call waits, and another effect", book, []ClaimEffect{{Turn: 5, Kinds: sent}, {Turn: 5, Kinds: booked, Waits: true}}, ClaimWaiting},
		{"a call waits, and an earlier effect", book, []ClaimEffect{{Turn: 2, Kinds: booked}, {Turn: 5, Kinds: booked, Waits: true}}, ClaimWaiting},
		{"a call waits, and an effect in this turn", book, []ClaimEffect{{Turn: 5, Kinds: booked}, {Turn: 5, Kinds: booked, Waits: true}}, ClaimMatched},
		{"an old call waits, and an earlier effect", book, []ClaimEffect{{Turn: 2, Kinds: booked}, {Turn: 3, Kinds: booked, Waits: true}}, ClaimMatched},
		{"another call waits", book, []ClaimEffect{{Turn: 5, Kinds: sent, Waits: true}}, ClaimNoEffect},
		{"another call waits, and an effect", book, []ClaimEffect{{Turn: 5, Kinds: booked}, {Turn: 5, Kinds: sent, Waits: true}}, ClaimMatched},
		{"a lookup is not an effect", book, []ClaimEffect{{Turn: 5, Kinds: booked, Reads: true}}, ClaimNoEffect},
		{"a lookup shows a state", weak, []ClaimEffect{{Turn: 5, Kinds: sent, Reads: true}}, ClaimMatched},
		{"an earlier lookup shows a state", weak, []ClaimEffect{{Turn: 2, Kinds: booked, Reads: true}}, ClaimMatched},
		{"an earlier lookup of another kind", weak, []ClaimEffect{{Turn: 2, Kinds: sent, Reads: true}}, ClaimNoEffect},
		{"a lookup, and a call waits", weak, []ClaimEffect{{Turn: 5, Kinds: booked, Reads: true}, {Turn: 5, Kinds: booked, Waits: true}}, ClaimWaiting},
		{"done", Claim{Kind: KindDone}, []ClaimEffect{{Turn: 2, Kinds: sent}}, ClaimMatched},
	} {
		if got := tt.claim.Check(5, tt.effects); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for k := KindBook; k <= KindDone; k++ {
		if related[k]&k.set() == 0 {
			t.Errorf("%s is not related to itself", k)
		}
	}
}

// TestUnmatchedAfter: compared words are not compared again, and do not hide a later claim of their kind.
func TestUnmatchedAfter(t *testing.T) {
	c := New(nil, &Rules{Claims: claimLanguages(t, "en")})
	first, both := "I've booked a table. ", "I've booked a table. Now I've booked a taxi. And I've sent it."
	for name, tt := range map[string]struct {
		text  string
		after int
		want  string
	}{
		"all words, one of each kind": {both, 0, "I've booked a table, I've sent it"},
		"later words":                 {both, len(first), "I've booked a taxi, I've sent it"},
		"within a claim":              {both, len(first) - 5, "I've booked a table, I've sent it"},
		"no words left":               {first, len(first), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, u := range c.Unmatched(1, tt.text, tt.after) {
				got = append(got, u.Text)
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
	c.Done(1, "book_table", nil)
	if all := c.Unmatched(1, first, 0); all != nil {
		t.Errorf("after a call: %+v", all)
	}
}

// TestEffectsAreBounded: the latest effects are remembered, and calls of unknown outcome stay.
func TestEffectsAreBounded(t *testing.T) {
	c := New(nil, &Rules{Claims: claimLanguages(t, "en")})
	c.Restore(Memory{Open: []OpenCall{{Call: "c1", Tool: "send_mail", Runs: "send_mail", Writes: true}}}, "n")
	for turn := range maxEffects + 10 {
		c.Done(turn, "book_table", nil)
	}
	m := c.Memory()
	if len(m.Effects) != maxEffects || m.Effects[0].Turn != 10 || m.Effects[maxEffects-1].Turn != maxEffects+9 {
		t.Errorf("%d effects, %+v to %+v", len(m.Effects), m.Effects[0], m.Effects[len(m.Effects)-1])
	}
	if len(m.Lost) != 1 || m.Lost[0].Call != "c1" {
		t.Errorf("calls of unknown outcome: %+v", m.Lost)
	}
}

func TestKindsOf(t *testing.T) {
	for _, tt := range []struct {
		want  ClaimKinds
		args  string
		texts []string
	}{
		{0, ``, []string{"frobnicate"}},
		{kindSet(KindBook), ``, []string{"appointment_v2"}},
		{kindSet(KindBook), ``, []string{"bookTable"}},
		{kindSet(KindCancel, KindDelete), `{"action":"cancel"}`, []string{"crm_delete"}},
		{kindSet(KindSend), ``, []string{"x", "Verschickt eine Nachricht."}},
		{kindSet(KindRemind), ``, []string{"", "Stellt einen WECKER"}},
	} {
		if got := KindsOf([]byte(tt.args), tt.texts...); got&tt.want != tt.want || tt.want == 0 && got != 0 {
			t.Errorf("%v %s: %b, want %b", tt.texts, tt.args, got, tt.want)
		}
	}
}

// TestClaimsOfRecordings: every claim of a model in the recorded sessions matches a call.
func TestClaimsOfRecordings(t *testing.T) {
	dir, _ := filepath.Abs(".")
	var files []string
	for ; len(files) == 0 && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		files, _ = filepath.Glob(filepath.Join(dir, "shared", "fixtures", "*", "*.jsonl"))
	}
	if len(files) == 0 {
		t.Skip("no shared/fixtures with recordings above the package")
	}
	find, words := claimLanguages(t, KnownClaimLanguages()...), 0
	for _, file := range files {
		text, effects := saidInRecording(t, file)
		words += len(strings.Fields(text))
		for _, c := range find.Find(text) {
			if why := c.Check(1, effects); why != ClaimMatched {
				t.Errorf("%s: %q is %s", file, text[c.Start:c.End], why)
			}
		}
	}
	if words < 50 {
		t.Errorf("the recordings have %d words of a model", words)
	}
}

// saidInRecording returns the words of a recording's model, an utterance on each line, and its tool calls.
func saidInRecording(t *testing.T, file string) (text string, effects []ClaimEffect) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		type frame struct {
			Type, Delta, Transcript string
			ServerContent           struct {
				OutputTranscription struct{ Text string }
				TurnComplete        bool
			}
			ToolCall *struct{}
		}
		var l struct{ Data, Event frame }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		f := l.Data
		if l.Event.Type != "" {
			f = l.Event
		}
		switch {
		case f.Type == "response.output_audio_transcript.done":
			text += f.Transcript + "\n"
		case f.Type == "session.output_transcript.delta":
			text += f.Delta
		case f.ToolCall != nil, f.Type == "response.function_call_arguments.done":
			effects = append(effects, ClaimEffect{Turn: 1})
		case f.ServerContent.TurnComplete:
			text += "\n"
		default:
			text += f.ServerContent.OutputTranscription.Text
		}
	}
	return text, effects
}

// TestNoClaimAllocatesNothing: a text without a claim costs no allocation, because the check runs in every turn.
func TestNoClaimAllocatesNothing(t *testing.T) {
	find := claimLanguages(t, KnownClaimLanguages()...)
	for _, s := range claimCorpus(t) {
		if find.Find(s.text) == nil {
			if n := testing.AllocsPerRun(10, func() { find.Find(s.text) }); n > 0 {
				t.Fatalf("%v allocations for %q", n, s.text)
			}
		}
	}
}

func FuzzClaims(f *testing.F) {
	for _, s := range claimCorpus(f) {
		f.Add(s.text)
	}
	find := claimLanguages(f, KnownClaimLanguages()...)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range find.Find(text) {
			if c.Start < 0 || c.Start >= c.End || c.End > len(text) || c.Kind < KindBook || c.Kind > KindDone {
				t.Errorf("%q: %+v", text, c)
			}
		}
		KindsOf([]byte(text), text)
	})
}

// BenchmarkClaims reads a typical answer, 600 characters without a claim, and the longest text of participles.
func BenchmarkClaims(b *testing.B) {
	answer := strings.Repeat("There are three flights on Friday, and the first one leaves at nine. ", 9)
	hostile := strings.Repeat("your booked sent set to ", maxClaimText/24)
	for _, codes := range [][]string{{"en"}, KnownClaimLanguages()} {
		find := claimLanguages(b, codes...)
		for name, text := range map[string]string{"answer": answer, "hostile": hostile} {
			b.Run(name+"/"+strings.Join(codes, ","), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find.Find(text)
				}
			})
		}
	}
}

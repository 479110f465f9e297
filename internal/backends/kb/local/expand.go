package local

import (
	"cmp"
	"slices"
	"strings"

	"voicegw/internal/backends/kb"
)

// variant is a term by which a word of a question may be found, and how much that counts.
type variant struct {
	term   string
	weight float64
}

// group is a word of a question with its variants. A record counts the best of them.
type group struct {
	variants []variant
	// share is the word's part of the question: 1 for a word, less for a stop word and for a part of a word.
	share   float64
	part    bool // it is a part of a word that is itself a group
	records int  // approximately how many records the group finds
}

// The weights of variants; the word itself, its stems and its spellings have weight 1.
const (
	weightSynonym   = 0.8
	weightJoined    = 0.6 // two words in one
	weightPart      = 0.6 // a part of a compound
	weightEdit      = 0.6 // one typo
	weightEdits     = 0.4 // two typos
	weightSound     = 0.5
	weightPrefix    = 0.5
	weightCompound  = 0.5  // a compound whose head is the word
	weightBeginning = 0.35 // the same beginning
	weightStop      = 0.25
	weightShort     = 0.3 // one typo in a short word
)

const shortWord = 6 // the length below which a similar word is probably a different word

// The maximum number of variants of each kind.
const (
	mostNear     = 6
	mostPrefixes = 8
	mostHeads    = 8
	mostJoined   = 3 // words in one
)

// expand makes the groups of a question. It looks for near words only if no record, or few, contain the word itself.
func (v *vocabulary) expand(r *kb.Ranker, text string, records int, synonyms *kb.Synonyms) []group {
	asked := r.Question(text, v.held())
	v.mu.RLock()
	defer v.mu.RUnlock()
	groups := make([]group, 0, len(asked))
	var parts []group
	for i := range asked {
		w := &asked[i]
		g := group{share: 1}
		if w.Weak {
			g.share = weightStop
		}
		most := v.exact(&g, w)
		for _, word := range synonyms.Words(w.Surfaces[0]) {
			for _, form := range append(v.forms(word), word) {
				g.add(v, form, weightSynonym)
			}
		}
		if !w.Weak {
			parts = append(parts, v.second(&g, w, most, records)...)
		}
		groups = append(groups, g)
	}
	for i := range asked { // "data base", "first aid kit"
		joined := asked[i].Surfaces[0]
		for end := i + 1; end < min(i+mostJoined, len(asked)); end++ {
			joined += asked[end].Surfaces[0]
			for _, form := range v.forms(joined) {
				for j := i; j <= end; j++ {
					groups[j].add(v, form, weightJoined)
				}
			}
		}
	}
	groups = append(groups, parts...)
	for i := range groups {
		for _, one := range groups[i].variants {
			groups[i].records = max(groups[i].records, int(v.terms[one.term]))
		}
	}
	// Rare words first: for common ones, only few records then need checking.
	slices.SortStableFunc(groups, func(a, b group) int { return a.records - b.records })
	return groups
}

func (v *vocabulary) exact(g *group, w *kb.Asked) (most int) {
	weight := 1.0
	if w.Weak {
		weight = weightStop
	}
	for _, surface := range w.Surfaces {
		for _, form := range v.forms(surface) {
			g.add(v, form, weight)
		}
	}
	for _, form := range w.Forms {
		g.add(v, form, weight)
	}
	for _, one := range g.variants {
		most = max(most, int(v.terms[one.term]))
	}
	return most
}

func (g *group) add(v *vocabulary, term string, weight float64) {
	if v.terms[term] == 0 {
		return
	}
	for i := range g.variants {
		if g.variants[i].term == term {
			g.variants[i].weight = max(g.variants[i].weight, weight)
			return
		}
	}
	g.variants = append(g.variants, variant{term, weight})
}

// second adds terms near a word that few records contain, and returns groups of its parts.
func (v *vocabulary) second(g *group, w *kb.Asked, most, records int) (parts []group) {
	if most > max(6, records/50) {
		return nil
	}
	word := w.Surfaces[0]
	if most <= 3 {
		for _, w := range spellings(w) {
			for _, n := range v.neighbours(w, mostNear) {
				weight := weightEdit
				switch {
				case n.distance > 1:
					weight = weightEdits
				case len(w) < shortWord:
					weight = weightShort // "fire" and "firm" are two words rather than one
				}
				g.surface(v, n.at, weight)
			}
		}
		if s := soundOf(word); s != "" {
			for _, at := range v.sound[s][:min(len(v.sound[s]), mostNear)] {
				g.surface(v, at, weightSound)
			}
		}
	}
	if most == 0 {
		v.beginnings(g, word)
	}
	stems := slices.DeleteFunc(append([]string{word}, w.Forms...), func(s string) bool { return len(s) < edges })
	v.prefixes(g, stems)
	v.heads(g, stems)
	split := v.split(word)
	if split == nil && most == 0 {
		split = v.code(word)
	}
	for _, part := range split {
		p := group{part: true, share: weightPart / float64(len(split))}
		for _, form := range append(v.forms(part), part) {
			p.add(v, form, weightPart)
		}
		parts = append(parts, p)
	}
	return parts
}

// spellings returns the word and its shortest stem, in which endings do not interfere.
func spellings(w *kb.Asked) []string {
	shortest := w.Surfaces[0]
	for _, form := range w.Forms {
		if len(form) < len(shortest) || len(form) == len(shortest) && shortest == w.Surfaces[0] {
			shortest = form // "harri" of "harry"
		}
	}
	if len(shortest) < edges || shortest == w.Surfaces[0] {
		return w.Surfaces[:1]
	}
	return []string{w.Surfaces[0], shortest}
}

// beginnings adds words that share a long beginning with a word that no record contains: the longest word at its
// beginning, and words with another end.
func (v *vocabulary) beginnings(g *group, word string) {
	if len(word) < 8 || !lettersOnly(word) {
		return
	}
	for end := len(word) - 1; end >= max(5, len(word)/2); end-- {
		if at, ok := v.byText[word[:end]]; ok && v.surfaces[at].records > 0 {
			g.surface(v, at, weightBeginning)
			break
		}
	}
	shared := word[:max(7, len(word)*7/10)]
	bucket := v.begin[word[:edges]]
	found := 0
	for _, at := range bucket[:min(len(bucket), maxCompared)] {
		if s := &v.surfaces[at]; s.records > 0 && strings.HasPrefix(s.text, shared) && found < mostPrefixes {
			found++
			g.surface(v, at, weightBeginning)
		}
	}
}

func (g *group) surface(v *vocabulary, at int32, weight float64) {
	if v.surfaces[at].records > 0 {
		for _, form := range v.surfaces[at].forms {
			g.add(v, form, weight)
		}
	}
}

// prefixes adds the words that begin with a word, those with the fewest more letters first.
func (v *vocabulary) prefixes(g *group, stems []string) {
	var found []int32
	shortest := ""
	for _, stem := range stems {
		if len(stem) > edges && (shortest == "" || len(stem) < len(shortest)) || stem == stems[0] && shortest == "" {
			shortest = stem
		}
	}
	runes := []rune(shortest)
	if len(runes) < edges {
		return
	}
	bucket := v.begin[string(runes[:edges])]
	for _, at := range bucket[:min(len(bucket), maxCompared)] {
		if s := &v.surfaces[at]; s.records > 0 && strings.HasPrefix(s.text, shortest) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, func(a, b int32) int {
		return cmp.Or(len(v.surfaces[a].text)-len(v.surfaces[b].text), strings.Compare(v.surfaces[a].text, v.surfaces[b].text))
	})
	for _, at := range found[:min(len(found), mostPrefixes)] {
		g.surface(v, at, weightPrefix)
	}
}

func (v *vocabulary) heads(g *group, stems []string) {
	if v.languages["de"]+v.languages["nl"] == 0 {
		return
	}
	var found []string
	for _, stem := range stems {
		tail := stem[len(stem)-edges:]
		bucket := v.end[tail]
		for _, term := range bucket[:min(len(bucket), maxCompared)] {
			if len(term) >= len(stem)+3 && strings.HasSuffix(term, stem) && !slices.Contains(found, term) {
				found = append(found, term)
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(int(v.terms[b]-v.terms[a]), strings.Compare(a, b))
	})
	for _, term := range found[:min(len(found), mostHeads)] {
		g.add(v, term, weightCompound)
	}
}

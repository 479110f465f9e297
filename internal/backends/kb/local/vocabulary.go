package local

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"voicegw/internal/backends/kb"
)

// vocabulary maps every word and stem of the records to its terms and to similar words. An Apply can change it during a
// search, so it may be newer than the search's snapshot. The postings belong to the snapshot.
type vocabulary struct {
	mu sync.RWMutex // guards the fields below

	surfaces []surface
	byText   map[string]int32 // of surfaces
	terms    map[string]int32 // the number of records with each term
	// near maps a part of a word to the words that have it at that place; sound maps the sound of
	// a word, begin and end its first and last letters.
	near, sound, begin map[string][]int32
	end                map[string][]string // of terms
	dead               int                 // surfaces that no record contains any more
	languages          map[kb.Language]int
}

// surface is a whole word, folded, or a stem.
type surface struct {
	text    string
	records int32 // records that contain it; 0 for an unused one
	forms   []string
}

func newVocabulary() *vocabulary {
	v := &vocabulary{terms: map[string]int32{}, end: map[string][]string{}, languages: map[kb.Language]int{}}
	v.clearSurfaces()
	return v
}

func (v *vocabulary) clearSurfaces() {
	v.surfaces, v.dead = nil, 0
	v.byText = map[string]int32{}
	v.near, v.sound, v.begin = map[string][]int32{}, map[string][]int32{}, map[string][]int32{}
}

// add adds the words of records, or removes them if by is -1.
func (v *vocabulary) add(records []recordWords, by int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range records {
		v.countRecord(r, by)
		v.languages[r.in] += int(by)
	}
	if v.dead > 1000 && v.dead > len(v.surfaces)/2 {
		v.tidy()
	}
}

func (v *vocabulary) countRecord(r recordWords, by int32) {
	surfaces, forms := map[string]bool{}, map[string]bool{}
	surface := func(t kb.Term) {
		if !surfaces[t.Surface] {
			surfaces[t.Surface] = true
			v.count(t, by)
		}
	}
	for _, t := range slices.Concat(r.parts[:]...) {
		surface(t)
		for _, form := range t.Forms {
			if !forms[form] {
				forms[form] = true
				v.countTerm(form, by)
			}
			// A form is a surface too, so that typos are found in stems.
			surface(kb.Term{Surface: form, Forms: []string{form}})
		}
	}
}

// count counts a word. A surface keeps every form that it ever had: a form without postings finds nothing.
func (v *vocabulary) count(t kb.Term, by int32) {
	at, ok := v.byText[t.Surface]
	if !ok {
		if by < 0 {
			return
		}
		at = int32(len(v.surfaces))
		v.byText[t.Surface] = at
		v.surfaces = append(v.surfaces, surface{text: t.Surface})
		v.link(at)
	}
	s := &v.surfaces[at]
	switch s.records += by; {
	case s.records == 0:
		v.dead++
	case s.records == by && ok: // it is used again
		v.dead--
	}
	for _, form := range t.Forms {
		if !slices.Contains(s.forms, form) {
			s.forms = append(slices.Clip(s.forms), form)
		}
	}
}

func (v *vocabulary) countTerm(form string, by int32) {
	before := v.terms[form]
	now := max(before+by, 0)
	tail, compound := lastLetters(form)
	switch {
	case now > 0:
		if v.terms[form] = now; before == 0 && compound {
			v.end[tail] = append(v.end[tail], form)
		}
	case before > 0:
		if delete(v.terms, form); compound {
			v.end[tail] = slices.DeleteFunc(v.end[tail], func(f string) bool { return f == form })
		}
	}
}

// tidy rebuilds everything from the surfaces that are still used.
func (v *vocabulary) tidy() {
	old := v.surfaces
	v.clearSurfaces()
	for _, s := range old {
		if s.records <= 0 {
			continue
		}
		at := int32(len(v.surfaces))
		v.byText[s.text] = at
		v.surfaces = append(v.surfaces, s)
		v.link(at)
	}
}

const edges = 4 // the number of letters in the keys of begin and end

// lastLetters returns the last letters of a term that may be a compound.
func lastLetters(form string) (string, bool) {
	if len(form) < edges+3 || !lettersOnly(form) {
		return "", false
	}
	return form[len(form)-edges:], true
}

// lettersOnly reports whether a word consists of a to z, as compounds and words with typos must.
func lettersOnly(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

func (v *vocabulary) link(at int32) {
	text := v.surfaces[at].text
	letters := utf8.RuneCountInString(text)
	if letters < edges || letters > maxNear || strings.ContainsAny(text, "0123456789") {
		return
	}
	runes := []rune(text)
	first := string(runes[:edges])
	v.begin[first] = append(v.begin[first], at)
	for i, part := range parts(runes) {
		key := partKey(letters, i, part)
		v.near[key] = append(v.near[key], at)
	}
	if s := soundOf(text); s != "" {
		v.sound[s] = append(v.sound[s], at)
	}
}

// forms returns the terms by which a word of the records is found.
func (v *vocabulary) forms(surface string) []string {
	if at, ok := v.byText[surface]; ok && v.surfaces[at].records > 0 {
		return v.surfaces[at].forms
	}
	return nil
}

func (v *vocabulary) held() []kb.Language {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []kb.Language
	for _, language := range kb.Languages() {
		if v.languages[language] > 0 {
			all = append(all, language)
		}
	}
	return all
}

package sim

import (
	_ "embed"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"voicegw/sim/wire"
)

// Weights of the features of a text.
const (
	wordWeight  = 1.0
	groupWeight = 0.6
	pairWeight  = 0.35
	pieceWeight = 0.45 // of all pieces of a word together
)

// block is how many dimensions share one place of a feature: a vector of n dimensions has each feature n/block times.
// So every prefix of a vector is a useful vector too, as with models whose vectors may be shortened.
const block = 32

// Vector returns the embedding of a text, of length 1 (L2). dimensions is at least 1. It may be called concurrently.
func Vector(text string, dimensions int) []float32 {
	features := map[string]float64{}
	words := terms(text)
	counts := map[string]int{}
	for i, w := range words {
		counts[w]++
		if i > 0 {
			features["pair "+words[i-1]+" "+w] = pairWeight
		}
	}
	for w, n := range counts {
		weight := rarity(w) * (1 + math.Log(float64(n)))
		features["word "+w] += wordWeight * weight
		if g := groups[w]; g != "" {
			features["group "+g] += groupWeight * weight
		}
		pieces := trigrams(w)
		for _, p := range pieces {
			features["piece "+p] += pieceWeight * weight / math.Sqrt(float64(len(pieces)))
		}
	}
	return hashed(features, dimensions)
}

// rarity is higher for long words, which are rarer and carry more meaning.
func rarity(w string) float64 {
	n := utf8.RuneCountInString(w)
	return 0.8 + 0.1*float64(min(n, 8))
}

func trigrams(w string) []string {
	runes := []rune("^" + w + "$")
	var out []string
	for i := 0; i+3 <= len(runes); i++ {
		out = append(out, string(runes[i:i+3]))
	}
	return out
}

// hashed puts features into a vector of that many dimensions and scales it to length 1.
func hashed(features map[string]float64, dimensions int) []float32 {
	sums := make([]float64, dimensions)
	for _, f := range slices.Sorted(maps.Keys(features)) { // the order affects the last bits of sums
		h := fnv.New64a()
		_, _ = h.Write([]byte(f)) // writing to a hash never fails
		state := h.Sum64()
		for at := 0; at < dimensions; at += block {
			state += 0x9e3779b97f4a7c15
			bits := wire.Mix(state)
			place := at + int(bits%block)
			if place >= dimensions {
				place = at + int(bits%uint64(dimensions-at))
			}
			if bits>>63 == 0 {
				sums[place] += features[f]
			} else {
				sums[place] -= features[f]
			}
		}
	}
	length := 0.0
	for _, s := range sums {
		length += s * s
	}
	if length == 0 { // only stop words: a direction of their own
		sums[0], length = 1, 1
	}
	out := make([]float32, dimensions)
	for i, s := range sums {
		out[i] = float32(s / math.Sqrt(length))
	}
	return out
}

var stopWords = set(`a about after all also am an and any are as at be been before being but by can could did do does
	doing done for from get give had has have he her here him his how i if in into is it its just let me my no not of
	off on or our out own over please she should so some such tell than that the their them then there these they this
	those to too under up us use was we were what when where which while who whom whose why will with would you your`)

// groupLines are common English words with related meanings: all that this package knows about
// meaning. Each line is a group, its words as stem returns them or unchanged.
//
//go:embed groups.txt
var groupLines string

// groups maps a stem to the first word of its group.
var groups = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(groupLines), "\n") {
		words := strings.Fields(line)
		for _, w := range words {
			if s := stem(w); m[s] == "" {
				m[s] = words[0]
			}
		}
	}
	return m
}()

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

func terms(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r) && r != '\'' && r != '’'
	}) {
		w = strings.Trim(strings.ReplaceAll(w, "’", "'"), "'")
		w = strings.TrimSuffix(w, "'s")
		if w == "" || stopWords[w] {
			continue
		}
		out = append(out, stem(w))
	}
	return out
}

func stem(w string) string {
	env := snowballstem.NewEnv(w)
	english.Stem(env)
	return env.Current()
}

// Package english turns English text into the terms that the indexes count and
// that snippets are chosen by: words in lower case, without possessives and stop
// words, stemmed by Porter's algorithm. It is bleve's analysis, so that all who
// use it agree with what a bleve index holds.
package english

import (
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/token/stop"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
)

// Term is one word of a text that counts.
type Term struct {
	// Stem is what is compared.
	Stem string
	// Start and End are the bytes of the word in the text.
	Start, End int
}

// Analyzer makes terms. It may be used by any number of goroutines at once.
type Analyzer struct {
	all analysis.Analyzer
}

// New makes an Analyzer.
func New() (*Analyzer, error) {
	words := analysis.NewTokenMap()
	if err := words.LoadBytes(en.EnglishStopWords); err != nil {
		return nil, err
	}
	return &Analyzer{all: &analysis.DefaultAnalyzer{
		Tokenizer: unicode.NewUnicodeTokenizer(),
		TokenFilters: []analysis.TokenFilter{
			en.NewPossessiveFilter(),
			lowercase.NewLowerCaseFilter(),
			stop.NewStopTokensFilter(words),
			porter.NewPorterStemmer(),
		},
	}}, nil
}

// Terms returns the terms of the text in their order.
func (a *Analyzer) Terms(text string) []Term {
	tokens := a.all.Analyze([]byte(text))
	terms := make([]Term, len(tokens))
	for i, t := range tokens {
		terms[i] = Term{Stem: string(t.Term), Start: t.Start, End: t.End}
	}
	return terms
}

// Stems returns the stems of the text in their order.
func (a *Analyzer) Stems(text string) []string {
	tokens := a.all.Analyze([]byte(text))
	stems := make([]string, len(tokens))
	for i, t := range tokens {
		stems[i] = string(t.Term)
	}
	return stems
}

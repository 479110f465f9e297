package kbtest

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/backends/kb"
)

//go:embed judged.jsonl
var judgedLines string

// Question is a question about the demo, with the ids of the records that answer it.
type Question struct {
	Query string   `json:"query"`
	Right []string `json:"right"`
}

// Judged returns the judged questions.
func Judged(tb testing.TB) []Question {
	tb.Helper()
	var questions []Question
	lines := bufio.NewScanner(strings.NewReader(judgedLines))
	for lines.Scan() {
		var q Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			tb.Fatalf("judged.jsonl, %s: %v", lines.Text(), err)
		}
		questions = append(questions, q)
	}
	return questions
}

// Relevance measures an index with the judged questions.
type Relevance struct {
	Questions int
	// RecallAt3 is the share of questions with a right record among the first three.
	RecallAt3 float64
	// MRR is the mean of 1/(place of the first right record) within the first ten.
	MRR float64
	// Missed describes the questions without a right record among the first three.
	Missed []string
}

// Measure asks every judged question. The index must contain the demo.
func Measure(tb testing.TB, index kb.Index) Relevance {
	tb.Helper()
	r := Relevance{}
	for _, question := range Judged(tb) {
		results, err := index.Search(context.Background(), kb.Query{Text: question.Query})
		if err != nil {
			tb.Fatalf("%q: %v", question.Query, err)
		}
		place := slices.IndexFunc(results.Hits, func(h kb.Hit) bool { return slices.Contains(question.Right, h.Record.ID) })
		r.Questions++
		if place >= 0 {
			r.MRR += 1 / float64(place+1)
		}
		if place >= 0 && place < 3 {
			r.RecallAt3++
			continue
		}
		var instead []string
		for _, h := range results.Hits[:min(3, len(results.Hits))] {
			instead = append(instead, h.Record.ID)
		}
		r.Missed = append(r.Missed, fmt.Sprintf("%q: right is %v at place %d; first are %v", question.Query, question.Right,
			place+1, instead))
	}
	r.RecallAt3 /= float64(r.Questions)
	r.MRR /= float64(r.Questions)
	return r
}

// Package reportmake is the tool report_make: it has the report of a year made.
package reportmake

import (
	"context"
	"fmt"
	"time"

	"voicegw/registry"
)

// Needs are the capabilities that the tool uses.
type Needs struct {
	Progress registry.Progress
}

// Payload is what Work needs.
type Payload struct {
	Year int64 `json:"year"`
}

// chapters is how many a report has, and chapterTime how long one takes.
const (
	chapters    = 4
	chapterTime = 10 * time.Millisecond
)

// Execute begins the work, unless the year is not over.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	if int64(call.Session.Now.Year()) <= call.Args.Year {
		return registry.Result{}, registry.Errorf(registry.ErrorValidation, "The year %d is not over.", call.Args.Year)
	}
	return registry.Result{Job: &registry.NewJob{
		Payload: Payload{Year: call.Args.Year},
		Told:    fmt.Sprintf("The report of %d is being made and will be ready in a few minutes.", call.Args.Year),
	}}, nil
}

// Work makes the report. Its number is made of the key, so that all attempts make one report.
func Work(ctx context.Context, work registry.Work[Payload, Needs]) (registry.Result, error) {
	for i := range chapters {
		work.Needs.Progress.Tell(fmt.Sprintf("Chapter %d of %d", i+1, chapters), float64(i)/chapters)
		select {
		case <-time.After(chapterTime):
		case <-ctx.Done():
			return registry.Result{}, ctx.Err()
		}
	}
	number := fmt.Sprintf("R-%d-%.8s", work.Payload.Year, work.IdempotencyKey[len("vg-"):])
	return registry.Result{Data: Output{Number: number, Pages: 3 * chapters}}, nil
}

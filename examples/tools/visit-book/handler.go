// Package visitbook is the tool visit_book: it books a visit.
package visitbook

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities that the tool uses.
type Needs struct{}

// Execute books a visit.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	return registry.Result{Data: Output{People: int64(1 + len(call.Args.Guests))}}, nil
}

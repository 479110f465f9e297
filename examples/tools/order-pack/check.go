package orderpack

import (
	"context"
	"strings"

	"voicegw/registry"
)

// Check refuses an order of another shop before a person is asked to approve it.
func Check(_ context.Context, call registry.Call[Args, Needs]) error {
	if strings.HasPrefix(call.Args.Order, "X") {
		return registry.Errorf(registry.ErrorValidation, "%s is an order of another shop.", call.Args.Order)
	}
	return nil
}

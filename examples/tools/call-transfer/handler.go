// Package calltransfer implements the tool call_transfer.
package calltransfer

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of call_transfer: none.
type Needs struct{}

// Execute requests the transfer. The operator's phone.transfers has the numbers of the departments.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	to := string(call.Args.Department)
	return registry.Result{Data: Output{Department: to}, Intents: []registry.Intent{registry.TransferCall(to)}}, nil
}

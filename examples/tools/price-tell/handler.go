// Package pricetell implements the tool price_tell.
package pricetell

import (
	"context"
	"fmt"

	"voicegw/registry"
)

// Needs are the capabilities of price_tell: none.
type Needs struct{}

var euros = map[ArgsRepair]int64{ArgsRepairTyre: 29, ArgsRepairBrakes: 85}

// Execute has the price said, word for word. The model gets the answer once the user has heard it.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	price := euros[call.Args.Repair]
	words := fmt.Sprintf("This repair costs %d euros, including tax and parts.", price)
	return registry.Result{Data: Output{Euros: price}, Intents: []registry.Intent{registry.SayExactly(words, true)}}, nil
}

package pricetell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
)

func TestPrice(t *testing.T) {
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{Repair: ArgsRepairTyre}})
	if err != nil {
		t.Fatal(err)
	}
	want := []registry.Intent{registry.SayExactly("This repair costs 29 euros, including tax and parts.", true)}
	if diff := cmp.Diff(want, result.Intents); diff != "" {
		t.Error(diff)
	}
}

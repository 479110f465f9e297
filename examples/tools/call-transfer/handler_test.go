package calltransfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
)

func TestTransfer(t *testing.T) {
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{Department: ArgsDepartmentSales}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Output{Department: "sales"}, result.Data); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]registry.Intent{{Type: registry.IntentTransferCall, To: "sales"}}, result.Intents); diff != "" {
		t.Error(diff)
	}
}

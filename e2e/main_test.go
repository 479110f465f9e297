package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"voicegw/internal/jstool"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
)

const providerKey logging.Kind = "key of a provider"

// need declares the outputs of a full test run.
var need = testutil.Need{
	Kinds: []logging.Kind{logging.Ticket, logging.Confirmation, logging.OperatorsKey, providerKey},
	Sinks: []testutil.Sink{testutil.Log, testutil.Audit, testutil.Conversations, testutil.Errors, testutil.Data},
}

func TestMain(m *testing.M) {
	if target := os.Getenv(relayEnv); target != "" {
		if err := runRelay(target); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if slices.Contains(os.Args, serveTools) {
		_ = kindsServer().Run(context.Background(), &mcp.StdioTransport{}) // ends with its input
		return
	}
	if len(os.Args) == 2 && os.Args[1] == serveScripts {
		if err := jstool.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(testutil.Main(m, need),
		// A dependency of the Google SDK starts it on import.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

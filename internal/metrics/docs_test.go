package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	"voicegw/internal/metrics"
	"voicegw/internal/testutil"
)

// TestGeneratedList: the list of docs/metrics.md is generated from the table.
func TestGeneratedList(t *testing.T) {
	kinds := map[metrics.Kind]string{metrics.Counter: "counter", metrics.Gauge: "gauge", metrics.Histogram: "histogram"}
	var b strings.Builder
	b.WriteString("| metric and labels | type | meaning |\n|---|---|---|\n")
	for _, f := range metrics.Families() {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "{" + strings.Join(f.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", f.FullName(), labels, kinds[f.Kind], f.Help)
	}
	testutil.GeneratedPart(t, "../../docs/metrics.md", "metrics", b.String())
}

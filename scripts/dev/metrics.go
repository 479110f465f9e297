package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"voicegw/internal/metrics"
)

const page = "docs/metrics.md"

// metricsList writes the list of metrics in docs/metrics.md from the table in internal/metrics. With --check it fails
// if the page is out of date.
func metricsList(args []string) error {
	check := len(args) == 1 && args[0] == "--check"
	if len(args) > 0 && !check {
		return errors.New("usage: metrics [--check]")
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	text, err := section(old, "metrics", metricsTable())
	switch {
	case err != nil:
		return err
	case bytes.Equal(text, old):
		return nil
	case check:
		return fmt.Errorf("%s is out of date; run go run ./scripts/dev metrics", page)
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

func section(text []byte, name string, body string) ([]byte, error) {
	begin := []byte("<!-- " + name + ":")
	_, rest, ok := bytes.Cut(text, begin)
	_, _, closed := bytes.Cut(rest, []byte("-->\n"))
	if !ok || !closed {
		return nil, fmt.Errorf("%s has no mark <!-- %s: … -->", page, name)
	}
	end := []byte("<!-- end -->")
	at := bytes.Index(text, begin)
	at += bytes.Index(text[at:], []byte("-->\n")) + len("-->\n")
	to := bytes.Index(text[at:], end)
	if to < 0 {
		return nil, fmt.Errorf("%s has no mark <!-- end --> after <!-- %s: … -->", page, name)
	}
	return []byte(string(text[:at]) + "\n" + body + "\n" + string(text[at+to:])), nil
}

func metricsTable() string {
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
	return b.String()
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"voicegw/internal/metrics"
	"voicegw/internal/metrics/dashboard"
)

// dashboards writes the files made from the tables of metrics, panels and alerts: the dashboard for
// Grafana, the rules for Prometheus with their tests, and the lists in docs/operations.md. With --check
// it fails if a file is out of date.
func dashboards(args []string) error {
	check := len(args) == 1 && args[0] == "--check"
	if len(args) > 0 && !check {
		return errors.New("usage: dashboards [--check]")
	}
	files, err := generate(os.ReadFile)
	if err != nil {
		return fmt.Errorf("dashboards: %w", err)
	}
	if err := settle(files, check); err != nil {
		return fmt.Errorf("dashboards: %w", err)
	}
	return nil
}

// file is a generated file, with its path below the top of the repository.
type file struct {
	path string
	data []byte
}

// settle writes the files that differ, or with check names them.
func settle(files []file, check bool) error {
	var stale []string
	for _, f := range files {
		old, err := os.ReadFile(f.path)
		switch {
		case err == nil && bytes.Equal(old, f.data):
			continue
		case check:
			stale = append(stale, f.path)
			continue
		}
		if err := os.WriteFile(f.path, f.data, 0o644); err != nil {
			return fmt.Errorf("writing a generated file: %w", err)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("out of date: %s; run go run ./scripts/dev dashboards", strings.Join(stale, ", "))
	}
	return nil
}

// page is the page for operators.
const page = "docs/operations.md"

// generate makes all files. read reads those that are generated in part.
func generate(read func(string) ([]byte, error)) ([]file, error) {
	text, err := read(page)
	if err != nil {
		return nil, fmt.Errorf("the page for operators: %w", err)
	}
	if text, err = section(text, "metrics", metricsTable()); err != nil {
		return nil, err
	}
	if text, err = section(text, "alerts", runbooks()); err != nil {
		return nil, err
	}
	files := []file{{page, text}}
	for _, f := range []struct {
		path string
		make func() ([]byte, error)
	}{
		{"deploy/grafana/voicegw.json", dashboard.Grafana},
		{"deploy/prometheus/" + dashboard.RulesFile, dashboard.Rules},
		{"deploy/prometheus/rules_test.yaml", dashboard.Tests},
	} {
		data, err := f.make()
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the package
		}
		files = append(files, file{f.path, data})
	}
	return files, nil
}

// runbooks lists the alerts, each with its paragraph.
func runbooks() string {
	var b strings.Builder
	for _, a := range dashboard.Alerts() {
		fmt.Fprintf(&b, "### %s\n\n%s: `%s`", a.Name, a.Severity, a.Expr)
		if a.For != "0m" {
			fmt.Fprintf(&b, ", for %s", a.For)
		}
		fmt.Fprintf(&b, "\n\n%s\n\n", a.Runbook)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// section replaces what stands between the two marks of a section.
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

// metricsTable lists the metrics.
func metricsTable() string {
	kinds := map[metrics.Kind]string{metrics.Counter: "counter", metrics.Gauge: "gauge", metrics.Histogram: "histogram"}
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, f := range metrics.Families() {
		labels := "-"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.FullName(), kinds[f.Kind], labels, f.Help)
	}
	return b.String()
}

// Package dashboard holds the panels of the dashboard and the alerts, in a table each, and renders
// them: for Grafana, for Prometheus, for promtool's tests of rules, and for docs/operations.md.
// scripts/dev writes the files.
package dashboard

// Package report measures a load run (times in HDR histograms, counters, problems, and a time series) and writes the
// result as JSON, as text for a terminal, and as a self-contained HTML page. It compares two reports and checks
// thresholds.
//
// Reports include the definition of each figure and counter, because numbers without definitions can't be compared.
package report

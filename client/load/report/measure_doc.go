// Package measure keeps what a load run measures: distributions of times in HDR
// histograms, counters, what went wrong and where, and how all of it went over time.
//
// Every figure and every counter has a definition in words, which stands in the report
// beside its value: a number whose boundaries are unknown cannot be compared.
package report

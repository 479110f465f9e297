// Package report is what a load run comes to: as a value that JSON keeps, as text for a
// terminal, and as one page of HTML that needs nothing else. Two reports can be compared,
// and thresholds decide whether a run has passed.
package report

// Package table shows the audit to a person: a row for each record, as it is read.
package audit

// Package meter counts usage by day, user and key across all nodes that share a store, and enforces limits on it.
//
// Each process counts in its own entries, one for each day, user and key; they only grow. It broadcasts each change at
// once (without storing it) and writes each entry to the store at most every 5 s. An entry's value is the larger of the
// two; the total is the sum over all processes. So lost or repeated messages never count usage twice, and a killed
// process loses at most its last seconds of counting.
package meter

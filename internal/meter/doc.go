// Package meter counts what users and keys use, by day, over all nodes that share a store, and says
// what they may still use.
//
// Each process counts by itself, in entries that only grow, one for each day, user and key. It tells
// the others each change at once (a message that nobody stores), and writes an entry at most every 5 s
// into the store. What any process has counted is the larger of both; the total is the sum over the
// processes. So nothing is counted twice, whatever is lost or repeated, and a process that is killed
// loses at most the last seconds of what it has counted.
package meter

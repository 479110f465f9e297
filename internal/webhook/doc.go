// Package webhook tells others of what happens, by requests that are signed (package wire).
//
// An event is told without waiting, then kept in the store until each receiver has it: it outlives this
// process, and of several nodes one at a time sends it. So every receiver gets every event at least once,
// in no certain order, and knows a repeat by its ID. What cannot be kept, or is not taken within a day, is
// dropped, logged and counted.
package webhook

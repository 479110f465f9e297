// Package wire holds what both provider wires of the simulator need: their
// common options, the meaning of keys, ids, counters, and a connection that
// carries out the faults that need no knowledge of a protocol.
package wire

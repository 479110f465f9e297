// Package wire holds what both provider wires of the simulator need: their common options, the meaning of keys, ids,
// counters, JSON in its order, and a connection that injects the faults that do not depend on a protocol.
package wire

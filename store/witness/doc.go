// Package witness remembers, outside of the store's streams, which writes were acknowledged,
// so that a damaged stream is never taken for a shorter one.
//
// Judge is the comparison, pure. A Journal is the witness on the disk: the file "witness" of
// records of 128 bytes, to which each acknowledged write adds one, and the file "witness.mark",
// which says how many of them are on the disk. A journal that has grown is rewritten, as the
// next generation, with the claims that still hold.
//
// A record is on the disk before its write is acknowledged and after the stream has it, so a
// process that is killed leaves a stream that holds every claimed write. Each record says how
// many before it were on the disk: an error behind that point is the torn end of a machine that
// lost its power, and an error before it is damage. The mark shows when the end of the journal
// was cut off, and its generation shows when the journal is an older copy.
package witness

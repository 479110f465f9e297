// Package witness remembers outside of the store's streams what was acknowledged, so that
// a damaged stream is never taken for a shorter one.
//
// Judge is the comparison, pure. A Journal is the witness on the disk: the file "witness"
// of records of 128 bytes, to which each acknowledged write adds one, and the file
// "witness.mark", which says how many of them are on the disk. A journal that has grown is
// written anew, as the next generation, with what is still claimed.
//
// A record stands on the disk before its write is acknowledged and after the stream has
// it, so a process that is killed leaves a stream that holds all claims. Each record says
// how many before it were on the disk: what is wrong behind that is the torn end of a
// machine that lost its power, and what is wrong before it is damage. The mark says the
// same of an end that was cut off, and its generation tells an older copy of the journal.
package witness

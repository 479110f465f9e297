// Package witness records, outside the store's streams, which writes were acknowledged, so that a damaged stream is
// never mistaken for a shorter one.
//
// Judge, a pure function, compares the records with the streams. A Journal is the witness on disk: the file "witness"
// with a record of 128 bytes for each acknowledged write, and the file "witness.mark" with the number of records known
// to be on disk. A journal that has grown too long is rewritten as the next generation, with only the claims that still
// hold.
//
// A record reaches the disk after the stream has the write and before the write is acknowledged. So after a process is
// killed, the stream holds every claimed write. Each record has the number of earlier records known to be on disk: an
// error after that point is the torn end of a power loss, an error before it is damage. The mark reveals a truncated
// journal, and its generation an older copy.
package witness

package gateway

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
)

// errFraming closes a connection with ambiguous request framing. It isn't a net.Error, so net/http answers 400 first.
var errFraming = errors.New("gateway: ambiguous request framing")

// framing parses the framing of HTTP/1 requests and rejects both Content-Length and Transfer-Encoding: a proxy may use
// the other one, and take the rest for another client's request (RFC 9112, sections 6.1 and 11.2). net/http ignores the
// Content-Length. It also rejects folded header lines (5.2), Transfer-Encoding in HTTP/1.0, malformed Content-Lengths,
// and invalid chunks, which allow the same attack. net/http rejects all other errors.
type framing struct {
	at    part
	skip  int64 // remaining bytes of a body or chunk
	line  [96]byte
	have  int // length of line
	long  bool
	tail  [8]byte // the last bytes of the first line, "HTTP/1.1" at its end
	old   bool    // HTTP/1.0
	coded bool    // has a Transfer-Encoding
	sized bool    // has a Content-Length
	size  int64
}

type part int

const (
	inStart part = iota
	inHeader
	inBody
	inChunkSize
	inChunk
	afterChunk
	inTrailer
)

// check parses what Read returned, on a nil framing nothing. The error is Read's or errFraming.
func (f *framing) check(p []byte, n int, err error) (int, error) {
	if f != nil && n > 0 {
		if bad := f.see(p[:n]); bad != nil {
			return 0, bad
		}
	}
	return n, err
}

func (f *framing) see(p []byte) error {
	for len(p) > 0 {
		if f.at == inBody || f.at == inChunk {
			n := min(f.skip, int64(len(p)))
			f.skip, p = f.skip-n, p[n:]
			switch {
			case f.skip > 0:
			case f.at == inBody:
				f.at = inStart
			default:
				f.at = afterChunk
			}
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			f.keep(p)
			return nil
		}
		f.keep(p[:end])
		p = p[end+1:]
		if !f.endLine() {
			return errFraming
		}
		f.have, f.long, f.tail = 0, false, [8]byte{}
	}
	return nil
}

func (f *framing) keep(p []byte) {
	n := copy(f.line[f.have:], p)
	f.have += n
	f.long = f.long || n < len(p)
	if f.at == inStart {
		both := slices.Concat(f.tail[:], bytes.TrimSuffix(p, []byte("\r")))
		copy(f.tail[:], both[len(both)-len(f.tail):])
	}
}

func (f *framing) endLine() bool {
	line := f.line[:f.have]
	if !f.long {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	switch f.at {
	case inStart:
		if len(line) > 0 { // empty lines may separate requests
			*f = framing{at: inHeader, old: string(f.tail[:]) == "HTTP/1.0"}
		}
		return true
	case inHeader:
		return f.header(line)
	case inChunkSize:
		return f.chunk(line)
	case afterChunk:
		f.at = inChunkSize
		return len(line) == 0
	default: // inTrailer
		if len(line) == 0 {
			f.at = inStart
		}
		return true
	}
}

func (f *framing) header(line []byte) bool {
	if len(line) == 0 {
		return f.endHeader()
	}
	if line[0] == ' ' || line[0] == '\t' {
		return false
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch name = bytes.TrimRight(name, " \t"); {
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.coded = true
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 63)
		if err != nil || f.long || f.sized && f.size != int64(n) {
			return false
		}
		f.sized, f.size = true, int64(n)
	}
	return true
}

func (f *framing) endHeader() bool {
	switch {
	case f.coded && (f.sized || f.old):
		return false
	case f.coded:
		f.at = inChunkSize
	case f.size > 0:
		f.at, f.skip = inBody, f.size
	default:
		f.at = inStart
	}
	return true
}

func (f *framing) chunk(line []byte) bool {
	text, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(text, " \t")), 16, 63)
	switch {
	case err != nil:
		return false
	case n == 0:
		f.at = inTrailer
	default:
		f.at, f.skip = inChunk, int64(n)
	}
	return true
}

package bounded

import (
	"bytes"
	"encoding/xml"
)

// xmlBody passes an XML body on, token by token, as long as the tokens are within the bounds. So
// the caller's decoder never gets one that is not. A body that is not XML ends with a
// *xml.SyntaxError, which the caller's decoder returns as its own.
type xmlBody struct {
	*body
	limits *Limits
	tokens *xml.Decoder

	held            bytes.Buffer // what the decoder has read and the caller has not
	read            int64        // how much the decoder has read
	checked, passed int64        // how much of it is within the bounds, and has gone to the caller
	depth, elements int64
	err             error // the final error
}

func newXMLBody(b *body, l *Limits) *xmlBody {
	x := &xmlBody{body: b, limits: l}
	x.tokens = xml.NewDecoder(readerFunc(x.more))
	return x
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// more reads for the decoder, which has none left: so everything since checked belongs to the
// token that it reads now.
func (x *xmlBody) more(p []byte) (int, error) {
	if x.read-x.checked > x.limits.Piece {
		return 0, x.over(BoundPiece, x.limits.Piece)
	}
	n, err := x.body.Read(p)
	x.held.Write(p[:n])
	x.read += int64(n)
	return n, err
}

// Read implements io.Reader. An error is final.
func (x *xmlBody) Read(p []byte) (int, error) {
	for x.err == nil && x.checked == x.passed {
		x.err = x.check()
	}
	n := copy(p, x.held.Next(int(min(int64(len(p)), x.checked-x.passed))))
	if x.passed += int64(n); n > 0 {
		return n, nil
	}
	return 0, x.err
}

// check reads the next token.
func (x *xmlBody) check() error {
	token, err := x.tokens.RawToken()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case xml.StartElement:
		x.depth++
		x.elements += int64(1 + len(t.Attr))
	case xml.EndElement:
		x.depth = max(x.depth-1, 0)
	case xml.Directive: // no service sends a document type, and its content has rules of its own
		return x.over(BoundDoctype, 0)
	}
	switch end := x.tokens.InputOffset(); {
	case end-x.checked > x.limits.Piece:
		return x.over(BoundPiece, x.limits.Piece)
	case x.depth > x.limits.Depth:
		return x.over(BoundDepth, x.limits.Depth)
	case x.elements > x.limits.Elements:
		return x.over(BoundElements, x.limits.Elements)
	default:
		x.checked = end
		return nil
	}
}

// over ends the request: the server need not go on.
func (x *xmlBody) over(bound Bound, most int64) error {
	err := x.watch.over(bound, most)
	x.watch.cancel(err)
	x.watch.end()
	return err
}

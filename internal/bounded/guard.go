package bounded

import (
	"bytes"
	"strings"
)

// guard counts a body's elements as they pass. It never counts fewer than a decoder would, except on malformed input,
// where the decoder fails.
type guard struct {
	limits *Limits

	depth, elements int64
	piece           int64 // bytes since the piece began
	scan            func(g *guard, p []byte) (Bound, int64)

	// JSON and Events.
	quoted, escaped bool
	line            int64 // bytes of the current line
	returned        bool  // the last byte is a carriage return

	// XML.
	markup  markup
	quote   byte // the quote of an attribute's value; 0 outside
	tag     [8]byte
	tagged  int  // the used part of tag
	last    byte // the previous byte within a tag
	closing int  // matched bytes of the end of a comment or CDATA
}

func newGuard(l *Limits) *guard {
	switch l.Format {
	case JSON:
		return &guard{limits: l, scan: (*guard).json}
	case Events:
		return &guard{limits: l, scan: (*guard).events}
	case XML:
		return &guard{limits: l, scan: (*guard).xml}
	default:
		return nil
	}
}

// see examines the next bytes. It returns the exceeded limit and its value, or "". A nil guard allows everything.
func (g *guard) see(p []byte) (Bound, int64) {
	if g == nil {
		return "", 0
	}
	return g.scan(g, p)
}

func (g *guard) opened() (Bound, int64) {
	if g.depth++; g.depth > g.limits.Depth {
		return BoundDepth, g.limits.Depth
	}
	return g.counted()
}

func (g *guard) counted() (Bound, int64) {
	if g.elements++; g.elements > g.limits.Elements {
		return BoundElements, g.limits.Elements
	}
	return "", 0
}

// json counts values: opening brackets and separating commas.
func (g *guard) json(p []byte) (Bound, int64) {
	for i := 0; i < len(p); i++ {
		if g.quoted {
			i = g.inString(p, i)
			continue
		}
		bound, most := g.structure(p[i])
		if bound != "" {
			return bound, most
		}
	}
	return "", 0
}

func (g *guard) structure(c byte) (Bound, int64) {
	switch c {
	case '"':
		g.quoted = true
	case '{', '[':
		return g.opened()
	case '}', ']':
		g.depth = max(g.depth-1, 0)
	case ',':
		return g.counted()
	}
	return "", 0
}

// inString returns the index of the last byte it examined, at least i.
func (g *guard) inString(p []byte, i int) int {
	if g.escaped {
		g.escaped = false
		return i
	}
	for ; i < len(p); i++ {
		switch p[i] {
		case '\\':
			if i++; i == len(p) {
				g.escaped = true
			}
		case '"':
			g.quoted = false
			return i
		}
	}
	return len(p) - 1
}

// events handles an event stream (html.spec.whatwg.org, section 9.2.6): an empty line ends an event. A JSON string never
// spans lines.
func (g *guard) events(p []byte) (Bound, int64) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		line, whole := p, end >= 0
		if whole {
			line = p[:end]
		}
		if len(line) > 0 {
			g.line += int64(len(line))
			g.returned = line[len(line)-1] == '\r'
		}
		if g.piece += int64(len(line)); g.piece > g.limits.Piece {
			return BoundPiece, g.limits.Piece
		}
		if bound, most := g.json(line); bound != "" {
			return bound, most
		}
		if !whole {
			return "", 0
		}
		g.quoted, g.escaped = false, false
		if g.line == 0 || g.line == 1 && g.returned {
			g.piece, g.depth, g.elements = 0, 0, 0
		}
		g.line = 0
		p = p[end+1:]
	}
	return "", 0
}

// markup is the guard's position in XML.
type markup int

const (
	inText markup = iota
	inTag
	inComment
	inCDATA
	inInstruction // <? … ?>
)

// xml counts start tags and attributes, and bounds the size of each tag and text.
func (g *guard) xml(p []byte) (Bound, int64) {
	for _, c := range p {
		if g.piece++; g.piece > g.limits.Piece {
			return BoundPiece, g.limits.Piece
		}
		var bound Bound
		var most int64
		switch g.markup {
		case inText:
			if c == '<' {
				g.markup, g.tagged, g.quote, g.last, g.piece = inTag, 0, 0, 0, 0
			}
		case inComment:
			g.until(c, "-->")
		case inCDATA:
			g.until(c, "]]>")
		case inInstruction:
			g.until(c, "?>")
		default:
			bound, most = g.inMarkup(c)
		}
		if bound != "" {
			return bound, most
		}
	}
	return "", 0
}

func (g *guard) until(c byte, mark string) {
	switch {
	case c == mark[g.closing]:
		if g.closing++; g.closing == len(mark) {
			g.closing, g.markup, g.piece = 0, inText, 0
		}
	case c == mark[0] && g.closing == len(mark)-1: // "--->", "]]]>" and "??>"
	case c == mark[0]:
		g.closing = 1
	default:
		g.closing = 0
	}
}

// inMarkup examines one byte after '<'.
func (g *guard) inMarkup(c byte) (Bound, int64) {
	if g.tagged < len(g.tag) {
		g.tag[g.tagged] = c
		g.tagged++
		if g.tag[0] == '!' {
			return g.declared(string(g.tag[:g.tagged]))
		}
		if g.tagged == 1 && c == '?' {
			g.markup, g.closing = inInstruction, 0
			return "", 0
		}
		if g.tagged == 1 && c != '/' {
			if bound, most := g.opened(); bound != "" {
				return bound, most
			}
		}
	}
	switch {
	case g.quote != 0:
		if c == g.quote {
			g.quote = 0
		}
	case c == '"' || c == '\'':
		g.quote = c
	case c == '=':
		return g.counted()
	case c == '>':
		if g.tag[0] == '/' || g.last == '/' {
			g.depth = max(g.depth-1, 0)
		}
		g.markup, g.piece = inText, 0
	}
	g.last = c
	return "", 0
}

// The beginnings of sections between "<!" and ">".
const (
	comment = "!--"
	cdata   = "![CDATA["
)

// declared examines a tag beginning with '!'. It rejects a document type: no service sends one, and its content has
// other rules.
func (g *guard) declared(begun string) (Bound, int64) {
	switch {
	case begun == comment:
		g.markup, g.closing = inComment, 0
	case begun == cdata:
		g.markup, g.closing = inCDATA, 0
	case !strings.HasPrefix(comment, begun) && !strings.HasPrefix(cdata, begun):
		return BoundDoctype, 0
	}
	return "", 0
}

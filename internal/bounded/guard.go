package bounded

import "bytes"

// guard counts the elements of JSON while it passes. It understands just enough never to
// count fewer than a decoder would: the decoder fails on malformed input.
type guard struct {
	limits *Limits

	depth, elements int64
	piece           int64 // bytes since the piece began
	scan            func(g *guard, p []byte) (Bound, int64)

	// JSON and Events.
	quoted, escaped bool
	line            int64 // bytes of the line that have come
	returned        bool  // the last of them is a carriage return
}

func newGuard(l *Limits) *guard {
	switch l.Format {
	case JSON:
		return &guard{limits: l, scan: (*guard).json}
	case Events:
		return &guard{limits: l, scan: (*guard).events}
	default:
		return nil
	}
}

// see examines the next bytes. It returns the bound that they exceed, and its value, or an
// empty one. A nil guard examines nothing.
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

// json counts values: brackets that open one, and commas that separate two.
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

// structure examines one byte of JSON outside a string.
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

// inString returns the index of the last byte that it examined, at or after i.
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

// events handles an event stream (html.spec.whatwg.org, section 9.2.6): an empty line ends an
// event. A string of JSON never continues on another line.
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

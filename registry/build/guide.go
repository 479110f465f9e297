package build

import (
	"strings"
)

type guide struct {
	title     string // of the first line, a heading of level 1
	titleLine int
	// summary is the first nonblank line before a heading of level 2 that isn't a heading; may be empty.
	summary     string
	summaryLine int
	// continues means that the summary's paragraph has a second line.
	continues bool
	sections  []section
	// unclosed is the line of an unclosed code block, or 0.
	unclosed int
}

type section struct {
	heading string
	line    int
	text    string // without its heading
	blocks  []block
}

type block struct {
	info string // the text after the fence, in lower case
	line int    // of the first line inside
	text string
}

func (g *guide) section(heading string) *section {
	for i := range g.sections {
		if strings.EqualFold(g.sections[i].heading, heading) {
			return &g.sections[i]
		}
	}
	return nil
}

func (g *guide) count(heading string) int {
	n := 0
	for _, s := range g.sections {
		if strings.EqualFold(s.heading, heading) {
			n++
		}
	}
	return n
}

type guideReader struct {
	guide
	fence string // the current block's opening fence; empty outside a block
	block block
}

// parseGuide parses any guide.md: ATX headings and fenced blocks as in CommonMark 0.31 (sections 4.2 and 4.5).
func parseGuide(text string) *guide {
	var r guideReader
	line := 0
	for l := range strings.Lines(text) {
		line++
		r.line(strings.TrimRight(l, "\r\n"), line)
	}
	if r.fence != "" {
		r.unclosed = r.block.line - 1
		r.close()
	}
	return &r.guide
}

func (r *guideReader) line(l string, number int) {
	trimmed := strings.TrimSpace(l)
	if r.fence != "" {
		if closesFence(l, r.fence) {
			r.close()
		} else {
			r.block.text += l + "\n"
		}
		r.add(l)
		return
	}
	if fence, info := opensFence(l); fence != "" {
		r.fence, r.block = fence, block{info: strings.ToLower(info), line: number + 1}
		r.add(l)
		return
	}
	level, heading := headingOf(l)
	switch {
	case level == 1 && r.titleLine == 0:
		r.title, r.titleLine = heading, number
		return
	case level == 2:
		r.sections = append(r.sections, section{heading: heading, line: number})
		return
	case level > 0:
	case trimmed == "" || len(r.sections) > 0:
	case r.summaryLine == 0:
		r.summary, r.summaryLine = trimmed, number
	case r.summaryLine == number-1:
		r.continues = true
	}
	r.add(l)
}

func (r *guideReader) add(l string) {
	if n := len(r.sections); n > 0 {
		r.sections[n-1].text += l + "\n"
	}
}

func (r *guideReader) close() {
	if n := len(r.sections); n > 0 {
		r.sections[n-1].blocks = append(r.sections[n-1].blocks, r.block)
	}
	r.fence = ""
}

// indented removes up to three spaces; ok is false if there are more.
func indented(l string) (rest string, ok bool) {
	rest = strings.TrimLeft(l, " ")
	return rest, len(l)-len(rest) <= 3
}

func headingOf(l string) (int, string) {
	rest, ok := indented(l)
	text := strings.TrimLeft(rest, "#")
	level := len(rest) - len(text)
	if !ok || level == 0 || level > 6 || text != "" && text[0] != ' ' && text[0] != '\t' {
		return 0, ""
	}
	text = strings.TrimSpace(text)
	if open := strings.TrimRight(text, "#"); open == "" || strings.HasSuffix(open, " ") {
		text = strings.TrimSpace(open)
	}
	return level, text
}

func opensFence(l string) (fence, info string) {
	rest, ok := indented(l)
	if !ok || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return "", ""
	}
	info = strings.TrimLeft(rest, rest[:1])
	fence = rest[:len(rest)-len(info)]
	if len(fence) < 3 || fence[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return fence, strings.TrimSpace(info)
}

func closesFence(l, fence string) bool {
	rest, ok := indented(l)
	rest = strings.TrimRight(rest, " \t")
	return ok && len(rest) >= len(fence) && strings.Trim(rest, fence[:1]) == ""
}

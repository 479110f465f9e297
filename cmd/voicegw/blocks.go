package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
)

// blocksFlags are the commands about users who are shut out.
type blocksFlags struct {
	List   blocksListFlags   `cmd:"" help:"List the users who are shut out of a running gateway, and until when."`
	Remove blocksRemoveFlags `cmd:"" help:"Let a user in again."`
}

type blocksListFlags struct {
	operatorFlags
	JSON bool `help:"Write JSON." name:"json"`
}

type blocksRemoveFlags struct {
	operatorFlags
	User userIdentity `arg:"" help:"The user, as list tells it."`
}

// blocksAnswer is what GET /v1/blocks answers.
type blocksAnswer struct {
	Blocks []blockLine `json:"blocks"`
}

type blockLine struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
}

// blocks runs a command about users who are shut out.
func (p Process) blocks(ctx context.Context, flags blocksFlags, parsed *kong.Context) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(parsed.Command(), "blocks "), " ")
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	switch name {
	case "list":
		return p.blocksList(ctx, flags.List, parsed)
	case "remove":
		return p.blocksRemove(ctx, flags.Remove, parsed)
	default:
		p.complain("the command %s is not wired", parsed.Command())
		return exitFailure
	}
}

func (p Process) blocksList(ctx context.Context, flags blocksListFlags, parsed *kong.Context) int {
	o, code := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return code
	}
	defer o.close()
	var list blocksAnswer
	if err := o.ask(ctx, http.MethodGet, "/v1/blocks", &list); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	if flags.JSON {
		return p.printJSON(list)
	}
	if len(list.Blocks) == 0 {
		return p.print("Nobody is blocked.\n")
	}
	rows := [][]string{{"USER", "UNTIL", "FOR ANOTHER"}}
	for _, b := range list.Blocks {
		rows = append(rows, []string{quoteOdd(b.User), b.Until.Local().Format(time.DateTime), max(0, time.Until(b.Until)).Round(time.Second).String()})
	}
	return p.print(p.table(rows))
}

func (p Process) blocksRemove(ctx context.Context, flags blocksRemoveFlags, parsed *kong.Context) int {
	o, code := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return code
	}
	defer o.close()
	err := o.ask(ctx, http.MethodDelete, "/v1/blocks/"+segment(string(flags.User)), nil)
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && refused.code == "not_blocked":
		p.complain("%s is not blocked; voicegw blocks list tells who is", quoteOdd(string(flags.User)))
		return exitFailure
	case err != nil:
		p.complain("%v", err)
		return exitFailure
	}
	return p.print(fmt.Sprintf("%s may connect again.\n", quoteOdd(string(flags.User))))
}

// segment writes a text as one segment of a path. Dots alone would be taken for a way
// to somewhere else.
func segment(text string) string {
	if strings.Trim(text, ".") == "" {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

// quoteOdd quotes a text that would do something to a terminal or a table: users
// choose their names themselves.
func quoteOdd(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

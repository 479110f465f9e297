package main

import (
	"context"
	"net/http"

	"github.com/alecthomas/kong"
)

// consoleFlags are the flags of console.
type consoleFlags struct {
	operatorFlags
}

// consoleLink is the address of a gateway's page; with a code it opens what is inside. The
// code is in the fragment, which a browser sends to nobody.
func consoleLink(base, code string) string {
	if code == "" {
		return base + "/"
	}
	return base + "/#code=" + code
}

// console prints a link that opens the console once.
func (p Process) console(ctx context.Context, flags consoleFlags, parsed *kong.Context) int {
	o, exit := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return exit
	}
	defer o.close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	var made struct {
		Code string `json:"code"`
	}
	if err := o.ask(ctx, http.MethodPost, "/v1/console/codes", &made); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return p.print(consoleLink(o.base, made.Code) + "\n")
}

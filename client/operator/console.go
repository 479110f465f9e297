package operator

import (
	"context"
	"net/http"
)

// ConsoleLink is the address of a gateway's page, with a code that opens the console. The code is in
// the fragment, which a browser does not send.
func ConsoleLink(base, code string) string {
	if code == "" {
		return base + "/"
	}
	return base + "/#code=" + code
}

// ConsoleLink makes a link that opens the console once.
func (o *Client) ConsoleLink(ctx context.Context) (string, error) {
	var made struct {
		Code string `json:"code"`
	}
	if err := o.Ask(ctx, http.MethodPost, "/v1/console/codes", &made); err != nil {
		return "", err
	}
	return ConsoleLink(o.Base, made.Code), nil
}

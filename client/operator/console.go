package operator

import (
	"context"
	"net/http"
)

// ConsoleLink returns the console's address with a code in the fragment, which a browser does not send.
func ConsoleLink(base, code string) string {
	if code == "" {
		return base + "/"
	}
	return base + "/#code=" + code
}

// ConsoleLink creates a one-time link to the console.
func (o *Client) ConsoleLink(ctx context.Context) (string, error) {
	var made struct {
		Code string `json:"code"`
	}
	if err := o.Ask(ctx, http.MethodPost, "/v1/console/codes", &made); err != nil {
		return "", err
	}
	return ConsoleLink(o.Base, made.Code), nil
}

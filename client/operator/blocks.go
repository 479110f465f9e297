package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// Blocks is the response of GET /v1/blocks: the blocked users.
type Blocks struct {
	Blocks []Block `json:"blocks"`
}

// Block is a blocked user.
type Block struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
}

// Blocks lists the blocked users.
func (o *Client) Blocks(ctx context.Context) (list Blocks, err error) {
	err = o.Ask(ctx, http.MethodGet, "/v1/blocks", &list)
	return list, err
}

// Table formats the users for the width of a file.
func (l Blocks) Table(file any) string {
	if len(l.Blocks) == 0 {
		return "No blocked users.\n"
	}
	rows := [][]string{{"USER", "UNTIL", "FOR ANOTHER"}}
	for _, b := range l.Blocks {
		rows = append(rows, []string{textutil.Quote(b.User), b.Until.Local().Format(time.DateTime),
			max(0, time.Until(b.Until)).Round(time.Second).String()})
	}
	return textutil.Table(file, rows)
}

// Unblock unblocks a user.
func (o *Client) Unblock(ctx context.Context, user string) error {
	err := o.Ask(ctx, http.MethodDelete, "/v1/blocks/"+segment(user), nil)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == "not_blocked" {
		return fmt.Errorf("%s is not blocked; run voicegw blocks list", textutil.Quote(user))
	}
	return err
}

// segment escapes a text as one path segment. Segments that consist of dots are escaped too.
func segment(text string) string {
	if strings.Trim(text, ".") == "" {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

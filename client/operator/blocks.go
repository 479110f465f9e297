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

// Blocks are the users who are locked out: the answer of GET /v1/blocks.
type Blocks struct {
	Blocks []Block `json:"blocks"`
}

// Block is a user who is locked out until a point in time.
type Block struct {
	User  string    `json:"user"`
	Until time.Time `json:"until"`
}

// Blocks lists the users who are locked out.
func (o *Client) Blocks(ctx context.Context) (list Blocks, err error) {
	err = o.Ask(ctx, http.MethodGet, "/v1/blocks", &list)
	return list, err
}

// Table shows the users in the width of the file that it is written to.
func (l Blocks) Table(file any) string {
	if len(l.Blocks) == 0 {
		return "Nobody is blocked.\n"
	}
	rows := [][]string{{"USER", "UNTIL", "FOR ANOTHER"}}
	for _, b := range l.Blocks {
		rows = append(rows, []string{textutil.Quote(b.User), b.Until.Local().Format(time.DateTime), max(0, time.Until(b.Until)).Round(time.Second).String()})
	}
	return textutil.Table(file, rows)
}

// Unblock lets a user in again.
func (o *Client) Unblock(ctx context.Context, user string) error {
	err := o.Ask(ctx, http.MethodDelete, "/v1/blocks/"+segment(user), nil)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == "not_blocked" {
		return fmt.Errorf("%s is not blocked; voicegw blocks list tells who is", textutil.Quote(user))
	}
	return err
}

// segment escapes a text as one segment of a path. A segment of dots alone would lead elsewhere.
func segment(text string) string {
	if strings.Trim(text, ".") == "" {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

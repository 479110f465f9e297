package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"voicegw/internal/textutil"
	"voicegw/store"
)

// Approvals is the response of GET /v1/approvals: approved actions with an unknown outcome.
type Approvals struct {
	Approvals []store.Approval `json:"approvals"`
	// Total may exceed the list's length.
	Total int `json:"total"`
}

// Approvals lists the approved actions with an unknown outcome.
func (o *Client) Approvals(ctx context.Context) (list Approvals, err error) {
	err = o.Ask(ctx, http.MethodGet, "/v1/approvals", &list)
	return list, err
}

// Table formats the actions for the width of a file.
func (l Approvals) Table(file any) string {
	if l.Total == 0 {
		return "The outcome of every approved action is known.\n"
	}
	rows := [][]string{{"APPROVED", "TOOL", "REFERENCE", "BEGUN", "TOLD", "USER", "SESSION", "CONVERSATION"}}
	for _, a := range l.Approvals {
		rows = append(rows, []string{
			a.ApprovedAt.Local().Format(time.DateTime), textutil.Quote(a.Tool), textutil.Quote(a.Reference),
			textutil.YesNo(a.Begun), textutil.YesNo(a.Told), orDash(a.User), orDash(a.Session), orDash(a.Conversation),
		})
	}
	text := textutil.Table(file, rows)
	if more := l.Total - len(l.Approvals); more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return textutil.Quote(text)
}

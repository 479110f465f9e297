package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/textutil"
	"voicegw/protocol"
	"voicegw/store"
)

// Jobs is the response of GET /v1/jobs: the long work that calls have started.
type Jobs struct {
	Jobs []protocol.Job `json:"jobs"`
}

// Jobs lists the jobs of a user, or of all users if empty.
func (o *Client) Jobs(ctx context.Context, user string) (Jobs, error) {
	path := "/v1/jobs"
	if user != "" {
		path += "?user=" + url.QueryEscape(user)
	}
	return get[Jobs](ctx, o, path)
}

// CancelJob cancels a running job.
func (o *Client) CancelJob(ctx context.Context, id string) (protocol.Job, error) {
	var j protocol.Job
	err := o.Ask(ctx, http.MethodDelete, "/v1/jobs/"+segment(id), &j)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == "unknown_job" {
		return j, fmt.Errorf("no job %s; run voicegw jobs list", textutil.Quote(id))
	}
	return j, err
}

// Table formats the jobs for the width of a file.
func (l Jobs) Table(file any) string {
	if len(l.Jobs) == 0 {
		return "No jobs.\n"
	}
	rows := [][]string{{"ID", "NAME", "STATE", "BEGUN", "FOR", "ATTEMPT", "TOLD", "USER", "AT"}}
	for _, j := range l.Jobs {
		end, at := j.EndedAt.Time, ""
		if end.IsZero() {
			end = time.Now()
		}
		if p := j.Progress; p != nil {
			at = p.Text
			if p.Fraction != nil {
				at = fmt.Sprintf("%.0f %% %s", 100**p.Fraction, at)
			}
		}
		rows = append(rows, []string{
			textutil.Quote(j.ID), textutil.Quote(j.Name), textutil.Quote(j.State), j.CreatedAt.Local().Format(time.DateTime),
			max(0, end.Sub(j.CreatedAt.Time)).Round(time.Second).String(), strconv.Itoa(j.Attempt),
			textutil.YesNo(!j.ToldAt.IsZero()), orDash(j.User), orDash(at),
		})
	}
	return textutil.Table(file, rows)
}

// Approvals is the response of GET /v1/approvals: approved actions with an unknown outcome.
type Approvals struct {
	Approvals []store.Approval `json:"approvals"`
	// Total may exceed the list's length.
	Total int `json:"total"`
}

// Approvals lists the approved actions with an unknown outcome.
func (o *Client) Approvals(ctx context.Context) (Approvals, error) {
	return get[Approvals](ctx, o, "/v1/approvals")
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

// Blocks is the response of GET /v1/blocks: the blocked users.
type Blocks struct {
	Blocks []protocol.Block `json:"blocks"`
}

// Blocks lists the blocked users.
func (o *Client) Blocks(ctx context.Context) (Blocks, error) {
	return get[Blocks](ctx, o, "/v1/blocks")
}

// Table formats the users for the width of a file.
func (l Blocks) Table(file any) string {
	if len(l.Blocks) == 0 {
		return "No blocked users.\n"
	}
	rows := [][]string{{"USER", "UNTIL", "FOR ANOTHER"}}
	for _, b := range l.Blocks {
		rows = append(rows, []string{textutil.Quote(b.User), b.Until.Local().Format(time.DateTime),
			max(0, time.Until(b.Until.Time)).Round(time.Second).String()})
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

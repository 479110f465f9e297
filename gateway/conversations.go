package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"voicegw/internal/conversation"
	"voicegw/protocol"
	"voicegw/store"
)

const conversationsPath = "/v1/conversations"

// pageLines is the default page size.
const pageLines = 50

// conversationLine is a conversation in a list. Times are RFC 3339 in UTC with milliseconds.
type conversationLine struct {
	conversation.Digest
	CreatedAt protocol.Time `json:"created_at"`
	UpdatedAt protocol.Time `json:"updated_at"`
}

// listConversations returns a page of the stored conversations, most recently used first.
func (s operatorAPI) listConversations(w http.ResponseWriter, r *http.Request) {
	q, wrong := conversationQuery(r.URL.Query())
	if wrong != "" {
		problem(w, http.StatusBadRequest, "invalid_message", wrong)
		return
	}
	if only := mine(r.Context()); !only.IsZero() {
		q.User = only.String() // overrides the parameter
	}
	page, err := s.opts.Voice.Conversations(r.Context(), q)
	switch {
	case errors.Is(err, store.ErrCursor):
		problem(w, http.StatusBadRequest, "invalid_message",
			"The parameter after is not the next of a page; omit it to start with the newest.")
	case err != nil:
		s.storeFailed(w, "listing conversations failed", err)
	default:
		answer(w, http.StatusOK, shownPage(page))
	}
}

func shownPage(page store.Page) map[string]any {
	lines := make([]conversationLine, 0, len(page.Lines))
	for _, d := range page.Lines {
		lines = append(lines, conversationLine{Digest: d, CreatedAt: protocol.Time{Time: d.CreatedAt},
			UpdatedAt: protocol.Time{Time: d.UpdatedAt}})
	}
	body := map[string]any{"conversations": lines}
	if page.Next != "" {
		body["next"] = page.Next
	}
	if page.Incomplete {
		body["incomplete"] = true
	}
	return body
}

// conversationQuery parses the parameters, or returns the problem.
func conversationQuery(asked url.Values) (q store.Query, wrong string) {
	q = store.Query{After: asked.Get("after"), Most: pageLines}
	if q.User, wrong = listParameters(asked, "after", "limit"); wrong != "" {
		return q, wrong
	}
	if limit := asked.Get("limit"); limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > store.MostPage {
			return q, fmt.Sprintf("The parameter limit must be a number from 1 to %d.", store.MostPage)
		}
		q.Most = n
	}
	return q, ""
}

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"voicegw/internal/conversation"
	"voicegw/protocol"
	"voicegw/store"
)

const pageLines = 50

type conversationLine struct {
	conversation.Digest
	CreatedAt protocol.Time `json:"created_at"`
	UpdatedAt protocol.Time `json:"updated_at"`
}

func (s operatorAPI) listConversations(w http.ResponseWriter, r *http.Request) *problem {
	q, wrong := conversationQuery(r.URL.Query())
	if wrong != "" {
		return invalid(wrong)
	}
	if only := mine(r.Context()); !only.IsZero() {
		q.User = only.String() // overrides the parameter
	}
	page, err := s.opts.Voice.Conversations(r.Context(), q)
	switch {
	case errors.Is(err, store.ErrCursor):
		return invalid("The parameter after is not the next of a page; omit it to start with the newest.")
	case err != nil:
		return s.storeFailed("listing conversations failed", err)
	default:
		return answer(w, http.StatusOK, shownPage(page))
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

type conversationLines struct {
	*conversation.Conversation
	Entries   []entryLine   `json:"entries"`
	Policy    *struct{}     `json:"policy,omitempty"` // nil: internal
	Past      *struct{}     `json:"past,omitempty"`   // nil: only for lists
	CreatedAt protocol.Time `json:"created_at"`
	UpdatedAt protocol.Time `json:"updated_at"`
}

type entryLine struct {
	conversation.Entry
	At protocol.Time `json:"at"`
}

func shownConversation(c *conversation.Conversation) conversationLines {
	lines := make([]entryLine, 0, len(c.Entries))
	for _, e := range c.Entries {
		e.Extra, e.Calls = nil, slices.Clone(e.Calls) // only for the model
		for i := range e.Calls {
			e.Calls[i].Extra = nil
		}
		lines = append(lines, entryLine{Entry: e, At: protocol.Time{Time: e.At}})
	}
	return conversationLines{Conversation: c, Entries: lines, CreatedAt: protocol.Time{Time: c.CreatedAt},
		UpdatedAt: protocol.Time{Time: c.UpdatedAt}}
}

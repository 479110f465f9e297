package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
)

// FuzzDecode: any bytes in a bucket are a valid record or ErrCorrupt; and a decoded record is the same after it is
// written and read again.
func FuzzDecode(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, seed := range []any{
		Entry{Reservation: Reservation{Tool: "a", Session: "s", Call: "c", Turn: 1}, State: Pending, At: now, LeaseUntil: now},
		Entry{State: Done, Envelope: json.RawMessage(`{"ok":true}`), At: now},
		Entry{State: Done}, Entry{},
		Confirmation{Session: "s", Tool: "t", Args: json.RawMessage(`{"a":1}`), ExpiresAt: now, Outcome: Approved},
		Confirmation{Session: "s"}, Confirmation{Outcome: "perhaps"},
		block{User: "ada", Until: now}, block{},
		conversation.Conversation{ID: "c", Entries: []conversation.Entry{{At: now, Text: "x", Calls: []conversation.Call{{ID: "1", Args: json.RawMessage(`{}`)}}}}},
		conversation.Conversation{ID: "no/id"}, conversation.Conversation{},
		Ticket{SessionID: "s", User: "u", ExpiresAt: now, UsedAt: now}, Ticket{SessionID: "s"},
		voiceState{SessionID: "s", Running: true}, voiceState{},
		voiceState{SessionID: "s", Running: true, Node: "n", Epoch: 2},
		versioned(Node{ID: "n", URL: "https://a:1", Started: now, Answers: true}), versioned(Node{}), json.RawMessage(`{"v":2,"id":"n"}`),
		versioned(SessionRecord{ID: "s", Node: "n", Epoch: 1, State: SessionLive, EndsAt: now, TokenHashes: []string{"a"}}),
		versioned(SessionRecord{}), map[string]any{"v": 1, "id": "s", "NODE": "n", "epoch": 1, "state": "later", "new": []int{1}},
		versioned(Checkpoint{SessionID: "s", Epoch: 1, History: []conversation.Entry{{Text: "x"}}, State: json.RawMessage(`{"a":1}`)}), versioned(Checkpoint{}),
		versioned(UsageRecord{Day: "2026-11-25", Writer: "w", User: "ada", Sum: cost.Sum{Amount: cost.Amount{Micros: 5, Unpriced: 1}, Turns: 2}}), versioned(UsageRecord{}),
		versioned(AgentEdit{ID: "a", Document: json.RawMessage(`{"id":"a"}`), At: now, By: "key:1"}), versioned(AgentEdit{}),
		versioned(Webhook{ID: "evt_1", Type: "session.started", At: time.Unix(1764000000, 0).UTC(), Body: []byte("{}")}), versioned(Webhook{}),
		leaseHolder{Holder: "h", Node: "n"},
		approvalNote{Reference: "R", Session: "s", Tool: "t", Question: "q", ApprovedAt: now}, approvalNote{Reference: "R"},
	} {
		data, err := encode(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "null", "[]", `{"until":"x"}`, `{"state":"done","envelope":null}`, `{"session":"s","tool":"t","expires_at":"9999-12-31T23:59:60Z"}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := decodeEntry(held{data: data, revision: 7}); err == nil {
			again(t, e, func(data []byte) error { _, err := decodeEntry(held{data: data}); return err })
			if e.State == Done && e.Envelope == nil || e.revision != 7 {
				t.Errorf("%+v", e)
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		if c, err := decodeConfirmation(data); err == nil {
			again(t, c, func(data []byte) error { _, err := decodeConfirmation(data); return err })
			if c.Token != "" || c.Session == "" {
				t.Errorf("%+v", c)
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		if n, err := decodeApproval(data); err == nil {
			again(t, n, func(data []byte) error { _, err := decodeApproval(data); return err })
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		if k, err := decodeTicket(data); err == nil {
			again(t, k, func(data []byte) error { _, err := decodeTicket(data); return err })
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		if n, err := decodeNode(data); err == nil {
			again(t, versioned(n), func(data []byte) error { _, err := decodeNode(data); return err })
		} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
		fuzzSession(t, data)
		if e, err := decodeAgent(data); err == nil {
			again(t, versioned(e), func(data []byte) error { _, err := decodeAgent(data); return err })
		}
		if w, err := decodeWebhook(data); err == nil {
			again(t, versioned(w), func(data []byte) error { _, err := decodeWebhook(data); return err })
		}
		if u, err := decodeUsage(data); err == nil {
			again(t, versioned(u), func(data []byte) error { _, err := decodeUsage(data); return err })
		} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
		if c, err := decodeCheckpoint(data); err == nil {
			again(t, versioned(c), func(data []byte) error {
				if len(data) > MaxCheckpoint { // encode may make it longer: a space may become \u2028
					return nil
				}
				_, err := decodeCheckpoint(data)
				return err
			})
			if c.SessionID == "" || c.Epoch == 0 {
				t.Errorf("%+v", c)
			}
		} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
		if v, err := decodeVoice(data); err == nil {
			again(t, v, func(data []byte) error { _, err := decodeVoice(data); return err })
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		var named struct{ ID string }
		_ = json.Unmarshal(data, &named)
		if c, err := decodeConversation(named.ID, data); err == nil {
			again(t, c, func(data []byte) error { _, err := decodeConversation(c.ID, data); return err })
			if c.Entries == nil || !conversation.ValidID(c.ID) {
				t.Errorf("%+v", c)
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
		var b block
		_ = json.Unmarshal(data, &b)
		if b, err := decodeBlock(keyOf(b.User), data); err == nil {
			again(t, b, func(data []byte) error { _, err := decodeBlock(keyOf(b.User), data); return err })
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	})
}

// versioned is a record as it is stored.
func versioned(record any) json.RawMessage {
	data, err := encodeVersioned(record)
	if err != nil {
		panic(err)
	}
	return data
}

// fuzzSession: a rewritten record of a session has the same fields, including those of a newer version.
func fuzzSession(t *testing.T, data []byte) {
	r, err := decodeSession(data)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
		return
	}
	written, err := encodeSession(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(written) > mostSessionBytes {
		return // Directory does not write it
	}
	back, err := decodeSession(written)
	if err != nil {
		t.Fatalf("%s cannot be read again: %v", written, err)
	}
	if back.ID != r.ID || back.Epoch != r.Epoch || len(back.Unknown) != len(r.Unknown) {
		t.Errorf("%+v became %+v", r, back)
	}
}

// again writes a decoded record and reads it again.
func again(t *testing.T, record any, read func([]byte) error) {
	t.Helper()
	data, err := encode(record)
	if err != nil {
		t.Fatalf("%+v cannot be written: %v", record, err)
	}
	if err := read(data); err != nil {
		t.Errorf("%s cannot be read again: %v", data, err)
	}
}

package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openai/openai-go/v3/realtime"

	"voicegw/transport"
)

// maxUpdates bounds how many updates may wait for their confirmation; the oldest is dropped.
const maxUpdates = 16

// updateFrame encodes a session.update that replaces instructions and tools and nothing else. What
// it does not name stays as it is: a voice, sent again after the model has spoken, would have the
// whole update refused (cannot_update_voice), and formats would begin anew. A type is required with
// each update of today's API, and unknown to services with flat settings.
func (d *dialect) updateFrame(event string, r transport.Reconfigure) ([]byte, error) {
	tools := toolParams(r.Tools)
	if tools == nil {
		tools = realtime.RealtimeToolsConfigParam{} // an empty list clears; a missing one keeps
	}
	type session struct {
		Type         string                            `json:"type,omitempty"`
		Instructions string                            `json:"instructions"`
		Tools        realtime.RealtimeToolsConfigParam `json:"tools"`
	}
	s := session{Instructions: r.Instructions, Tools: tools}
	if d.session == nil {
		s.Type = "realtime"
	}
	frame, err := json.Marshal(struct {
		EventID string  `json:"event_id"`
		Type    string  `json:"type"`
		Session session `json:"session"`
	}{event, "session.update", s})
	if err != nil {
		return nil, fmt.Errorf("%w: session.update: %w", errEncode, err)
	}
	return frame, nil
}

func (c *conn) reconfigure(cmd transport.Reconfigure) error {
	if c.info.Capabilities.Reconfigure != transport.ReconfigureLive {
		return nil
	}
	event := c.eventID(opUpdate)
	frame, err := c.t.ep.dialect.updateFrame(event, cmd)
	if err != nil {
		return err
	}
	c.expectUpdate(event)
	return c.write(frame)
}

func (c *conn) expectUpdate(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.updates) == maxUpdates {
		c.updates = slices.Delete(c.updates, 0, 1)
	}
	c.updates = append(c.updates, event)
}

// onSessionUpdated confirms the oldest update, because the provider handles them in order and names none. It takes over
// the rate of the model's speech; the rate of the user's cannot change while the connection is open.
func (c handler) onSessionUpdated(ev *sessionEvent) *transport.Error {
	in, out, err := ev.rates(c.info.InputRate, c.speech.rate)
	if err == nil && in != c.info.InputRate {
		err = fmt.Errorf("%w: its input has changed to %d Hz", errFormat, in)
	}
	if err != nil {
		return c.t.fault("recv", transport.KindRetry, codeAudioFormat, err)
	}
	c.speech.rate = out
	c.mu.Lock()
	waited := len(c.updates) > 0
	if waited {
		c.updates = slices.Delete(c.updates, 0, 1)
	}
	c.mu.Unlock()
	if waited {
		c.events.add(transport.Reconfigured{})
	}
	return nil
}

func (c *conn) updateRefused(eventID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.updates, eventID)
	if at < 0 {
		return false
	}
	c.updates = slices.Delete(c.updates, at, at+1)
	return true
}

func (c *conn) addItem(cmd transport.AddItem) error {
	if c.info.Capabilities.AddItem == transport.AddItemNone {
		return nil
	}
	chain := chain{prefix: c.eventID(opAdded) + "_"}
	if err := chain.take(cmd.Item, c.t.ep.dialect); err != nil {
		return err
	}
	for _, item := range chain.items {
		if err := c.write(item.frame); err != nil {
			return err
		}
	}
	return nil
}

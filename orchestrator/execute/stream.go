package execute

import (
	"encoding/json"

	"voicegw/protocol"
	"voicegw/registry"
)

// stream is the registry.Stream of one attempt at a call. It may be used concurrently, also by a handler that was left
// behind: that one is not heard any more, also while the call is repeated.
type stream struct {
	b *beside // whose mu guards the following fields

	over         bool
	parts, bytes int
}

func (s *stream) end() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.over = true
}

// Part is registry.Stream.Part.
func (s *stream) Part(data any) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	part, err := registry.NewPart(data, s.parts, s.bytes)
	if err != nil || s.over || s.b.over {
		return err //nolint:wrapcheck // it is for the tool
	}
	encoded, err := json.Marshal(part)
	if err != nil {
		return err //nolint:wrapcheck // the data is JSON already: it cannot fail
	}
	s.parts, s.bytes = part.Part, s.bytes+len(part.Data)
	tool := s.b.run.Prepared.Tool()
	s.b.tell(&protocol.ToolMessage{
		Header: protocol.Header{Turn: s.b.run.Turn}, CallID: s.b.run.Call, Tool: tool.ToolID, Category: string(tool.Category), Name: registry.PartName, Data: encoded,
	})
	return nil
}

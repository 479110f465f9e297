package registry

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// built holds tool_registry.json if it was there when the program was compiled, and
// always tool_registry.md, so that there is something to embed before.
//
//go:embed tool_registry.*
var built embed.FS

// Embedded is the tool_registry.json that the program was compiled with. The error is
// [ErrEmpty] if the registry had not been built by then.
func Embedded() ([]byte, error) {
	data, err := built.ReadFile("tool_registry.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("registry: reading what was embedded: %w", err)
	}
	return data, nil
}

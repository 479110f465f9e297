package registry

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// built holds tool_registry.json if that file existed when the program was compiled, and
// always tool_registry.md, so that the embed directive matches at least one file.
//
//go:embed tool_registry.*
var built embed.FS

// Embedded returns the built-in tool_registry.json. The error is [ErrEmpty] if there was none at compile time.
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

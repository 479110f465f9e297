package scenario

import "voicegw/internal/strict"

// Error lists all problems of a scenario file, each with its line.
type Error = strict.Error

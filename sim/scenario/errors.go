package scenario

import "voicegw/internal/strict"

// Error is all that is wrong with a scenario file, each problem with its line.
type Error = strict.Error

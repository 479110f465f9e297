package fault

import "voicegw/internal/strict"

// Error lists all problems of a fault script, each with its line.
type Error = strict.Error

package fault

import "voicegw/internal/strict"

// Error is all that is wrong with a fault script, each problem with its line.
type Error = strict.Error

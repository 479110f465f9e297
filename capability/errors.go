package capability

import "errors"

var (
	// ErrFull is wrapped by what cannot be recorded because as much is recorded as
	// may be. Trying again later may help.
	ErrFull = errors.New("capability: as many are recorded as may be")
	// ErrUser is what Block and Offer return for an empty or too long user.
	ErrUser = errors.New("capability: the user is empty or too long")
	// ErrVoiceActive is what Offer returns while the conversation's voice session runs.
	ErrVoiceActive = errors.New("capability: a voice session is running already")
)

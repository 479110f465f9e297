package audit

import "errors"

var (
	// ErrLost means that Close gave up records, because their sink did not accept them in time.
	ErrLost = errors.New("audit records are lost")
	// ErrStuck means that a write had not returned when the context of Close ended.
	ErrStuck = errors.New("an audit write hangs")
	// ErrForeign means that a line is not a record of this package.
	ErrForeign = errors.New("not an audit record")
	// ErrPath means that the path of the audit file is unusable.
	ErrPath = errors.New("cannot use the audit file")
)

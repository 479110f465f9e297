package textutil

import (
	"os"

	"golang.org/x/term"
)

// Width says whether file is a terminal, and how many columns it has.
func Width(file any) (columns int, ok bool) {
	f, isFile := file.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns == 0 { // the size is unknown, as in many containers
		columns = 80
	}
	return columns, true
}

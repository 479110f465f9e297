package source

import (
	"embed"
	"io/fs"
)

//go:embed demo
var demo embed.FS

// Demo returns the default folder: some sixty records of an invented design studio. Its people, firms, addresses and
// numbers do not exist.
func Demo() fs.FS {
	sub, err := fs.Sub(demo, "demo")
	if err != nil {
		panic(err) // impossible: "demo" is a valid name
	}
	return sub
}

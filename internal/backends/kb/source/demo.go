package source

import (
	"embed"
	"io/fs"
)

//go:embed demo
var demo embed.FS

// Demo is the folder of an invented design studio, some sixty records: what a
// source reads when no folder is configured. Its people, firms, addresses and
// numbers do not exist.
func Demo() fs.FS {
	sub, err := fs.Sub(demo, "demo")
	if err != nil {
		panic(err) // "demo" is a valid name, so it cannot be
	}
	return sub
}

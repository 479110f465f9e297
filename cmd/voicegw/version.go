package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionOf returns the version of this binary.
func versionOf() string {
	info, ok := debug.ReadBuildInfo()
	if version == "" && ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "unknown")
	}
	return cmp.Or(version, "unknown")
}

// versionFlags are the flags of version: none.
type versionFlags struct{}

// Run prints the version and how the program was built.
func (versionFlags) Run(p Process) error {
	text := fmt.Sprintf("voicegw %s\n%s %s/%s\n", versionOf(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision", "vcs.time", "vcs.modified", "CGO_ENABLED", "-tags":
				text += s.Key + " " + s.Value + "\n"
			}
		}
	}
	return p.print(text)
}

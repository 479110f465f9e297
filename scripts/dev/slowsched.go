package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// edit is a replacement in a file of the runtime.
type edit struct{ file, old, new string }

var edits = []edit{
	{"runtime2.go", "\tgoid         uint64\n", "\tgoid         uint64\n\tputBacks     uint32 // how often it was put back since it ran\n"},
	{"proc.go", "\tmainStarted = true\n", "\tmainStarted = true\n\tslowSeed = cheaprand()\n"},
	{"proc.go", "const randomizeScheduler = raceenabled\n", `const randomizeScheduler = raceenabled

// slowSeed decides which goroutines are slow in this process.
var slowSeed uint32

// putBack says whether gp, which could run now, has to wait once more.
func putBack(gp *g) bool {
	if gp.lockedm != 0 || gp.startpc == 0 || gp.putBacks >= 400 || isSystemGoroutine(gp, false) {
		return false
	}
	h := uint32(gp.goid)*2654435761 ^ slowSeed
	h = (h ^ h>>15) * 2246822519
	if (h^h>>13)%4 == 0 {
		return cheaprandn(16) != 0
	}
	return cheaprandn(8) == 0
}
`},
	{"proc.go", "\tif mp.spinning {\n\t\tresetspinning()\n\t}\n\n\tif sched.disable.user", `	if mp.spinning {
		resetspinning()
	}

	if !tryWakeP && putBack(gp) {
		gp.putBacks++
		lock(&sched.lock)
		globrunqput(gp)
		unlock(&sched.lock)
		goto top
	}
	gp.putBacks = 0

	if sched.disable.user`},
}

// slowScheduler writes a Go scheduler that delays goroutines: it copies two files of the runtime, changed, into a
// folder and writes an overlay for go build and go test (-overlay).
//
// The scheduler puts a runnable goroutine back to the end of the queue: one in four nearly always, the others
// sometimes. A busy machine does the same, but rarely where it matters. A test that reads another goroutine's data
// without waiting for it fails within seconds.
func slowScheduler(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: slowsched GOROOT FOLDER")
	}
	return writeOverlay(args[0], args[1])
}

// writeOverlay writes the changed files and overlay.json into the folder.
func writeOverlay(goroot, folder string) error {
	sources := map[string]string{}
	for _, e := range edits {
		if sources[e.file] == "" {
			data, err := os.ReadFile(filepath.Join(goroot, "src", "runtime", e.file))
			if err != nil {
				return err
			}
			sources[e.file] = string(data)
		}
		if strings.Count(sources[e.file], e.old) != 1 {
			return fmt.Errorf("the scheduler of %s has no single %q in %s: fix the edits in scripts/dev/slowsched.go, or run "+
				"with SCHEDULER=plain", runtime.Version(), e.old, e.file)
		}
		sources[e.file] = strings.Replace(sources[e.file], e.old, e.new, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	var errs []error
	for file, source := range sources {
		changed := filepath.Join(folder, file)
		overlay.Replace[filepath.Join(goroot, "src", "runtime", file)] = changed
		errs = append(errs, os.WriteFile(changed, []byte(source), 0o644))
	}
	data, err := json.Marshal(overlay)
	errs = append(errs, err, os.WriteFile(filepath.Join(folder, "overlay.json"), data, 0o644))
	return errors.Join(errs...)
}

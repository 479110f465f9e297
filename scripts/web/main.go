// Command web builds the page of the gateway: web/page becomes web/dist.
//
//	go run ./scripts/web              writes web/dist, which is committed
//	go run ./scripts/web -tests DIR   writes the page's unit tests, for node
//
// It needs no network and no node, and the same sources give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"voicegw/scripts/web/bundle"
)

func main() {
	tests := flag.String("tests", "", "write the unit tests of the page into this folder instead")
	flag.Parse()
	if err := run(*tests); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tests string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	web := filepath.Join(root, "web")
	if tests != "" {
		files, err := bundle.Tests(web)
		if err != nil {
			return err
		}
		return write(tests, files)
	}
	files, err := bundle.Page(web)
	if err != nil {
		return err
	}
	dist := filepath.Join(web, "dist")
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	return write(dist, files)
}

func write(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// projectRoot is the nearest folder above the working directory with a go.mod.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("web: no go.mod here or above; run it inside the project")
		}
		dir = parent
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const program = "./cmd/voicegw"

type module struct {
	Path    string
	Version string
	Dir     string
	Main    bool
	Replace *module

	license string // SPDX
}

func byPath(a, b module) int { return strings.Compare(a.Path, b.Path) }

var systems = []string{"linux", "darwin", "windows"}

func programModules() ([]module, error) {
	known := make(map[string]module)
	for _, system := range systems {
		if err := addModules(known, system); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(known), byPath), nil
}

func addModules(known map[string]module, system string) error {
	text, err := goList(system, "-deps", "-json=Module", program)
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct{ Module *module }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		// A module replaced by a folder is our own code.
		if m := p.Module; m != nil && !m.Main && m.Replace == nil {
			known[m.Path] = *m
		}
	}
}

func goList(system string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Env = append(cmd.Environ(), "GOOS="+system)
	text, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %w: %s", err, failed.Stderr)
	}
	return text, err
}

func pagePackages(lock string) ([]module, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var file struct {
		Packages map[string]struct {
			Version, License string
			Dev, Link, Peer  bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	var packages []module
	for place, p := range file.Packages {
		name, installed := strings.CutPrefix(place, "node_modules/")
		if !installed || p.Dev || p.Link || p.Peer || strings.HasPrefix(name, "voicegw/") {
			continue
		}
		packages = append(packages, module{Path: name, Version: p.Version, license: p.License})
	}
	slices.SortFunc(packages, byPath)
	return packages, nil
}

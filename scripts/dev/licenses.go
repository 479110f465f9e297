package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const pageLock = "web/package-lock.json"

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([.-].*)?$`)

// signs identify licenses by their words, the first match wins. An unlisted license stops the build, because a person
// has to read it.
var signs = []struct {
	spdx  string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may not be used to endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms",
		"this list of conditions and the following disclaimer in the documentation"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}},
	{"MIT-0", []string{"mit no attribution"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}},
}

func spdxOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, s := range signs {
		all := true
		for _, words := range s.words {
			all = all && strings.Contains(text, words)
		}
		if all {
			return s.spdx
		}
	}
	return ""
}

func licenseOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if spdx := spdxOf(string(text)); spdx != "" {
			return spdx, nil
		}
	}
	return "", errors.New("its license is not one of those that scripts/dev/licenses.go knows: read it, and add its signs " +
		"or drop the module")
}

func licensed() (modules, packages []module, err error) {
	if modules, err = programModules(); err != nil {
		return nil, nil, err
	}
	var unknown []error
	for i, m := range modules {
		if modules[i].license, err = licenseOf(m.Dir); err != nil {
			unknown = append(unknown, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
	}
	if packages, err = pagePackages(pageLock); err != nil {
		return nil, nil, err
	}
	for _, p := range packages {
		if p.license == "" {
			unknown = append(unknown, fmt.Errorf("%s %s: %s names no license of it", p.Path, p.Version, pageLock))
		}
	}
	return modules, packages, errors.Join(unknown...)
}

func licenseTable(modules, packages []module) []byte {
	var b bytes.Buffer
	b.WriteString("# Third parties\n\nvoicegw includes this code of others.\n\n" +
		"## Go modules\n\n| module | version | license |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, m.license)
	}
	b.WriteString("\nGo's standard library and runtime: BSD-3-Clause.\n\n" +
		"## In the pages of the console and of load reports\n\n| package of npm | version | license |\n|---|---|---|\n")
	for _, p := range packages {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Path, p.Version, p.license)
	}
	return b.Bytes()
}

func licenses(args []string) error {
	if len(args) > 1 {
		return errors.New("usage: licenses [FILE]")
	}
	modules, packages, err := licensed()
	if err != nil || len(args) == 0 {
		return err
	}
	return os.WriteFile(args[0], licenseTable(modules, packages), 0o644)
}

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

// sbom writes the bill of materials of a program as CycloneDX 1.6 JSON (ECMA-424), from the modules that the linker
// recorded in it. It contains no time and no serial number, so the same program has the same bill.
func sbom(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: sbom BINARY VERSION FILE")
	}
	binary, version, file := args[0], args[1], args[2]
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	modules, packages, err := licensed()
	if err != nil {
		return err
	}
	license := make(map[string]string, len(modules))
	for _, m := range modules {
		license[m.Path] = m.license
	}
	bom := cdx.NewBOM()
	root := cdx.Component{BOMRef: "voicegw", Type: cdx.ComponentTypeApplication, Name: "voicegw", Version: version,
		Licenses: spdx("Apache-2.0")}
	bom.Metadata = &cdx.Metadata{Component: &root}
	components := []cdx.Component{library("pkg:golang/std@"+info.GoVersion, "std", info.GoVersion, "BSD-3-Clause")}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			continue // a folder of this repository
		}
		components = append(components, library("pkg:golang/"+dep.Path+"@"+dep.Version, dep.Path, dep.Version, license[dep.Path]))
	}
	for _, p := range packages {
		components = append(components, library("pkg:npm/"+p.Path+"@"+p.Version, p.Path, p.Version, p.license))
	}
	bom.Components = &components
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	out, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return out.Close()
}

func library(purl, name, version, license string) cdx.Component {
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl,
		Licenses: spdx(license)}
}

func spdx(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

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

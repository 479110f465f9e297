package load

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed examples/*.yaml
var exampleFiles embed.FS

// ExampleNames lists the built-in scripts (voicegw load --script builtin:NAME), in alphabetical order.
func ExampleNames() []string {
	entries, err := exampleFiles.ReadDir("examples")
	if err != nil {
		panic(err) // they are in the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// ReadExample returns a built-in script.
func ReadExample(name string) ([]byte, error) {
	data, err := exampleFiles.ReadFile("examples/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no built-in script %q; there are %s", name, strings.Join(ExampleNames(), ", "))
	}
	return data, nil
}

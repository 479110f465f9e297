package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"voicegw/config/setting"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/transport"
)

// Source is where to load a configuration from.
type Source struct {
	// File is the YAML file; may be empty.
	File string
	// FileFrom is the origin of File: "--config" or a variable.
	FileFrom string
	// Environ is the environment, as in os.Environ.
	Environ []string
	// Flags are settings from the command line; later ones win.
	Flags []Flag
	// Client means that the caller needs only the gateway's address and key: server settings aren't checked, and
	// named files aren't read.
	Client bool
	// Tools are the program's tools, with settings under tools.
	Tools []registry.Entry
	// Wires are the allowed wires; nil means [Wires].
	Wires []transport.Wire
	// ReadFile reads a file; nil means os.ReadFile. For tests.
	ReadFile func(name string) ([]byte, error)
}

// Flag is a setting from the command line.
type Flag struct {
	Name  string // as the user wrote it: "--listen"
	Key   string // "listen"
	Value string
}

const maxFileBytes = 1 << 20

type loader struct {
	source Source
	config *Config
	fields map[string]field
	keys   []string
	// secretFiles maps settings that name a secret's file to the secret's setting.
	secretFiles map[string]string
	// where is the last source of each key.
	where map[string]string
	// unusable are settings and sections with invalid values, which aren't also reported as missing.
	unusable map[string]bool
	problems Problems
	warnings []string
}

// Load loads a configuration: defaults, file, environment and flags, each overriding the previous one. Warnings are
// about ignored input, for the log. The error is Problems.
func Load(source Source) (c *Config, warnings []string, err error) {
	l := readSources(source)
	if source.Client {
		l.readSecret("api_key" + secretFileSuffix)
		validator{l}.listen("listen", l.config.Listen)
		validator{l}.validateAPIKey()
	} else {
		l.settle()
		validator{l}.validate()
	}
	if len(l.problems) > 0 {
		return nil, l.warnings, l.problems
	}
	l.config.where = l.where
	return l.config, l.warnings, nil
}

// ForeignTools returns the settings tool_dirs and mcp, whose tools a Source must know before the configuration is loaded.
// Load reports problems.
func ForeignTools(source Source) ([]string, MCP) {
	c := readSources(source).config
	return c.ToolDirs, c.MCP
}

// LoadMCP loads only the setting mcp, so that it can be used while a lock file, and so the configuration, has problems.
func LoadMCP(source Source) (MCP, error) {
	l := readSources(source)
	l.settle()
	l.problems = slices.DeleteFunc(l.problems, func(p Problem) bool { return !strings.HasPrefix(p.Message, "mcp.") })
	validator{l}.validateMCP()
	return l.config.MCP, l.problems.Err()
}

// readSources reads the file, the environment and the flags, without checking the settings.
func readSources(source Source) *loader {
	if source.ReadFile == nil {
		source.ReadFile = os.ReadFile
	}
	if source.Wires == nil {
		source.Wires = Wires()
	}
	l := newLoader(source)
	l.readFile()
	l.readEnv()
	l.readFlags()
	return l
}

func newLoader(source Source) *loader {
	l := &loader{source: source, config: defaultFor(source.Wires), fields: map[string]field{}, where: map[string]string{},
		secretFiles: map[string]string{}, unusable: map[string]bool{}}
	for _, name := range l.config.wireNames() {
		l.introduce(namedAt(providersPrefix), name)
	}
	l.know(fieldsOf("", l.config))
	l.knowTools()
	return l
}

func (l *loader) know(list []field) {
	for _, f := range list {
		l.fields[f.key] = f
		l.keys = append(l.keys, f.key)
	}
	l.knowSecretFiles(list)
}

func (l *loader) set(where, key, text string) {
	if err := l.fields[key].set(text); err != nil {
		l.problems.Add(where, "%s %v.", key, err)
		l.unusable[key] = true
		return
	}
	l.where[key] = where
}

func (l *loader) readFile() {
	if l.source.File == "" {
		return
	}
	data, err := l.read(l.source.File)
	if err != nil {
		from := cmp.Or(l.source.FileFrom, l.source.File)
		l.problems.Add(from, "The configuration file %s %v.", l.source.File, err)
		return
	}
	before := len(l.problems)
	l.parseFile(l.source.File, data)
	// Paths in a file are relative to its directory.
	dir := filepath.Dir(l.source.File)
	if len(l.problems) > before {
		return
	}
	for _, key := range l.keys {
		switch p := l.fields[key].value.Addr().Interface().(type) {
		case *setting.File:
			p.Path = below(dir, p.Path)
		case *setting.Path:
			if *p != setting.Stdout {
				*p = setting.Path(below(dir, string(*p)))
			}
		case *Certificates:
			for i, c := range *p {
				(*p)[i] = Certificate{setting.Path(below(dir, string(c.Cert))), setting.Path(below(dir, string(c.Key)))}
			}
		}
	}
}

func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// read reads a file. The error completes a sentence that starts with the file's name.
func (l *loader) read(name string) ([]byte, error) {
	data, err := l.source.ReadFile(name)
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("does not exist; correct the path or leave it out")
	case errors.As(err, &pe):
		return nil, fmt.Errorf("cannot be read: %w", pe.Err)
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("has %d bytes, but may have at most %d", len(data), maxFileBytes)
	}
	return data, nil
}

// readEnv reads the providers' own variables first, so that the gateway's override them.
func (l *loader) readEnv() {
	vars := map[string]string{}
	for _, entry := range l.source.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && value != "" {
			vars[name] = value
		}
	}
	l.introduceAll(vars)
	l.readKeyVariables(vars)
	known := map[string]bool{envConfig: true}
	for _, key := range l.keys {
		name := env(key)
		value, ok := vars[name]
		if ok && known[name] {
			l.problems.Add(name, "The variable belongs to two settings, one of them %s; rename one of them.", key)
		} else if ok {
			l.set(name, key, value)
		}
		known[name] = true
	}
	for name := range vars {
		if strings.HasPrefix(name, envPrefix) && !known[name] && !serviceLink(name) {
			l.warnings = append(l.warnings, fmt.Sprintf("The environment variable %s is not a setting of voicegw "+
				"and was ignored.%s", name, didYouMean(textutil.Nearest(name, slices.Sorted(maps.Keys(known))))))
		}
	}
	slices.Sort(l.warnings)
}

const envConfig = envPrefix + "CONFIG"

// serviceLink matches variables that Kubernetes sets in containers for a Service called voicegw.
func serviceLink(name string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return strings.HasPrefix(rest, "SERVICE_") || rest == "PORT" || strings.HasPrefix(rest, "PORT_")
}

func (l *loader) readFlags() {
	for _, f := range l.source.Flags {
		if _, ok := l.fields[f.Key]; !ok {
			l.problems.Add(f.Name, "There is no setting %s.%s", quote(f.Key), didYouMean(textutil.Nearest(f.Key, l.keys)))
			continue
		}
		l.set(f.Name, f.Key, f.Value)
	}
}

func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return " Did you mean " + word + "?"
}

func (l *loader) settle() {
	for _, key := range l.keys {
		l.readSecret(key)
	}
	l.settleProviders()
	l.settleTools()
	c := l.config
	if services := c.Services(); l.where["provider"] == "" && len(services) > 0 && !c.Providers[c.Provider].Configured() {
		if !services[0].Simulated {
			c.Provider = services[0].Name
		}
	}
	for _, key := range l.keys {
		f, ok := l.fields[key].value.Addr().Interface().(*setting.File)
		if !ok || f.Path == "" || l.secretFiles[key] != "" {
			continue
		}
		data, err := l.read(f.Path)
		if err != nil {
			l.bad(key, "%s: the file %s %v.", key, f.Path, err)
			l.unusable[key] = true
			continue
		}
		f.Data = data
	}
}

// at returns where a key was set, or how to set it.
func (l *loader) at(key string) string {
	if where := l.where[key]; where != "" {
		return where
	}
	return env(key)
}

// bad adds a problem, unless the setting's value was already rejected.
func (l *loader) bad(key, format string, args ...any) {
	if !l.refused(key) {
		l.problems.Add(l.at(key), format, args...)
	}
}

// refused reports whether a setting or an enclosing section was already rejected.
func (l *loader) refused(key string) bool {
	for {
		if l.unusable[key] {
			return true
		}
		at := strings.LastIndexByte(key, '.')
		if at < 0 {
			return false
		}
		key = key[:at]
	}
}

func (l *loader) refusedBelow(section string) bool {
	for key := range l.unusable {
		if key == section || strings.HasPrefix(key, section+".") {
			return true
		}
	}
	return false
}

// Problem is a problem of a configuration.
type Problem struct {
	// Where is a file with a line ("voicegw.yaml:3"), an environment variable or a flag.
	Where string
	// Message explains the problem and its fix. It contains no secret.
	Message string
}

// String returns "where: message".
func (p Problem) String() string { return p.Where + ": " + p.Message }

// Problems is the error of Load: all problems of a configuration.
type Problems []Problem

// Error returns the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems as one error; nil without problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Add adds a problem.
func (p *Problems) Add(where, format string, args ...any) {
	*p = append(*p, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
}

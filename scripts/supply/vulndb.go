package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The vulnerability database is Go's own, https://vuln.go.dev/vulndb.zip, in the layout of
// https://go.dev/doc/security/vuln/database (read 2026-11-23): index/db.json,
// index/modules.json and ID/<id>.json. The kept part concerns the modules that this project
// requires, and Go itself, without the prose: what govulncheck needs, in a size that can
// be committed.
const (
	maxDatabase = 256 << 20 // bytes of the zip, which had about 6 MB in 2026
	maxEntry    = 4 << 20   // bytes of one file in it
	fetchTime   = 2 * time.Minute
	staleAfter  = 30 * 24 * time.Hour
)

// entry is the part of an OSV entry that is kept (https://ossf.github.io/osv-schema/).
type entry struct {
	SchemaVersion string          `json:"schema_version"`
	ID            string          `json:"id"`
	Modified      time.Time       `json:"modified"`
	Published     time.Time       `json:"published"`
	Withdrawn     *time.Time      `json:"withdrawn,omitempty"`
	Aliases       []string        `json:"aliases,omitempty"`
	Summary       string          `json:"summary,omitempty"`
	Details       string          `json:"details"`
	Affected      []affected      `json:"affected"`
	Specific      json.RawMessage `json:"database_specific,omitempty"`
}

// affected says which versions of a module are affected by an entry.
type affected struct {
	Package struct {
		Name      string `json:"name"`
		Ecosystem string `json:"ecosystem"`
	} `json:"package"`
	Ranges []struct {
		Type   string `json:"type"`
		Events []struct {
			Introduced string `json:"introduced,omitempty"`
			Fixed      string `json:"fixed,omitempty"`
		} `json:"events"`
	} `json:"ranges"`
	Specific json.RawMessage `json:"ecosystem_specific,omitempty"`
}

// indexed is the content of index/modules.json for an entry.
type indexed struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Fixed    string    `json:"fixed,omitempty"`
}

// updateVulnDB writes to a folder the part of the database that concerns this project. The
// database is a zip, a file or a URL. The folder is replaced only when the new one is complete.
func updateVulnDB(source, folder string, out io.Writer) error {
	archive, err := fetch(source)
	if err != nil {
		return err
	}
	names, err := requiredModules()
	if err != nil {
		return err
	}
	modified, entries, err := readVulnDB(archive, names)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	fresh := folder + ".new"
	if err := errors.Join(os.RemoveAll(fresh), writeVulnDB(fresh, modified, entries)); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.Rename(fresh, folder)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d entries of %d modules, database of %s\n", folder, len(entries), len(names), modified.Format(time.DateOnly))
	return err
}

// fetch reads a file or a URL.
func fetch(source string) ([]byte, error) {
	if !strings.Contains(source, "://") {
		return os.ReadFile(source)
	}
	client := http.Client{Timeout: fetchTime}
	resp, err := client.Get(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", source, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDatabase+1))
	if err == nil && len(data) > maxDatabase {
		err = fmt.Errorf("%s: more than %d bytes", source, maxDatabase)
	}
	return data, err
}

// requiredModules returns the paths of all modules that go.mod requires, and the two names
// under which the database lists Go.
func requiredModules() (map[string]bool, error) {
	text, err := goList("-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{"stdlib": true, "toolchain": true}
	for _, name := range strings.Fields(string(text)) {
		names[name] = true
	}
	return names, nil
}

// readVulnDB returns the date of the database in a zip and its entries for these modules.
func readVulnDB(archive []byte, modules map[string]bool) (time.Time, []entry, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return time.Time{}, nil, err
	}
	var db struct {
		Modified time.Time `json:"modified"`
	}
	if err := readJSON(files, "index/db.json", &db); err != nil {
		return time.Time{}, nil, err
	}
	if db.Modified.IsZero() {
		return time.Time{}, nil, errors.New("index/db.json: the field modified is missing")
	}
	var index []struct {
		Path  string    `json:"path"`
		Vulns []indexed `json:"vulns"`
	}
	if err := readJSON(files, "index/modules.json", &index); err != nil {
		return time.Time{}, nil, err
	}
	wanted := make(map[string]bool)
	for _, m := range index {
		for _, v := range m.Vulns {
			wanted[v.ID] = wanted[v.ID] || modules[m.Path]
		}
	}
	var entries []entry
	for id, ok := range wanted {
		if !ok {
			continue
		}
		var e entry
		if err := readJSON(files, "ID/"+id+".json", &e); err != nil {
			return time.Time{}, nil, err
		}
		if e.ID != id || !filepath.IsLocal(id) || strings.ContainsAny(id, `/\`) {
			return time.Time{}, nil, fmt.Errorf("ID/%s.json: it is the entry %q", id, e.ID)
		}
		if len(e.Specific) == 0 { // govulncheck crashes without it
			return time.Time{}, nil, fmt.Errorf("ID/%s.json: the field database_specific is missing", id)
		}
		e.Affected = slices.DeleteFunc(e.Affected, func(a affected) bool { return !modules[a.Package.Name] })
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.ID, b.ID) })
	return db.Modified, entries, nil
}

// readJSON decodes one file of a zip.
func readJSON(files *zip.Reader, name string, v any) error {
	f, err := files.Open(name)
	if err != nil {
		return fmt.Errorf("it is not a vulnerability database: %w", err)
	}
	defer func() { _ = f.Close() }()
	limit := int64(maxEntry)
	if strings.HasPrefix(name, "index/") {
		limit = maxDatabase
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeVulnDB writes a database of these entries.
func writeVulnDB(folder string, modified time.Time, entries []entry) error {
	type moduleVulns struct {
		Path  string    `json:"path"`
		Vulns []indexed `json:"vulns"`
	}
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases,omitempty"`
	}
	byModule := make(map[string][]indexed)
	vulns := make([]vuln, 0, len(entries))
	for _, e := range entries {
		e.Details = "" // prose; the field is required
		if err := writeJSON(filepath.Join(folder, "ID", e.ID+".json"), e); err != nil {
			return err
		}
		vulns = append(vulns, vuln{e.ID, e.Modified, e.Aliases})
		for _, a := range e.Affected {
			known := byModule[a.Package.Name]
			if len(known) == 0 || known[len(known)-1].ID != e.ID {
				byModule[a.Package.Name] = append(known, indexed{ID: e.ID, Modified: e.Modified, Fixed: lastFix(a)})
			}
		}
	}
	modules := make([]moduleVulns, 0, len(byModule))
	for path, list := range byModule {
		modules = append(modules, moduleVulns{path, list})
	}
	slices.SortFunc(modules, func(a, b moduleVulns) int { return strings.Compare(a.Path, b.Path) })
	return errors.Join(
		writeJSON(filepath.Join(folder, "index", "db.json"), map[string]time.Time{"modified": modified}),
		writeJSON(filepath.Join(folder, "index", "modules.json"), modules),
		writeJSON(filepath.Join(folder, "index", "vulns.json"), vulns))
}

// lastFix returns the version that ends the last range of versions; empty if none does.
func lastFix(a affected) string {
	fixed := ""
	for _, r := range a.Ranges {
		for _, e := range r.Events {
			fixed = e.Fixed
		}
	}
	return fixed
}

func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// tellAge prints the age of the database in a folder, and warns of an old one. Its age is not
// an error: if nothing can be fetched, the known entries are still worth comparing with.
func tellAge(folder string, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(folder, "index", "db.json"))
	if err != nil {
		return err
	}
	var db struct {
		Modified time.Time `json:"modified"`
	}
	if err := json.Unmarshal(text, &db); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, "ID"))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d known vulnerabilities, database of %s\n", len(entries), db.Modified.Format(time.DateOnly)); err != nil {
		return err
	}
	if time.Since(db.Modified) > staleAfter {
		_, err = fmt.Fprintln(out, "WARNING: it is older than 30 days; where vuln.go.dev can be reached, make vulndb fetches the newest")
	}
	return err
}

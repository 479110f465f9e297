package build

import (
	"io/fs"
	"path"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

type version struct {
	folder string
	text   *text
	spec   spec.Spec
}

func (l *linter) agree(root fs.FS) {
	byVersion := map[string]string{} // of the tool and its version, the folder
	for _, v := range l.beside {
		l.tool = v.folder
		of := v.spec.VariantOf
		main := strings.ReplaceAll(of, "_", "-")
		text, err := fs.ReadFile(root, path.Join(toolsDir, main, schemaFile))
		if err != nil {
			names, _ := toolNames(root) // without a folder there are no suggestions
			for i, name := range names {
				names[i] = toolID(name)
			}
			l.addAt(v.text, "/variantOf", ruleVariant,
				"There is no tool %s of which this could be a version%s.", document.Show(of), document.DidYouMean(of, names))
			continue
		}
		declared, problems := spec.Parse(text)
		if len(problems) > 0 {
			continue // its own check reports them
		}
		for _, p := range spec.Disagreements(&declared, &v.spec) {
			l.addAt(v.text, p.Path, ruleVariant, "%s", p.Message)
		}
		if other, twice := byVersion[of+" "+v.spec.Version]; twice {
			l.addAt(v.text, "/version", ruleVariant,
				"The version %s is that of %s, too; the audit tells versions apart by it.", v.spec.Version, other)
		}
		byVersion[of+" "+v.spec.Version] = v.folder
	}
	l.tool, l.beside = "", nil
}

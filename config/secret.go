package config

import (
	"reflect"
	"strings"

	"voicegw/config/setting"
)

// secretFileSuffix makes the key of a secret the key of the setting that names a file with the secret.
const secretFileSuffix = "_file"

// knowSecretFiles adds, for each secret of a list, the setting that names a file with it. A setting of a tool
// that has this name already stays what it is.
func (l *loader) knowSecretFiles(list []field) {
	for _, f := range list {
		key := f.key + secretFileSuffix
		if _, taken := l.fields[key]; taken || f.value.Type() != reflect.TypeFor[setting.Secret]() {
			continue
		}
		l.fields[key] = field{key: key, value: reflect.ValueOf(new(setting.File)).Elem()}
		l.keys, l.secretFiles[key] = append(l.keys, key), f.key
	}
}

// readSecret reads the secret from the file that the setting with that key names. It does nothing for settings
// that name no secret's file.
func (l *loader) readSecret(key string) {
	secret, is := l.secretFiles[key]
	if !is {
		return
	}
	path := l.fields[key].value.Interface().(setting.File).Path
	if path == "" {
		return
	}
	if l.where[secret] != "" {
		l.problems.add(l.at(key), "%s and %s are both set (%s); remove one of them.", key, secret, l.where[secret])
		return
	}
	data, err := l.read(path)
	if err != nil {
		l.problems.add(l.at(key), "%s: the file %s %v.", key, path, err)
		return
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		l.problems.add(l.at(key), "%s: the file %s is empty; write the secret into it.", key, path)
		return
	}
	if err := l.fields[secret].set(text); err != nil {
		l.problems.add(l.at(key), "%s: the file %s %v.", key, path, err)
		return
	}
	l.where[secret] = l.at(key)
}

// Secrets returns the texts of all secrets that are set, in any order, for code that must
// not write them.
func (c *Config) Secrets() (found []string) {
	all := fieldsOf("", c)
	for _, p := range c.Providers {
		all = append(all, fieldsOf("", p)...)
	}
	for _, w := range c.Webhooks {
		all = append(all, fieldsOf("", w)...)
	}
	for _, i := range c.Auth.JWT {
		all = append(all, fieldsOf("", i)...)
	}
	all = append(all, c.toolFields()...)
	for _, f := range all {
		if s, ok := f.value.Interface().(setting.Secret); ok && s.IsSet() {
			found = append(found, s.Reveal())
		}
	}
	return found
}

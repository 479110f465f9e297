package config

import (
	"fmt"
	"reflect"
	"strings"

	"voicegw/config/setting"
)

// secretFileSuffix makes the key of a secret the key of the setting that names a file with the secret.
const secretFileSuffix = "_file"

// knowSecretFiles adds a setting for the file of each secret, unless a tool has a setting of this name.
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

// readSecret reads the secret from the file that the setting names. It does nothing for other settings.
func (l *loader) readSecret(key string) {
	secret, is := l.secretFiles[key]
	if !is {
		return
	}
	path := l.fields[key].value.Interface().(setting.File).Path
	if path == "" && !l.unusable[key] {
		return
	}
	if wrong := l.takeSecret(key, secret, path); wrong != "" {
		l.bad(key, "%s", wrong)
		l.unusable[secret] = true
	}
}

// takeSecret sets a secret from the file at path, which the setting key names. It returns a problem, or "".
func (l *loader) takeSecret(key, secret, path string) (wrong string) {
	if l.where[secret] != "" {
		return fmt.Sprintf("%s and %s are both set (%s); remove one of them.", key, secret, l.where[secret])
	}
	data, err := l.read(path)
	if err != nil {
		return fmt.Sprintf("%s: the file %s %v.", key, path, err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return fmt.Sprintf("%s: the file %s is empty; write the secret into it.", key, path)
	}
	if err := l.fields[secret].set(text); err != nil {
		return fmt.Sprintf("%s: the file %s %v.", key, path, err)
	}
	l.where[secret] = l.at(key)
	return ""
}

// Secrets returns the texts of all secrets that are set, in any order, for code that must
// not write them.
func (c *Config) Secrets() (found []string) {
	for _, f := range c.fields() {
		if s, ok := f.value.Interface().(setting.Secret); ok && s.IsSet() {
			found = append(found, s.Reveal())
		}
	}
	return found
}

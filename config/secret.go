package config

import "voicegw/config/setting"

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

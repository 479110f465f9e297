package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"voicegw/config/setting"
	"voicegw/registry/document"
)

type field struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
}

// fieldsOf returns a struct's settings in order, except providers', with keys that start with prefix.
func fieldsOf(prefix string, section any) []field {
	return collect(nil, prefix, reflect.ValueOf(section).Elem())
}

func newField(key string) field { return field{key: key, value: reflect.ValueOf(new(string)).Elem()} }

func collect(out []field, prefix string, v reflect.Value) []field {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if v.Type().Field(i).Anonymous {
			out = collect(out, prefix, v.Field(i))
			continue
		}
		key := prefix + tag.Get("key")
		if key == prefix || v.Field(i).Kind() == reflect.Map {
			continue
		}
		in := v.Field(i)
		if in.Kind() == reflect.Struct && in.NumField() > 0 && in.Type().Field(0).Tag.Get("key") != "" {
			out = collect(out, key+".", in)
			continue
		}
		out = append(out, field{key: key, value: in, tag: tag})
	}
	return out
}

const envPrefix = "VOICEGW_"

var inVariables = strings.NewReplacer(".", "_", "-", "_")

func env(key string) string { return envPrefix + strings.ToUpper(inVariables.Replace(key)) }

// set parses text into the field. The error completes a sentence that starts with the key: "must be …". It contains
// no secret.
func (f field) set(text string) error {
	switch p := f.value.Addr().Interface().(type) {
	case *string:
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			return fmt.Errorf("must not have control characters")
		}
		*p = text
	case *setting.Path:
		*p = setting.Path(text)
	case *setting.Secret:
		return setSecret(p, text)
	case *setting.File:
		*p = setting.File{Path: text}
	case *bool:
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			*p = true
		case "false", "no", "off", "0":
			*p = false
		default:
			return fmt.Errorf("must be true or false, not %s", quote(text))
		}
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("must be a whole number, not %s", quote(text))
		}
		*p = n
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("must be a number, not %s", quote(text))
		}
		*p = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("must be a duration with its unit, such as 30s, 5m or 1h30m, not %s", quote(text))
		}
		*p = d
	case *[]string:
		*p = splitList(text)
	case *Certificates:
		list, err := parseCertificates(text)
		if err != nil {
			return err
		}
		*p = list
	default:
		return fmt.Errorf("has a type that this package does not support (%s)", f.value.Type())
	}
	return nil
}

// setSecret accepts a secret that fits into an HTTP header: printable ASCII.
func setSecret(p *setting.Secret, text string) error {
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("has a space, a line break or a character that keys never have; paste it again")
	}
	*p = setting.NewSecret(text)
	return nil
}

func splitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func quote(s string) string { return strconv.Quote(document.Shorten(s, 40)) }

package orchestrator

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// dump writes all contents of a value, through pointers and unexported fields, so that values with equal dumps are
// equal. It leaves out the tools and their compiled forms, which never change.
func dump(v any) string {
	var out strings.Builder
	dumpValue(&out, reflect.ValueOf(v))
	return out.String()
}

func dumpValue(out *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		dumpPointed(out, v)
	case reflect.Struct:
		dumpStruct(out, v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			out.Write(v.Bytes())
			return
		}
		out.WriteByte('[')
		for i := range v.Len() {
			dumpValue(out, v.Index(i))
			out.WriteByte(' ')
		}
		out.WriteByte(']')
	case reflect.Map:
		fmt.Fprintf(out, "map%v", v) // sorted; the maps here hold plain values
	default:
		fmt.Fprint(out, v)
	}
}

func dumpPointed(out *strings.Builder, v reflect.Value) {
	switch {
	case v.IsNil():
		out.WriteString("nil")
	case v.Type().String() == "*registry.Tool" || v.Type().String() == "*registry.Snapshot":
		out.WriteString(v.Type().String())
	default:
		dumpValue(out, v.Elem())
	}
}

func dumpStruct(out *strings.Builder, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		fmt.Fprint(out, v.Field(0), v.Field(1)) // the location is a pointer, and always the same
		return
	}
	out.WriteByte('{')
	for i := range v.NumField() {
		fmt.Fprintf(out, "%s:", v.Type().Field(i).Name)
		dumpValue(out, v.Field(i))
		out.WriteByte(' ')
	}
	out.WriteByte('}')
}

package registry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// source is the source of a field of a handler's needs: the process, the call's snapshot, or a value of each call. The
// zero source leaves the field unset.
type source struct {
	value   reflect.Value
	perCall reflect.Type
	tools   bool          // the snapshot of the call
	live    *liveSettings // the tool's own settings at the time of the call
	// optional is set if the need may be missing: it is then an Optional, also for the zero source.
	optional optional
}

type provider struct {
	typ reflect.Type
	source
}

func (o *Options) providers(mode spec.Mode) []provider {
	var all []provider
	for _, t := range slices.Concat(o.SessionCapabilities, o.ModeCapabilities[mode], CallCapabilities()) {
		if t != nil {
			all = append(all, provider{typ: t, source: source{perCall: t}})
		}
	}
	for _, c := range o.Capabilities {
		if v := reflect.ValueOf(c); v.IsValid() {
			all = append(all, provider{typ: v.Type(), source: source{value: v}})
		}
	}
	return append(all, provider{typ: reflect.TypeFor[*Snapshot](), source: source{tools: true}})
}

func (o *Options) check() []document.Problem {
	var problems []document.Problem
	for i, c := range o.Capabilities {
		v := reflect.ValueOf(c)
		empty := !v.IsValid()
		if !empty {
			switch v.Kind() {
			case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice, reflect.Interface:
				empty = v.IsNil()
			}
		}
		if empty {
			problems = append(problems, document.Problem{Message: fmt.Sprintf(
				"Capability %d of the process (%T) is nil; leave it out or make it.", i, c)})
		}
	}
	return problems
}

func (h Handler) bindNeeds(modes []spec.Mode, providersOf map[spec.Mode][]provider) (map[spec.Mode][]source, []string) {
	if h.needs.Kind() != reflect.Struct {
		return nil, []string{fmt.Sprintf("The handler's needs are %s; they must be a struct whose fields are capabilities.", h.needs)}
	}
	var problems []string
	for field := range h.needs.Fields() {
		if !field.IsExported() {
			problems = append(problems, fmt.Sprintf("The field %s of the handler's needs (%s) begins with a lower-case letter, "+
				"so the registry cannot set it; begin it with a capital letter.", field.Name, field.Type))
		}
	}
	bound := map[spec.Mode][]source{}
	for _, mode := range modes {
		sources := make([]source, h.needs.NumField())
		for i := range sources {
			field := h.needs.Field(i)
			if !field.IsExported() {
				continue // reported above
			}
			s, why := matchField(field.Type, providersOf[mode])
			if why != "" {
				problems = append(problems, fmt.Sprintf("The handler needs %s (%s), and in %s mode %s.", field.Name, field.Type, mode, why))
			}
			sources[i] = s
		}
		bound[mode] = sources
	}
	return bound, problems
}

func matchField(t reflect.Type, providers []provider) (source, string) {
	o, is := reflect.Zero(t).Interface().(optional)
	if !is {
		return match(t, providers)
	}
	s, why := match(o.wants(), providers)
	s.optional = o
	if why == notProvided {
		return s, ""
	}
	return s, why
}

const notProvided = "nothing provides it: see the list of capabilities in docs/tools-reference.md, configure its " +
	"backend, or remove the mode from allowedModes"

// match finds the provider whose type is t or, otherwise, the only one assignable to t, preferring those of a call.
func match(t reflect.Type, providers []provider) (source, string) {
	var fitting []provider
	for _, p := range providers {
		if p.typ == t {
			return p.source, ""
		}
		if p.typ.AssignableTo(t) && !slices.ContainsFunc(fitting, func(f provider) bool { return f.typ == p.typ }) {
			fitting = append(fitting, p)
		}
	}
	switch len(fitting) {
	case 0:
		return source{}, notProvided
	case 1:
		return fitting[0].source, ""
	}
	var names []string
	for _, p := range fitting {
		names = append(names, p.typ.String())
	}
	return source{}, "several provide it (" + strings.Join(names, ", ") + "): name one of these types instead"
}

// Needs reports whether the tool cannot run in a mode without a capability of that type that each call brings.
func (t *Tool) Needs(mode spec.Mode, capability reflect.Type) bool {
	return slices.ContainsFunc(t.sources[mode], func(from source) bool {
		return from.optional == nil && from.perCall == capability
	})
}

func (s *Snapshot) gather(sources []source, caps []any) ([]reflect.Value, error) {
	values := make([]reflect.Value, len(sources))
	for i, from := range sources {
		v := from.value
		switch {
		case from.live != nil:
			v = *from.live.Load()
		case from.tools:
			v = reflect.ValueOf(s)
		case from.perCall != nil:
			v = ofCall(from.perCall, caps)
		}
		switch {
		case from.optional != nil && v.IsValid():
			v = from.optional.holding(v)
		case from.optional == nil && from.perCall != nil && !v.IsValid():
			return nil, fmt.Errorf("%w: %s", errMissingCapability, from.perCall)
		}
		values[i] = v
	}
	return values, nil
}

// ofCall finds a capability of the call. Without a conversation, the standard ones do nothing.
func ofCall(t reflect.Type, caps []any) reflect.Value {
	for _, c := range caps {
		if v := reflect.ValueOf(c); v.IsValid() && v.Type().AssignableTo(t) {
			return v
		}
	}
	if v := reflect.ValueOf(apart{}); slices.Contains(CallCapabilities(), t) || t == reflect.TypeFor[Stream]() {
		return v
	}
	return reflect.Value{}
}

// Optional is a capability that may be missing in a mode of the tool or in a gateway. A tool has it as a field of its
// Needs and checks it at each call. The zero Optional is missing.
type Optional[T any] struct {
	value T
	ok    bool
}

// Some returns an Optional with a value, for tests of handlers.
func Some[T any](value T) Optional[T] { return Optional[T]{value: value, ok: true} }

// Get returns the capability, and whether it exists.
func (o Optional[T]) Get() (T, bool) { return o.value, o.ok }

type optional interface {
	// wants is the capability's type.
	wants() reflect.Type
	// holding returns an Optional of the same type with the value v.
	holding(v reflect.Value) reflect.Value
}

func (o Optional[T]) wants() reflect.Type { return reflect.TypeFor[T]() }

func (o Optional[T]) holding(v reflect.Value) reflect.Value {
	return reflect.ValueOf(Some(v.Interface().(T)))
}

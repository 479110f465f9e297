package registry

import "reflect"

// Optional is a capability that may be missing: in a mode of the tool that does not have it, or in a
// gateway that is built without it. A tool names it as a field of its Needs, and finds out at each
// call. The zero Optional is a missing one.
type Optional[T any] struct {
	value T
	ok    bool
}

// Some returns an Optional that is there, for tests of handlers.
func Some[T any](value T) Optional[T] { return Optional[T]{value: value, ok: true} }

// Get returns the capability, and whether it is there.
func (o Optional[T]) Get() (T, bool) { return o.value, o.ok }

// optional is any Optional.
type optional interface {
	// wants is the type of the capability.
	wants() reflect.Type
	// holding returns an Optional of the same type that holds v.
	holding(v reflect.Value) reflect.Value
}

func (o Optional[T]) wants() reflect.Type { return reflect.TypeFor[T]() }

func (o Optional[T]) holding(v reflect.Value) reflect.Value {
	return reflect.ValueOf(Some(v.Interface().(T)))
}

// asOptional returns the zero value of a type, if that is an Optional; otherwise nil.
func asOptional(t reflect.Type) optional {
	o, _ := reflect.Zero(t).Interface().(optional)
	return o
}

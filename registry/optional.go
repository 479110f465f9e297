package registry

import "reflect"

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

func asOptional(t reflect.Type) optional {
	o, _ := reflect.Zero(t).Interface().(optional)
	return o
}

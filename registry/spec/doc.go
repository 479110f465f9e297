// Package spec is what a tool declares in its schema.json: a [Spec], read and checked by [Parse] without
// any handler. [Read] also returns what it compiled on the way, for package registry, which loads and runs
// the tools.
//
// A declaration says what is meant, and methods that need nothing else, such as [ConfirmWhen.Asks], say
// whether it holds. Whoever has a session or a call applies them.
package spec

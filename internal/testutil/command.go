package testutil

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Way is a direction through the proxy. Its text is the word used in JSON.
type Way string

// The directions. An empty Way in a Command means Both.
const (
	Both     Way = "both"
	ToTarget Way = "to_target"
	ToClient Way = "to_client"
)

// Kind is what a command does. Its text is the word used in JSON.
type Kind string

// The kinds of command.
const (
	// Reset ends connections with RST. One way only, that side alone learns of it; what the
	// other side still sends is lost.
	Reset Kind = "reset"
	// Finish ends them with FIN, after what has been passed on. One way only, that side reads
	// the end and can still send.
	Finish Kind = "finish"
	// BlackHole loses everything from now on, ends included: neither side learns that the other
	// has gone. Heal does not revive such a connection. A real network makes the sender wait
	// once its buffers are full; Freeze does that.
	BlackHole Kind = "black_hole"
	// Freeze holds everything back, for Command.For or until Heal, and then delivers it, as a
	// network does that was away: nothing is lost, and a sender is made to wait.
	Freeze Kind = "freeze"
	// Refuse resets connections as soon as they are made, until Heal. Open ones go on.
	Refuse Kind = "refuse"
	// Heal ends Freeze and Refuse, and what other commands were to do to later connections or
	// after a number of bytes.
	Heal Kind = "heal"
)

// Command is one thing to do to the connections of a proxy.
type Command struct {
	Do Kind
	// Way is the direction that is lost, held back or ended; empty means Both.
	Way Way
	// For is how long Freeze lasts; zero means until Heal.
	For time.Duration
	// AfterBytes, if above 0, lets each connection go on until so many more bytes have passed
	// in the direction Count. Only for Reset, Finish, BlackHole and Freeze.
	AfterBytes int64
	Count      Way
	// Later means that connections made later meet it too, until Heal. Only for BlackHole and
	// Freeze, and for the others with AfterBytes.
	Later bool
}

// maxFreeze bounds how long a Freeze may last.
const maxFreeze = 24 * time.Hour

// check reports what is wrong with a command.
func (c Command) check() error {
	switch c.Do {
	case Reset, Finish, BlackHole, Freeze:
	case Refuse, Heal:
		if c != (Command{Do: c.Do}) {
			return fmt.Errorf("%s concerns the whole proxy: it takes no way, for_ms, after_bytes, count or later", c.Do)
		}
		return nil
	default:
		return fmt.Errorf("do is %q; it must be reset, finish, black_hole, freeze, refuse or heal", c.Do)
	}
	switch c.Way {
	case "", Both, ToTarget, ToClient:
	default:
		return fmt.Errorf("way is %q; it must be both, to_target or to_client", c.Way)
	}
	switch {
	case c.For != 0 && c.Do != Freeze:
		return fmt.Errorf("for_ms means nothing for %s", c.Do)
	case c.For < 0 || c.For > maxFreeze:
		return fmt.Errorf("for_ms must be from 0 to %d", maxFreeze.Milliseconds())
	case c.AfterBytes < 0:
		return errors.New("after_bytes must not be negative")
	case c.AfterBytes > 0 && c.Count != ToTarget && c.Count != ToClient:
		return errors.New("after_bytes needs count, the direction in which bytes are counted: to_target or to_client")
	case c.AfterBytes == 0 && c.Count != "":
		return errors.New("count goes with after_bytes")
	case c.Later && c.AfterBytes == 0 && (c.Do == Reset || c.Do == Finish):
		return fmt.Errorf("later goes with %s only beside after_bytes; to reset all new connections, use refuse", c.Do)
	}
	return nil
}

// maxCommand bounds a command's JSON.
const maxCommand = 4 << 10

// ReadCommand reads a command as JSON, such as {"do":"freeze","way":"to_client","for_ms":3000}; the
// other keys are after_bytes, count and later. The error says which key is wrong.
func ReadCommand(r io.Reader) (Command, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCommand+1))
	if err != nil {
		return Command{}, fmt.Errorf("faultproxy: read a command: %w", err)
	}
	if len(data) > maxCommand {
		return Command{}, fmt.Errorf("faultproxy: the command has more than %d bytes", maxCommand)
	}
	var in struct {
		Do         Kind  `json:"do"`
		Way        Way   `json:"way"`
		ForMS      int64 `json:"for_ms"`
		AfterBytes int64 `json:"after_bytes"`
		Count      Way   `json:"count"`
		Later      bool  `json:"later"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return Command{}, fmt.Errorf("faultproxy: a command is a JSON object with do, way, for_ms, after_bytes, count and later: %w", err)
	}
	if dec.More() {
		return Command{}, errors.New("faultproxy: there is more than one command")
	}
	if in.ForMS < 0 || in.ForMS > maxFreeze.Milliseconds() {
		return Command{}, fmt.Errorf("faultproxy: for_ms must be from 0 to %d", maxFreeze.Milliseconds())
	}
	c := Command{Do: in.Do, Way: in.Way, For: time.Duration(in.ForMS) * time.Millisecond, AfterBytes: in.AfterBytes, Count: in.Count, Later: in.Later}
	if err := c.check(); err != nil {
		return Command{}, fmt.Errorf("faultproxy: %w", err)
	}
	return c, nil
}

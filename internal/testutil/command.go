package testutil

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Way is a direction through the proxy, as in JSON.
type Way string

// The directions. An empty Way means Both.
const (
	Both     Way = "both"
	ToTarget Way = "to_target"
	ToClient Way = "to_client"
)

// Kind is a command's effect, as in JSON.
type Kind string

// The kinds of command.
const (
	// Reset sends RST. In one direction, only that side gets it, and the data from the other side is lost.
	Reset Kind = "reset"
	// Finish sends FIN after the data already accepted. In one direction, that side can still send.
	Finish Kind = "finish"
	// BlackHole loses all further data, including FIN and RST. Heal does not revive the connection. Unlike on a real
	// network, senders never block; use Freeze for that.
	BlackHole Kind = "black_hole"
	// Freeze delays all data for Command.For or until Heal, like a network outage: nothing is lost and senders block.
	Freeze Kind = "freeze"
	// Refuse resets new connections until Heal.
	Refuse Kind = "refuse"
	// Heal ends Freeze and Refuse, and cancels commands waiting for later connections or bytes.
	Heal Kind = "heal"
)

// Command is an action on a proxy's connections.
type Command struct {
	Do Kind
	// Way is the affected direction; empty means Both.
	Way Way
	// For is the duration of Freeze; zero means until Heal.
	For time.Duration
	// AfterBytes, if positive, delays the action until that many more bytes have passed in direction Count. Only for
	// Reset, Finish, BlackHole and Freeze.
	AfterBytes int64
	Count      Way
	// Later also applies the action to new connections until Heal. Only for BlackHole and Freeze, and for others with
	// AfterBytes.
	Later bool
}

// maxFreeze bounds a Freeze.
const maxFreeze = 24 * time.Hour

// check validates a command.
func (c Command) check() error {
	switch c.Do {
	case Reset, Finish, BlackHole, Freeze:
	case Refuse, Heal:
		if c != (Command{Do: c.Do}) {
			return fmt.Errorf("%s affects the whole proxy: remove way, for_ms, after_bytes, count and later", c.Do)
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
		return fmt.Errorf("for_ms has no effect with %s", c.Do)
	case c.For < 0 || c.For > maxFreeze:
		return fmt.Errorf("for_ms must be from 0 to %d", maxFreeze.Milliseconds())
	case c.AfterBytes < 0:
		return errors.New("after_bytes must not be negative")
	case c.AfterBytes > 0 && c.Count != ToTarget && c.Count != ToClient:
		return errors.New("after_bytes needs count, the direction in which bytes are counted: to_target or to_client")
	case c.AfterBytes == 0 && c.Count != "":
		return errors.New("count needs after_bytes")
	case c.Later && c.AfterBytes == 0 && (c.Do == Reset || c.Do == Finish):
		return fmt.Errorf("later with %s needs after_bytes; to reset all new connections, use refuse", c.Do)
	}
	return nil
}

// maxCommand bounds a command's JSON in bytes.
const maxCommand = 4 << 10

// ReadCommand reads a command as JSON, such as {"do":"freeze","way":"to_client","for_ms":3000}; the other keys are
// after_bytes, count and later. The error names the wrong key.
func ReadCommand(r io.Reader) (Command, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCommand+1))
	if err != nil {
		return Command{}, fmt.Errorf("faultproxy: read a command: %w", err)
	}
	if len(data) > maxCommand {
		return Command{}, fmt.Errorf("faultproxy: the command exceeds %d bytes", maxCommand)
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
		return Command{}, fmt.Errorf("faultproxy: want a JSON object with do, way, for_ms, after_bytes, count and later: %w", err)
	}
	if dec.More() {
		return Command{}, errors.New("faultproxy: more than one command")
	}
	if in.ForMS < 0 || in.ForMS > maxFreeze.Milliseconds() {
		return Command{}, fmt.Errorf("faultproxy: for_ms must be from 0 to %d", maxFreeze.Milliseconds())
	}
	c := Command{Do: in.Do, Way: in.Way, For: time.Duration(in.ForMS) * time.Millisecond, AfterBytes: in.AfterBytes,
		Count: in.Count, Later: in.Later}
	if err := c.check(); err != nil {
		return Command{}, fmt.Errorf("faultproxy: %w", err)
	}
	return c, nil
}

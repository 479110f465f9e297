package nonblock

// Room is where ReadInto puts what has come.
type Room interface {
	// Room returns where to put it; it is called only to read at once, and must not be
	// empty.
	Room() []byte
	// GiveBack is called when there was nothing to put there after all.
	GiveBack()
}

// ReadInto waits until there is something to read, and only then asks for the room to put
// it, so that a connection on which nothing comes holds no buffer. One goroutine may read
// at a time. On a connection that is no socket of the operating system, the room is taken
// first.
func (c *Conn) ReadInto(room Room) (int, error) {
	if c.wait != nil {
		return c.wait(room)
	}
	if c.watched != nil {
		return 0, errWatched
	}
	return c.Conn.Read(room.Room())
}

// Read is that of net.Conn; on a connection that is watched it does not wait.
func (c *Conn) Read(p []byte) (int, error) {
	if w := c.watched; w != nil {
		return w.read(p)
	}
	return c.Conn.Read(p)
}

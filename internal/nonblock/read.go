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
// first. Only before Notify.
func (c *Conn) ReadInto(room Room) (int, error) {
	if c.wait != nil {
		return c.wait(room)
	}
	return c.Conn.Read(room.Room())
}

// TryReadInto reads what is there; ErrWouldBlock says that this is nothing. Only within the
// function of Notify.
func (c *Conn) TryReadInto(room Room) (int, error) {
	n, err := c.ear.read(room.Room())
	if n <= 0 {
		room.GiveBack()
	}
	return n, err
}

// Read is that of net.Conn. After Notify it does not wait, and may be called within turns only.
func (c *Conn) Read(p []byte) (int, error) {
	if c.ear != nil {
		return c.ear.read(p)
	}
	return c.Conn.Read(p)
}

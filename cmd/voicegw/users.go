package main

import "voicegw/internal/user"

// userName is a flag that names a user.
type userName string

// UnmarshalText accepts a name as the gateway's endpoints do, in its normal form.
func (n *userName) UnmarshalText(text []byte) error {
	who, err := user.Parse(string(text))
	*n = userName(who.String())
	return err
}

// userIdentity is a flag that identifies a user, who may have no name.
type userIdentity string

// UnmarshalText accepts an identity in the form that the gateway shows.
func (i *userIdentity) UnmarshalText(text []byte) error {
	who, err := user.Stored(string(text))
	*i = userIdentity(who.String())
	return err
}

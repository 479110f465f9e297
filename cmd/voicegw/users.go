package main

import "voicegw/internal/user"

// userName is a flag that names a user.
type userName string

// UnmarshalText takes a name as the gateway's doors do, in its normal form.
func (n *userName) UnmarshalText(text []byte) error {
	who, err := user.Parse(string(text))
	*n = userName(who.String())
	return err
}

// userIdentity is a flag that says which user is meant, also one without a name.
type userIdentity string

// UnmarshalText takes an identity as the gateway shows it.
func (i *userIdentity) UnmarshalText(text []byte) error {
	who, err := user.Stored(string(text))
	*i = userIdentity(who.String())
	return err
}

// Package image makes images from words and keeps them for a while. A Generator is a provider's
// image model; Files keeps the images; a Studio combines both and
// checks what comes from the provider before anybody sees it.
//
// A model and a client are given the address of an image, which nobody can guess and which
// expires. Only a client with the address gets the bytes from Files.
package image

// Package image makes images from prompts and keeps them until they expire. A [Generator] is a provider's image model,
// [Files] keep the images, and a [Studio] combines both and checks the provider's images.
//
// An image's address contains a secret, so only clients that know the address get the image.
package image

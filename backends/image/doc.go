// Package image makes images from words and keeps them for a while. A Generator is a
// provider's image model (backends/image/openai, backends/image/genai); a Files keeps what it made; a Studio
// is both: it checks what comes from the provider before anybody sees it.
//
// What a model and a client are told of an image is its address, which nobody can guess
// and which ends; the bytes go from the Files to whoever has the address, and to nobody
// else.
package image

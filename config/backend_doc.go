// Package backend has the settings of what tools work on: the knowledge base, calendars, images. Package
// config reads and checks them.
package config

// Package deploy holds the checks of what installs voicegw: the chart, the unit, the compose file. It is
// a module of its own, so that the gateway needs none of their libraries.
package deploy

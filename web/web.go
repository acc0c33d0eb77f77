// Package web embeds the pages that the engine serves: plain HTML, CSS and ES
// modules, without a build step.
package web

import (
	"embed"
	"io/fs"
)

//go:embed shop
var files embed.FS

// Shop returns the shopper's page. index.html is at its root.
func Shop() fs.FS {
	shop, err := fs.Sub(files, "shop")
	if err != nil { // only for a malformed path, and this one is constant
		panic(err)
	}
	return shop
}
